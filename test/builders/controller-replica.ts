/** The controller process as it runs in a pod, without the pod: on a real API server, in the process of the test. */
import { Registry } from 'prom-client';
import { ControllerConfig } from '../../src/controllers/config.js';
import { Namespaces, Services } from '../../src/kube/core-types.js';
import { createInformer } from '../../src/kube/informer.js';
import type { Logger } from '../../src/observability/logger.js';
import { createControllerProcess } from '../../src/processes/controller.js';
import type { ControllerProcess, ControllerProcessDeps } from '../../src/processes/controller.js';
import { systemClock } from '../../src/runtime/clock.js';
import type { TestApiServer } from './api-server.js';
import { createObject } from './objects.js';

export interface ReplicaOptions {
  server: TestApiServer;
  releaseNamespace: string;
  podName: string;
  log: Logger;
  onLost: (error: Error) => void;
  /** Settings beside those. */
  config?: object;
  registry?: Registry;
  archive?: ControllerProcessDeps['archive'];
}

export interface Replica {
  process: ControllerProcess;
  stop(): Promise<void>;
}

/** What the chart makes before the first controller starts: the namespace of the release and the Services of the product. */
export async function createRelease({ api }: Pick<TestApiServer, 'api'>, namespace: string): Promise<void> {
  await createObject(api, Namespaces, { name: namespace });
  await createObject(api, Services, { name: 'boxwright-gateway', namespace }, { ports: [{ port: 8443 }] });
  await createObject(api, Services, { name: 'boxwright-api', namespace }, { ports: [{ port: 80 }] });
}

/** Starts one; the Lease lasts so long that a busy machine costs nobody the lead. */
export async function startReplica(options: ReplicaOptions): Promise<Replica> {
  const { server, releaseNamespace, podName, log, onLost, registry = new Registry(), archive } = options;
  const process = createControllerProcess({
    config: ControllerConfig.parse({
      releaseNamespace,
      podName,
      runImage: 'boxwright:test',
      internalPort: 0,
      leaseSeconds: 60,
      ...options.config,
    }),
    api: server.api,
    informer: (of) => createInformer(server.transport, of, { clock: systemClock, log }),
    clock: systemClock,
    registry,
    log,
    archive,
    onLost,
  });
  const signal = new AbortController().signal;
  for (const { runnables } of process.groups) await Promise.all(runnables.map(async (one) => one.start(signal)));
  return {
    process,
    stop: async () => {
      for (const { runnables } of process.groups.toReversed()) await Promise.all(runnables.map((one) => one.stop()));
    },
  };
}

/** The controller process as it runs in a pod, without the pod: on a real API server, in the process of the test. */
import { Registry } from 'prom-client';
import { ControllerConfig } from '../../src/controllers/config.js';
import { Namespaces, Services } from '../../src/kube/core-types.js';
import { createKubeApi } from '../../src/kube/client.js';
import { createInformer } from '../../src/kube/informer.js';
import { ServerClock } from '../../src/kube/server-clock.js';
import { createTransport } from '../../src/kube/transport.js';
import type { Logger } from '../../src/observability/logger.js';
import { createControllerProcess } from '../../src/processes/controller.js';
import type { ControllerProcess, ControllerProcessDeps } from '../../src/processes/controller.js';
import { systemClock } from '../../src/runtime/clock.js';
import type { Clock } from '../../src/runtime/clock.js';
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
  /** The clock of its node: then it has connections of its own and follows the API server's time, as the process does. */
  wall?: Clock;
  /** How often it looks at everything again; never when absent. */
  resyncMs?: number;
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
  const { releaseNamespace, podName, log, onLost, registry = new Registry(), archive, resyncMs } = options;
  const { clock, transport, api, close } = connect(options);
  const process = createControllerProcess({
    config: ControllerConfig.parse({
      releaseNamespace,
      podName,
      runnerImage: 'boxwright-runner:test',
      toolsImage: 'boxwright-tools:test',
      internalPort: 0,
      leaseSeconds: 60,
      ...options.config,
    }),
    api,
    informer: (of) => createInformer(transport, of, { clock, log, ...(resyncMs === undefined ? {} : { resyncMs }) }),
    clock,
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
      await close();
    },
  };
}

function connect({ server, wall }: Pick<ReplicaOptions, 'server' | 'wall'>) {
  if (wall === undefined) {
    return { clock: systemClock, transport: server.transport, api: server.api, close: () => Promise.resolve() };
  }
  const clock = new ServerClock(wall);
  const transport = createTransport(server.connection, { clock, serverTime: clock, userAgent: 'boxwright-test' });
  return { clock, transport, api: createKubeApi(transport), close: () => transport.close() };
}

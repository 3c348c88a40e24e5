/**
 * The base controllers with informers and work queues on a real API server, as the controller process runs them, and
 * stand-ins for what a bare API server lacks: the run controller, the namespace controller and foreground deletion.
 */
import { createAgentScheduleController } from '../../src/controllers/agent-schedule/controller.js';
import { createAgentTriggerController } from '../../src/controllers/agent-trigger/controller.js';
import { createAgentController } from '../../src/controllers/agent/controller.js';
import { createAPIKeyController } from '../../src/controllers/api-key/controller.js';
import { createBoxController } from '../../src/controllers/box/controller.js';
import { createInstallationController } from '../../src/controllers/installation/controller.js';
import type { Installation } from '../../src/controllers/installation/controller.js';
import type { ControllerPart } from '../../src/controllers/common/controller-part.js';
import { createWorkspaceController } from '../../src/controllers/workspace/controller.js';
import { objectKey } from '../../src/api/meta.js';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { ALL_KINDS } from '../../src/api/v1alpha1/index.js';
import { Namespaces } from '../../src/kube/core-types.js';
import { isConflict, isNotFound } from '../../src/kube/errors.js';
import { createInformer } from '../../src/kube/informer.js';
import type { Informer, InformerOptions, KubeApi, ObjectRef } from '../../src/kube/types.js';
import { createLogger } from '../../src/observability/logger.js';
import { systemClock } from '../../src/runtime/clock.js';
import { Controller } from '../../src/runtime/controller.js';
import type { TestApiServer } from './api-server.js';
import { createControllerCaches } from '../../src/processes/controller-parts.js';

export const RELEASE_NAMESPACE = 'boxwright-test';

export interface RunningControllers {
  installation: Installation;
  /** Every write of the controllers that the API server took, as `<verb> <plural> <key>`. */
  writes: string[];
  /** What they logged at level error. */
  errors: string[];
  /** Asks every controller to look at every object again. */
  resync(): void;
  stop(): Promise<void>;
}

/** Starts them; resolves when the caches are read. */
export async function startBaseControllers(server: TestApiServer): Promise<RunningControllers> {
  const writes: string[] = [];
  const errors: string[] = [];
  const log = createLogger('test', 'error', { write: (line) => errors.push(line) });
  const started: Informer<unknown>[] = [];
  const open = <T extends KubeObject, P>(options: InformerOptions<T, P>): Informer<P> => {
    const informer = createInformer(server.transport, options, { clock: systemClock, log });
    started.push(informer);
    return informer;
  };
  const caches = createControllerCaches(open, RELEASE_NAMESPACE);
  const api = recordWrites(server.api, writes);
  const common = { api, clock: systemClock, log, caches };
  const installation = createInstallationController({
    ...common,
    namespace: RELEASE_NAMESPACE,
    gatewayService: 'boxwright-gateway',
    metrics: { expires: () => undefined },
  });
  const parts: ControllerPart[] = [
    installation,
    createWorkspaceController({
      ...common,
      identity: { serviceAccount: 'boxwright-controller', namespace: RELEASE_NAMESPACE },
    }),
    createAPIKeyController(common),
    createBoxController({
      ...common,
      counts: { running: () => 0, queued: () => 0, onChange: () => () => undefined },
      network: {
        gateway: { namespace: RELEASE_NAMESPACE, podLabels: { 'app.kubernetes.io/component': 'gateway' } },
        clusterCidrs: ['203.0.113.0/24'],
      },
      imagePullSecrets: [],
      probeSettings: () =>
        Promise.resolve({
          image: 'boxwright:test',
          imagePullPolicy: 'Never',
          targets: [
            { name: 'gateway', host: '10.96.0.7', port: 8443 },
            { name: 'api', host: '10.96.0.8', port: 80 },
          ],
        }),
    }),
    createAgentController(common),
    createAgentTriggerController({ ...common, keyIds: () => installation.keyIds() }),
    createAgentScheduleController({
      ...common,
      keyring: () => installation.keyring(),
      backlogExceeded: () => undefined,
      reserve: () => ({ settle: () => undefined }),
      metrics: { turnedAway: () => undefined },
    }),
  ];
  const seen = new Map<Controller, Set<string>>();
  const controllers = parts.map((part) => {
    const controller = new Controller({ ...part, clock: systemClock, log, backoff: FAST_BACKOFF });
    const keys = new Set<string>();
    seen.set(controller, keys);
    part.watch((key) => {
      keys.add(key);
      controller.enqueue(key);
    });
    return controller;
  });
  for (const informer of started) informer.start();
  await Promise.all(started.map((informer) => informer.synced));
  for (const controller of controllers) controller.start();
  return {
    installation,
    writes,
    errors,
    resync: () => {
      for (const [controller, keys] of seen) for (const key of keys) controller.enqueue(key);
    },
    stop: async () => {
      await Promise.all(controllers.map((controller) => controller.stop()));
      await Promise.all(started.map((informer) => informer.stop()));
    },
  };
}

const FAST_BACKOFF = { baseMs: 20, maxMs: 500, jitter: 0.2 };

function recordWrites(api: KubeApi, writes: string[]): KubeApi {
  const note = async <R>(verb: string, type: ResourceType, ref: ObjectRef, write: Promise<R>): Promise<R> => {
    const answer = await write;
    writes.push(`${verb} ${type.plural} ${objectKey(ref)}`);
    return answer;
  };
  return {
    get: (type, ref, options) => api.get(type, ref, options),
    list: (type, options) => api.list(type, options),
    create: (type, object, options) => note('create', type, object.metadata, api.create(type, object, options)),
    replace: (type, object, options) => note('replace', type, object.metadata, api.replace(type, object, options)),
    patch: (type, ref, body, options) =>
      note(options.subresource === undefined ? 'patch' : 'patchStatus', type, ref, api.patch(type, ref, body, options)),
    delete: (type, ref, options) => note('delete', type, ref, api.delete(type, ref, options)),
  };
}

/** Plays run controller, namespace controller and foreground deletion until stopped. */
export function startStandIns(server: TestApiServer): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const rounds = async () => {
    while (!stopping.signal.aborted) {
      await releaseRuns(server.api);
      await releaseForeground(server.api);
      await emptyNamespaces(server);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const ended = rounds();
  return {
    stop: async () => {
      stopping.abort();
      await ended;
    },
  };
}

async function releaseRuns(api: KubeApi): Promise<void> {
  const { items } = await api.list(AgentRuns);
  for (const { metadata } of items) {
    if (metadata.deletionTimestamp === undefined || metadata.namespace === undefined) continue;
    await dropFinalizers(api, AgentRuns, metadata, () => false);
  }
}

async function releaseForeground(api: KubeApi): Promise<void> {
  for (const type of ALL_KINDS) {
    for (const { metadata } of (await api.list(type)).items) {
      if (metadata.finalizers?.includes('foregroundDeletion') !== true) continue;
      await dropFinalizers(api, type, metadata, (name) => name !== 'foregroundDeletion');
    }
  }
}

async function dropFinalizers(
  api: KubeApi,
  type: ResourceType,
  metadata: KubeObject['metadata'],
  keep: (name: string) => boolean,
): Promise<void> {
  const finalizers = (metadata.finalizers ?? []).filter(keep);
  const body = { metadata: { resourceVersion: metadata.resourceVersion, finalizers } };
  const { name, namespace } = metadata;
  const ref = namespace === undefined ? { name } : { name, namespace };
  await tolerate(api.patch(type, ref, body, { type: 'merge' }));
}

/** As the namespace controller: first the contents go, then the namespace. */
async function emptyNamespaces({ api, transport }: TestApiServer): Promise<void> {
  for (const { metadata } of (await api.list(Namespaces)).items) {
    if (metadata.deletionTimestamp === undefined) continue;
    let left = 0;
    for (const type of ALL_KINDS.filter(({ namespaced }) => namespaced)) {
      for (const object of (await api.list(type, { namespace: metadata.name })).items) {
        left += 1;
        await tolerate(api.delete(type, { namespace: metadata.name, name: object.metadata.name }));
      }
    }
    if (left > 0) continue;
    const path = `/api/v1/namespaces/${metadata.name}/finalize`;
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: metadata.name }, spec: { finalizers: [] } };
    await tolerate(transport.request({ verb: 'update', resource: 'namespaces', method: 'PUT', path, body }));
  }
}

async function tolerate(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}

/**
 * Two controller processes on a real API server and a real PostgreSQL server: removed runs go to the archive, and an archive
 * that is away delays deletions and nothing else. There is no kubelet: the test plays gateway and pods.
 */
import { Registry } from 'prom-client';
import { isTrue } from '../../src/api/conditions.js';
import { FINALIZER_FOLD } from '../../src/api/labels.js';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import type { Agent } from '../../src/api/v1alpha1/agent.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { PostgresArchive } from '../../src/archive/postgres-archive.js';
import { ControllerConfig } from '../../src/controllers/config.js';
import { Jobs, Namespaces, Services } from '../../src/kube/core-types.js';
import { isNotFound } from '../../src/kube/errors.js';
import { createInformer } from '../../src/kube/informer.js';
import { createArchiveMetrics } from '../../src/observability/metrics.js';
import { createControllerProcess } from '../../src/processes/controller.js';
import type { ControllerProcess } from '../../src/processes/controller.js';
import { systemClock } from '../../src/runtime/clock.js';
import { writeChunk } from '../../src/transcript/chunk-store.js';
import { encodeEvents } from '../../src/transcript/codec.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { recordingLog } from '../builders/log.js';
import { startPostgres } from '../builders/postgres-server.js';
import type { PostgresServer } from '../builders/postgres-server.js';
import { toolEvent } from '../builders/run-events.js';

const RELEASE = 'boxwright-archive-test';
const NAMESPACE = 'bw-archived';

interface Replica {
  process: ControllerProcess;
  stop(): Promise<void>;
}

describe('the controller process with an archive', () => {
  let server: TestApiServer;
  let postgres: PostgresServer;
  let replicas: Replica[] = [];
  const logs = recordingLog();

  beforeAll(async () => {
    [server, postgres] = await Promise.all([startApiServer({ own: true }), startPostgres()]);
    await server.applyCrds();
    await create(Namespaces, { name: RELEASE });
    await create(Services, { name: 'boxwright-gateway', namespace: RELEASE }, { ports: [{ port: 8443 }] });
    replicas = [await startReplica('controller-0'), await startReplica('controller-1')];
    await create(Workspaces, { name: 'archived' }, { slots: 5 });
    const egress = { requireEnforcement: false };
    await create(Boxes, { name: 'archived' }, { workspace: 'archived', engine: 'scripted', egress });
    await waitFor(Boxes, { name: 'archived' }, (box) => isTrue(box.status?.conditions, 'Ready'));
  }, 1_200_000);

  afterAll(async () => {
    for (const replica of replicas) await replica.stop();
    await postgres.remove();
    await server.stop();
  }, 120_000);

  async function startReplica(podName: string): Promise<Replica> {
    const registry = new Registry();
    const metrics = createArchiveMetrics(registry);
    const { log } = logs;
    const store = PostgresArchive.open({
      url: postgres.url,
      clock: systemClock,
      log,
      metrics,
      connections: 4,
      makesTables: true,
    });
    const process = createControllerProcess({
      config: ControllerConfig.parse({
        releaseNamespace: RELEASE,
        podName,
        runImage: 'boxwright:test',
        internalPort: 0,
      }),
      api: server.api,
      informer: (options) => createInformer(server.transport, options, { clock: systemClock, log }),
      clock: systemClock,
      registry,
      log,
      archive: { store, metrics },
      onLost: () => undefined,
    });
    const signal = new AbortController().signal;
    for (const { runnables } of process.groups) await Promise.all(runnables.map(async (one) => one.start(signal)));
    return {
      process,
      stop: async () => {
        for (const { runnables } of process.groups.toReversed()) await Promise.all(runnables.map((one) => one.stop()));
        await store.close();
      },
    };
  }

  async function create(type: ResourceType, metadata: KubeObject['metadata'], spec?: object): Promise<KubeObject> {
    const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
    return await server.api.create(type, {
      apiVersion,
      kind: type.kind,
      metadata,
      ...(spec === undefined ? {} : { spec }),
    });
  }

  async function waitFor<T extends KubeObject>(
    type: ResourceType<T>,
    ref: { name: string; namespace?: string },
    isDone: (object: T) => boolean,
  ): Promise<T> {
    let found: T | undefined;
    await eventually(async () => {
      found = await server.api.get(type, ref).catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      });
      return found !== undefined && isDone(found);
    }, `${type.kind} ${ref.name}`);
    if (found === undefined) throw new Error('never found');
    return found;
  }

  const isGone = async (type: ResourceType, name: string) =>
    await server.api.get(type, { namespace: NAMESPACE, name }).then(
      () => false,
      (error: unknown) => {
        if (isNotFound(error)) return true;
        throw error;
      },
    );

  async function createAgent(name: string): Promise<Agent> {
    await create(Agents, { name, namespace: NAMESPACE }, { name, provider: 'boxwright' });
    return await waitFor(Agents, { name, namespace: NAMESPACE }, (agent) => agent.status?.active === true);
  }

  /** A run that has ended, with one chunk. */
  async function endedRun(agent: Agent, name: string): Promise<void> {
    const spec = { agent: agent.metadata.name, agentUid: agent.metadata.uid, message: `hello ${name}` };
    const metadata = { name, namespace: NAMESPACE, finalizers: [FINALIZER_FOLD] };
    const { metadata: made } = await create(AgentRuns, metadata, spec);
    const owner = { namespace: NAMESPACE, name, uid: made.uid ?? '' };
    await writeChunk(server.api, owner, 0, await encodeEvents([toolEvent(1)]));
    const usage = { steps: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15 };
    const transcript = { state: 'full', chunks: 1, bytes: 100 };
    const finishedAt = new Date().toISOString();
    const outcome = {
      phase: 'done',
      reason: 'Completed',
      output: 'Hi',
      finishedAt,
      usage,
      usageFinal: true,
      transcript,
    };
    const options = { type: 'merge', subresource: 'status' } as const;
    await server.api.patch(AgentRuns, { namespace: NAMESPACE, name }, { status: outcome }, options);
  }

  const remove = (type: ResourceType, name: string) => server.api.delete(type, { namespace: NAMESPACE, name });
  const rows = () => postgres.query<{ name: string }>('select name from boxwright_runs order by name');

  it('stores removed runs, delays removals while PostgreSQL is away, and purges with the agent', async () => {
    const ada = await createAgent('ada');
    const bob = await createAgent('bob');
    await endedRun(bob, 'bob-1');
    await remove(AgentRuns, 'bob-1');
    for (const number of [1, 2, 3]) await endedRun(ada, `ada-${number}`);
    await remove(AgentRuns, 'ada-1');
    const bothGone = async () => (await isGone(AgentRuns, 'ada-1')) && (await isGone(AgentRuns, 'bob-1'));
    await eventually(bothGone, 'the first runs are still there');
    expect(await rows()).toEqual([{ name: 'ada-1' }, { name: 'bob-1' }]);
    expect(await postgres.query('select count(*)::integer as chunks from boxwright_run_chunks')).toEqual([
      { chunks: 2 },
    ]);

    await postgres.kill();
    await remove(AgentRuns, 'ada-2');
    const notArchived = (run: AgentRun) =>
      run.status?.conditions?.some((one) => one.type === 'Archived' && one.reason === 'ArchiveUnavailable') === true;
    await waitFor(AgentRuns, { namespace: NAMESPACE, name: 'ada-2' }, notArchived);
    await create(AgentRuns, { name: 'ada-new', namespace: NAMESPACE }, { agent: 'ada', message: 'still works' });
    await waitFor(Jobs, { namespace: NAMESPACE, name: 'ada-new' }, () => true);

    const [leader] = replicas.filter(({ process }) => process.isLeading());
    replicas = replicas.filter((replica) => replica !== leader);
    await leader?.stop();
    await postgres.start();
    await eventually(() => isGone(AgentRuns, 'ada-2'), 'the delayed run is still there');
    expect(await rows()).toEqual([{ name: 'ada-1' }, { name: 'ada-2' }, { name: 'bob-1' }]);

    await remove(Agents, 'ada');
    await eventually(() => isGone(Agents, 'ada'), 'the agent is still there');
    expect(await rows()).toEqual([{ name: 'bob-1' }]);
    expect(logs.messages()).toContain('error the archive cannot be used');
  }, 300_000);
});

/**
 * Two controller processes on a real API server and a real PostgreSQL server: removed runs go to the archive, and an archive
 * that is away delays deletions and nothing else. There is no kubelet: the test plays gateway and pods.
 */
import { Registry } from 'prom-client';
import { isTrue } from '../../src/api/conditions.js';
import { FINALIZER_ROLL_UP } from '../../src/api/labels.js';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import type { Agent } from '../../src/api/v1alpha1/agent.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { PostgresArchive } from '../../src/archive/postgres-archive.js';
import { Jobs } from '../../src/kube/core-types.js';
import type { ObjectRef } from '../../src/kube/types.js';
import { createArchiveMetrics } from '../../src/observability/metrics.js';
import { systemClock } from '../../src/runtime/clock.js';
import { writeChunk } from '../../src/transcript/chunk-store.js';
import { encodeEvents } from '../../src/transcript/codec.js';
import { startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { createRelease, startReplica as startControllerReplica } from '../builders/controller-replica.js';
import type { Replica } from '../builders/controller-replica.js';
import { recordingLog } from '../builders/log.js';
import { createObject, objectGone, objectWhen } from '../builders/objects.js';
import { startPostgres } from '../builders/postgres-server.js';
import type { PostgresServer } from '../builders/postgres-server.js';
import { toolEvent } from '../builders/run-events.js';

const RELEASE = 'boxwright-archive-test';
const NAMESPACE = 'bw-archived';

describe('the controller process with an archive', () => {
  let server: TestApiServer;
  let postgres: PostgresServer;
  let replicas: Replica[] = [];
  const logs = recordingLog();

  beforeAll(async () => {
    [server, postgres] = await Promise.all([startApiServer({ own: true }), startPostgres()]);
    await server.applyCrds();
    await createRelease(server, RELEASE);
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
  });

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
    const replica = await startControllerReplica({
      server,
      releaseNamespace: RELEASE,
      podName,
      log,
      onLost: () => undefined,
      registry,
      archive: { store, metrics },
    });
    return {
      process: replica.process,
      stop: async () => {
        await replica.stop();
        await store.close();
      },
    };
  }

  const create = (type: ResourceType, metadata: KubeObject['metadata'], spec?: object) =>
    createObject(server.api, type, metadata, spec);
  const waitFor = <T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, isDone: (object: T) => boolean) =>
    objectWhen(server.api, type, ref, isDone);

  const gone = (type: ResourceType, name: string) => objectGone(server.api, type, { namespace: NAMESPACE, name });

  async function createAgent(name: string): Promise<Agent> {
    await create(Agents, { name, namespace: NAMESPACE }, { name, provider: 'boxwright' });
    return await waitFor(Agents, { name, namespace: NAMESPACE }, (agent) => agent.status?.active === true);
  }

  /** A run that has ended, with one chunk. */
  async function endedRun(agent: Agent, name: string): Promise<void> {
    const spec = { agent: agent.metadata.name, agentUid: agent.metadata.uid, message: `hello ${name}` };
    const metadata = { name, namespace: NAMESPACE, finalizers: [FINALIZER_ROLL_UP] };
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
    await gone(AgentRuns, 'ada-1');
    await gone(AgentRuns, 'bob-1');
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
    await gone(AgentRuns, 'ada-2');
    expect(await rows()).toEqual([{ name: 'ada-1' }, { name: 'ada-2' }, { name: 'bob-1' }]);

    await remove(Agents, 'ada');
    await gone(Agents, 'ada');
    expect(await rows()).toEqual([{ name: 'bob-1' }]);
    expect(logs.messages()).toContain('error the archive cannot be used');
  }, 300_000);
});

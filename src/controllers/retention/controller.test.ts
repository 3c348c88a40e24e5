import { API_VERSION } from '../../api/define-resource.js';
import { chunkName, filePartName } from '../../api/names.js';
import { ClusterFileStore, digestOfFile } from '../../files/cluster-file-store.js';
import { AgentRunChunks } from '../../api/v1alpha1/agent-run-chunk.js';
import type { StoredChunk } from '../../transcript/chunk-store.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { Jobs } from '../../kube/core-types.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { recordingLog } from '../../../test/builders/log.js';
import { apiError, RecordingApi } from '../../../test/builders/recording-api.js';
import { NAMESPACE, makeJob, makeRun } from '../../../test/builders/run-objects.js';
import { ACTIONS_AT_ONCE, createRetentionController } from './controller.js';
import type { RetentionLevels } from './metrics.js';
import type { TranscriptArchive } from './remove-run.js';
import { controllerJobInformer } from '../../projections/job.js';
import { controllerRunInformer } from '../../projections/agent-run.js';

const HOUR = 3_600_000;

function setUp(archive?: TranscriptArchive) {
  const clock = new FakeClock();
  const api = new RecordingApi({ clock });
  const { log, lines } = recordingLog();
  const acted: string[] = [];
  const levels: RetentionLevels[] = [];
  const caches = { runs: api.informer(controllerRunInformer), jobs: api.informer(controllerJobInformer) };
  const part = createRetentionController({
    api,
    clock,
    log,
    caches,
    archive,
    files: new ClusterFileStore(api),
    limits: {
      runsPerAgent: 1,
      minAgeMs: 24 * HOUR,
      maxAgeMs: 720 * HOUR,
      maxFinished: 2000,
      boxBytes: 1000,
      installationBytes: 5000,
    },
    metrics: { acted: (what, rule) => acted.push(`${what} ${rule}`), levels: (now) => levels.push(now) },
  });
  const reconcile = () => part.reconcile('installation', new AbortController().signal);
  const pass = async () => {
    await clock.advance(2000);
    return await reconcile();
  };
  const writes = () =>
    api.writes.splice(0).map(({ verb, resource, key }) => `${verb} ${resource} ${key.split('/')[1]}`);
  return { clock, api, part, reconcile, pass, writes, acted, levels, lines };
}

function finished(clock: FakeClock, name: string, hours: number, parts: Partial<AgentRun['spec']> = {}): AgentRun {
  return makeRun(name, {
    spec: parts,
    status: {
      phase: 'done',
      usageFinal: true,
      finishedAt: new Date(clock.now() - hours * HOUR).toISOString(),
      transcript: { state: 'full', chunks: 2, bytes: 900, storedBytes: 600, messages: 5 },
    },
  });
}

/** The two chunks of the run, as the gateway writes them. */
function seedChunks(api: RecordingApi, { metadata: { name, uid = '' } }: AgentRun): StoredChunk[] {
  return [0, 1].map((seq) =>
    api.seed(AgentRunChunks, {
      apiVersion: API_VERSION,
      kind: 'AgentRunChunk',
      metadata: {
        name: chunkName(name, seq),
        namespace: NAMESPACE,
        ownerReferences: [{ apiVersion: API_VERSION, kind: 'AgentRun', name, uid, controller: true }],
      },
      spec: { run: name, runUid: uid, seq, bytes: 1, sha256: '', data: '' },
    }),
  );
}

const INPUT = { encoding: 'gzip', bytes: 9000, sha256: 'aa', data: 'x'.repeat(500) } as const;

describe('retention', () => {
  it('deletes chunks and Job by name before the run, and leaves the run to its finalizer', async () => {
    const { clock, api, pass, writes, acted } = setUp();
    const run = api.seed(AgentRuns, finished(clock, 'old', 721));
    seedChunks(api, run);
    api.seed(Jobs, makeJob(run));
    await expect(pass()).resolves.toEqual({ requeueAfterMs: 60_000 });
    expect(writes()).toEqual([
      `delete agentrunchunks ${chunkName('old', 0)}`,
      `delete agentrunchunks ${chunkName('old', 1)}`,
      'delete jobs old',
      'delete agentruns old',
    ]);
    expect(api.peek(AgentRuns, `${NAMESPACE}/old`)?.metadata).toMatchObject({
      deletionTimestamp: expect.any(String),
      finalizers: ['boxwright.dev/fold'],
    });
    expect(acted).toEqual(['remove age']);
    expect(api.reads.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual(Array(2).fill('get agentrunchunks'));
  });

  it('removes files before their run, also what no list names, and asks for none of a run that has none', async () => {
    const { clock, api, pass, writes } = setUp();
    const run = finished(clock, 'old', 721);
    // Its gateway pod was lost between the mark and the list.
    const seeded = api.seed(AgentRuns, { ...run, status: { ...run.status, phase: 'error', files: [] } });
    const owner = { namespace: NAMESPACE, name: 'old', uid: seeded.metadata.uid ?? '' };
    await new ClusterFileStore(api).put(owner, Buffer.from('report'), 0);
    api.seed(AgentRuns, finished(clock, 'other', 722));
    api.clearRecords();
    await pass();
    expect(writes().filter((write) => !write.includes('chunks'))).toEqual([
      'delete agentruns other',
      `delete agentrunfileparts ${filePartName('old', 0)}`,
      'delete agentruns old',
    ]);
    expect(api.reads.map(({ key }) => key).filter((key) => key.includes('.f'))).toEqual([
      `${NAMESPACE}/old.f00`,
      `${NAMESPACE}/old.f01`,
    ]);
  });

  it('counts files as stored bytes, removes them with the transcript, and does so again after a crash', async () => {
    const { clock, api, pass, writes } = setUp();
    const content = Buffer.alloc(900, 1);
    const file = { name: 'a', mediaType: 'b', bytes: 900, sha256: digestOfFile(content), part: 0, parts: 1 };
    const run = finished(clock, 'big', 2);
    const { transcript: _none, ...status } = run.status ?? { phase: 'done' as const };
    const seeded = api.seed(AgentRuns, { ...run, status: { ...status, files: [file], fileCount: 1 } });
    await new ClusterFileStore(api).put(
      { namespace: NAMESPACE, name: 'big', uid: seeded.metadata.uid ?? '' },
      content,
      0,
    );
    api.clearRecords();
    writes();
    api.failNext({ verb: 'patch', resource: 'agentruns/status', error: apiError(500, 'InternalError') });
    await expect(pass()).rejects.toMatchObject({ status: 500 });
    await pass();
    expect(writes()).toEqual([
      `delete agentrunfileparts ${filePartName('big', 0)}`,
      'patch agentruns/status big',
      'patch agentruns/status big',
    ]);
    expect(api.peek(AgentRuns, `${NAMESPACE}/big`)?.status).not.toHaveProperty('files');
    expect(api.peek(AgentRuns, `${NAMESPACE}/big`)?.status).not.toHaveProperty('fileCount');
  });

  it('leaves the chunks of a new run of the same name alone, also of one that was made this moment', async () => {
    const { clock, api, pass } = setUp();
    // As a cache shows it that has not heard of its end.
    const gone = api.seed(AgentRuns, finished(clock, 'old', 721));
    const [first] = seedChunks(api, { ...gone, metadata: { ...gone.metadata, uid: 'uid-of-the-new-run' } });
    const [, second] = seedChunks(api, gone).map((chunk) => chunk.metadata.uid);
    api.seed(AgentRunChunks, first as StoredChunk);
    const get = api.get.bind(api);
    api.get = async (...call) => {
      const answer = await get(...call);
      // Between the look at the second chunk and its deletion the new run writes its own.
      if (answer.metadata.uid === second) {
        api.seed(AgentRunChunks, { ...(first as StoredChunk), metadata: { ...answer.metadata, uid: 'uid-new' } });
      }
      return answer;
    };
    await pass();
    expect(api.all(AgentRunChunks).map(({ metadata }) => metadata.uid)).toEqual([first?.metadata.uid, 'uid-new']);
    expect(api.peek(AgentRuns, `${NAMESPACE}/old`)?.metadata.deletionTimestamp).toBeDefined();
  });

  it('asks once: a run that is on its way out is not deleted again', async () => {
    const { clock, api, pass, writes } = setUp();
    api.seed(AgentRuns, finished(clock, 'old', 721));
    await pass();
    writes();
    await pass();
    await clock.advance(60_000);
    await pass();
    expect(writes()).toEqual([]);
  });

  it('takes input and transcript of the oldest run when the Box is full, and the run says so', async () => {
    const { clock, api, pass, writes, acted } = setUp();
    const old = api.seed(AgentRuns, finished(clock, 'old', 3, { input: INPUT }));
    api.seed(AgentRuns, finished(clock, 'new', 2));
    seedChunks(api, old);
    await pass();
    expect(writes()).toEqual([
      `delete agentrunchunks ${chunkName('old', 0)}`,
      `delete agentrunchunks ${chunkName('old', 1)}`,
      'patch agentruns old',
      'patch agentruns/status old',
    ]);
    const run = api.peek(AgentRuns, `${NAMESPACE}/old`);
    expect(run?.spec.input).toEqual({ encoding: 'gzip', bytes: 9000, sha256: 'aa' });
    expect(run?.status?.transcript).toEqual({ state: 'expired', chunks: 0, bytes: 0, storedBytes: 0, messages: 0 });
    expect(acted).toEqual(['expire box-bytes']);
    await pass();
    expect(writes()).toEqual([]);
  });

  it('writes nothing while everything fits, pass after pass', async () => {
    const { clock, api, pass, writes, levels } = setUp();
    api.seed(AgentRuns, finished(clock, 'new', 2));
    api.seed(AgentRuns, makeRun('works'));
    for (let i = 0; i < 5; i++) {
      await pass();
      await clock.advance(60_000);
    }
    expect(writes()).toEqual([]);
    expect(levels[0]).toEqual({ finishedRuns: 1, heldRuns: 0, storedBytes: 600, due: 0 });
  });

  it('does not touch what the gateway may still write', async () => {
    const { clock, api, pass, writes } = setUp();
    for (const name of ['a', 'b']) {
      const run = finished(clock, name, 0);
      api.seed(AgentRuns, { ...run, status: { ...run.status, phase: 'done', usageFinal: false } });
    }
    await pass();
    expect(writes()).toEqual([]);
    await clock.advance(121_000);
    await pass();
    expect(writes()).toContain('patch agentruns/status a');
  });

  it('paces itself: one batch a pass, and the next one soon', async () => {
    const { clock, api, pass, writes } = setUp();
    for (let i = 0; i < ACTIONS_AT_ONCE + 3; i++) {
      api.seed(AgentRuns, makeRun(`r${i}`, { status: { phase: 'done', finishedAt: '2020-01-01T00:00:00Z' } }));
    }
    await expect(pass()).resolves.toEqual({ requeueAfterMs: 500 });
    expect(writes()).toHaveLength(ACTIONS_AT_ONCE);
    await expect(pass()).resolves.toEqual({ requeueAfterMs: 60_000 });
    expect(writes()).toHaveLength(3);
    expect(clock.now()).toBeGreaterThan(0);
  });

  it('keeps two seconds between two passes, however often it is asked', async () => {
    const { clock, api, pass, reconcile, writes } = setUp();
    await pass();
    api.seed(AgentRuns, finished(clock, 'old', 721));
    await expect(reconcile()).resolves.toEqual({ requeueAfterMs: 2000 });
    expect(writes()).toEqual([]);
    await pass();
    expect(writes()).toContain('delete agentruns old');
  });

  it('goes on with the other runs when one write fails, and tries that one again', async () => {
    const { clock, api, pass, writes } = setUp();
    for (const name of ['a', 'b']) api.seed(AgentRuns, finished(clock, name, 721));
    api.failNext({ verb: 'delete', resource: 'agentruns', error: apiError(500, 'InternalError') });
    await expect(pass()).rejects.toThrow('injected by the test');
    expect(api.peek(AgentRuns, `${NAMESPACE}/b`)?.metadata.deletionTimestamp).toBeDefined();
    writes();
    await pass();
    expect(writes().filter((write) => write.startsWith('delete agentruns '))).toHaveLength(1);
  });

  it('goes on to other runs when removals are refused, says so, and tries them again later', async () => {
    const { clock, api, pass, writes, lines } = setUp();
    const finishedAt = '2020-01-01T00:00:00Z';
    for (let i = 0; i < ACTIONS_AT_ONCE; i++) {
      api.seed(AgentRuns, makeRun(`held-${i}`, { status: { phase: 'done', finishedAt } }));
      api.failNext({ verb: 'delete', resource: 'agentruns', error: apiError(403, 'Forbidden') });
    }
    api.seed(AgentRuns, makeRun('mine', { status: { phase: 'done', finishedAt } }));
    await expect(pass()).resolves.toEqual({ requeueAfterMs: 500 });
    writes();
    await expect(pass()).resolves.toEqual({ requeueAfterMs: 60_000 });
    expect(writes()).toEqual(['delete agentruns mine']);
    expect(lines).toMatchObject([{ level: 'warn', fields: { runs: ACTIONS_AT_ONCE } }]);
    await clock.advance(60_000);
    await pass();
    expect(writes()).toHaveLength(ACTIONS_AT_ONCE);
  });

  it('counts a removed run that somebody holds as gone', async () => {
    const { clock, api, pass, writes, levels } = setUp();
    const held = finished(clock, 'held', 721);
    api.seed(AgentRuns, { ...held, metadata: { ...held.metadata, finalizers: ['example.com/mine'] } });
    await pass();
    expect(writes()).toContain('delete agentruns held');
    await clock.advance(60_000);
    await pass();
    expect(writes()).toEqual([]);
    expect(levels.at(-1)).toEqual({ finishedRuns: 0, heldRuns: 0, storedBytes: 0, due: 0 });
  });

  it('stores what goes in the archive first, and the run says where it is', async () => {
    const stored: string[] = [];
    const { clock, api, pass } = setUp({
      storeNow: (run) => {
        stored.push(`${run.metadata.name} with ${run.status?.transcript?.chunks} chunks`);
        return Promise.resolve('stored');
      },
    });
    for (const [name, hours] of [
      ['gone', 721],
      ['old', 3],
      ['new', 2],
    ] as const)
      api.seed(AgentRuns, finished(clock, name, hours));
    await pass();
    expect(stored).toEqual(['gone with 2 chunks', 'old with 2 chunks']);
    // Its messages are still there to be read.
    expect(api.peek(AgentRuns, `${NAMESPACE}/old`)?.status?.transcript).toMatchObject({
      state: 'archived',
      messages: 5,
    });
  });

  it('deletes nothing that the archive could not store', async () => {
    const { clock, api, pass, writes } = setUp({ storeNow: () => Promise.reject(new Error('no connection')) });
    api.seed(AgentRuns, finished(clock, 'gone', 721));
    await expect(pass()).rejects.toThrow('no connection');
    expect(writes()).toEqual([]);
  });

  it('comes at once when much has ended', () => {
    const { clock, api, part } = setUp();
    const pokes: string[] = [];
    part.watch((key) => pokes.push(key));
    expect(pokes).toEqual(['installation']);
    api.seed(AgentRuns, finished(clock, 'small', 0));
    // The same runs again are nothing new.
    for (let i = 0; i < 600; i++) api.seed(AgentRuns, finished(clock, 'small', 0));
    expect(pokes).toHaveLength(1);
    const large = finished(clock, 'large', 0);
    const transcript = { state: 'full' as const, chunks: 9, bytes: 4e6, storedBytes: 1_100_000 };
    api.seed(AgentRuns, { ...large, status: { ...large.status, phase: 'done', transcript } });
    expect(pokes).toHaveLength(2);
  });
});

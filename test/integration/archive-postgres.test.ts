/** The archive on a real PostgreSQL server that the test starts. */
import { Registry } from 'prom-client';
import { PostgresArchive } from '../../src/archive/postgres-archive.js';
import { ArchiveUnavailableError } from '../../src/archive/types.js';
import type { SessionsQuery } from '../../src/archive/types.js';
import { createArchiveMetrics } from '../../src/observability/metrics.js';
import { collect } from '../../src/transcript/chunk-store.js';
import { eventually } from '../builders/api-server.js';
import { makeChunk, makeEntry, makeFinishedRun } from '../builders/archive-entries.js';
import type { RunParts } from '../builders/archive-entries.js';
import { FakeClock } from '../builders/fake-clock.js';
import { recordingLog } from '../builders/log.js';
import { startPostgres } from '../builders/postgres-server.js';
import type { PostgresServer } from '../builders/postgres-server.js';
import { outputEvent, toolEvent, userMessage } from '../builders/run-events.js';

const SCOPE = { workspace: 'acme', box: 'acme-box', agentUid: 'uid-greeter' };
const ALL: SessionsQuery = { except: [], waiting: false, limit: 100 };
const signal = new AbortController().signal;

describe('the archive on PostgreSQL', () => {
  let server: PostgresServer;
  const opened: PostgresArchive[] = [];

  beforeAll(async () => {
    server = await startPostgres();
  }, 300_000);

  afterAll(async () => {
    await Promise.all(opened.map((archive) => archive.close()));
    await server.remove();
  });

  beforeEach(async () => {
    const tables = 'boxwright_runs, boxwright_run_chunks, boxwright_purged_agents';
    const [there] = await server.query<{ there: boolean }>("select to_regclass('boxwright_runs') is not null as there");
    if (there?.there === true) await server.query(`truncate ${tables}`);
  });

  /** As another process would open it. */
  function open(url = server.url, makesTables = true) {
    const clock = new FakeClock();
    const registry = new Registry();
    const log = recordingLog();
    const metrics = createArchiveMetrics(registry);
    const archive = PostgresArchive.open({ url, clock, log: log.log, metrics, connections: 4, makesTables });
    opened.push(archive);
    return { archive, clock, registry, log };
  }

  async function dropTables(): Promise<void> {
    await server.query('drop table if exists boxwright_run_chunks, boxwright_runs, boxwright_purged_agents');
    await server.query('drop table if exists boxwright_migrations');
  }

  it('makes its tables once, whoever comes first', async () => {
    await dropTables();
    const processes = Array.from({ length: 6 }, () => open().archive);
    const lists = await Promise.all(processes.map((archive) => archive.list(SCOPE, 10, signal)));
    expect(lists).toEqual([[], [], [], [], [], []]);
    expect(await server.query('select version from boxwright_migrations')).toEqual([{ version: 1 }, { version: 2 }]);
  });

  it('updates the tables of an older release with their rows', async () => {
    await dropTables();
    const { archive } = open();
    await archive.put(makeEntry(makeFinishedRun('greeter-1')), signal);
    await server.query('delete from boxwright_migrations where version > 1');
    await server.query('drop index boxwright_runs_of_agent_by_end, boxwright_runs_that_wait');
    await server.query('alter table boxwright_runs drop column claimed, drop column waits');
    const reader = open(server.url, false).archive;
    await expect(reader.list(SCOPE, 10, signal)).rejects.toThrow('its tables are not updated yet');
    await open().archive.prepare(new FakeClock(), signal);
    const sessions = await open(server.url, false).archive.sessions(SCOPE, ALL, signal);
    expect(sessions.map(({ sessionId }) => sessionId)).toEqual(['s-greeter-1']);
  });

  it('is empty for a reader before the tables are made, which a reader never does', async () => {
    await dropTables();
    const reader = open(server.url, false);
    expect(await reader.archive.list(SCOPE, 10, signal)).toEqual([]);
    expect(await reader.archive.sessions(SCOPE, ALL, signal)).toEqual([]);
    expect(reader.archive.retryInMs()).toBe(0);
    expect(await server.query("select to_regclass('boxwright_runs') as made")).toEqual([{ made: null }]);
    await open().archive.put(makeEntry(makeFinishedRun('greeter-1')), signal);
    expect(await reader.archive.list(SCOPE, 10, signal)).toHaveLength(1);
  });

  it('needs no more than the right to select for a reader', async () => {
    await open().archive.put(makeEntry(makeFinishedRun('greeter-1')), signal);
    await server.query(`do $$ begin
      if not exists (select 1 from pg_roles where rolname = 'reader') then create role reader login; end if;
    end $$`);
    await server.query('grant select on all tables in schema public to reader');
    const { archive } = open(server.url.replace('boxwright:not-a-secret', 'reader:not-a-secret'), false);
    expect(await archive.list(SCOPE, 10, signal)).toHaveLength(1);
    expect(await archive.sessions(SCOPE, ALL, signal)).toHaveLength(1);
    await expect(archive.put(makeEntry(makeFinishedRun('greeter-2')), signal)).rejects.toThrow('SQLSTATE 42501');
  });

  it('makes its tables as soon as the server is there', async () => {
    await dropTables();
    await server.kill();
    const { archive, clock } = open();
    const prepared = archive.prepare(clock, signal);
    await eventually(() => archive.retryInMs() > 0, 'the tables were not asked for');
    await server.start();
    await clock.advance(10_000);
    await prepared;
    expect(await server.query('select max(version) as version from boxwright_migrations')).toEqual([{ version: 2 }]);
  });

  describe('sessions', () => {
    const at = (second: number) => new Date(Date.UTC(2026, 4, 1, 9, 0, second)).toISOString();
    const claim = {
      podUid: 'uid-pod',
      podName: 'pod',
      at: at(0),
      gatewayPod: 'g',
      gatewayUid: 'uid-g',
      gatewayAddress: '10.0.0.1:8443',
      epoch: 1,
    };
    const question = { kind: 'question' as const, text: 'Blue?', callId: 'c1' };

    interface Said {
      name: string;
      session: string;
      from: number;
      to: number;
      status?: RunParts['status'];
    }

    async function put(archive: PostgresArchive, { name, session, from, to, status }: Said): Promise<void> {
      const spec = { sessionId: session, createdAt: at(from) };
      const run = makeFinishedRun(name, { spec, status: { claim, finishedAt: at(to), ...status } });
      await archive.put(makeEntry(run, { sessionTitle: `title ${name}` }), signal);
    }

    async function filled(): Promise<PostgresArchive> {
      const { archive } = open();
      await put(archive, { name: 'a-1', session: 's-a', from: 1, to: 2 });
      await put(archive, { name: 'b-1', session: 's-b', from: 3, to: 30, status: { pending: question } });
      await put(archive, { name: 'c-1', session: 's-c', from: 4, to: 5, status: { pending: question } });
      await put(archive, { name: 'c-2', session: 's-c', from: 6, to: 7 });
      await put(archive, { name: 'a-2', session: 's-a', from: 20, to: 21 });
      return archive;
    }

    it('come by their latest end, with the first run, the last claimed one and the number of runs', async () => {
      const archive = await filled();
      const sessions = await archive.sessions(SCOPE, ALL, signal);
      expect(
        sessions.map(({ first, last, ...rest }) => ({
          ...rest,
          first: first.spec.sessionTitle,
          last: last?.metadata.name,
        })),
      ).toEqual([
        { sessionId: 's-b', runs: 1, createdAt: at(3), updatedAt: at(30), first: 'title b-1', last: 'b-1' },
        { sessionId: 's-a', runs: 2, createdAt: at(1), updatedAt: at(21), first: 'title a-1', last: 'a-2' },
        { sessionId: 's-c', runs: 2, createdAt: at(4), updatedAt: at(7), first: 'title c-1', last: 'c-2' },
      ]);
    });

    it('are at most as many as asked for, without those that are known', async () => {
      const archive = await filled();
      const ids = async (query: Partial<SessionsQuery>) =>
        (await archive.sessions(SCOPE, { ...ALL, ...query }, signal)).map(({ sessionId }) => sessionId);
      expect(await ids({ limit: 2 })).toEqual(['s-b', 's-a']);
      expect(await ids({ except: ['s-b'], limit: 1 })).toEqual(['s-a']);
      expect(await ids({ except: ['s-a', 's-b', 's-c'] })).toEqual([]);
    });

    it('wait while nothing that a pod took follows their question', async () => {
      const archive = await filled();
      const waiting = async () =>
        (await archive.sessions(SCOPE, { ...ALL, waiting: true }, signal)).map(({ sessionId }) => sessionId);
      expect(await waiting()).toEqual(['s-b']);
      const spec = { sessionId: 's-b', createdAt: at(40) };
      await archive.put(makeEntry(makeFinishedRun('b-2', { spec, status: { phase: 'cancelled' } })), signal);
      expect(await waiting()).toEqual(['s-b']);
      await put(archive, { name: 'b-3', session: 's-b', from: 50, to: 51 });
      expect(await waiting()).toEqual([]);
    });

    it('are read in part, without runs that are known', async () => {
      const archive = await filled();
      const query = { sessionIds: ['s-a', 's-c', 's-unknown'], exceptUids: ['uid-a-2', 'uid-c-1', 'uid-c-2'] };
      const parts = await archive.partsOf(SCOPE, query, signal);
      expect(parts.map(({ sessionId, runs, last }) => [sessionId, runs, last?.metadata.name])).toEqual([
        ['s-a', 1, 'a-1'],
      ]);
    });

    it('show the latest runs of a long one', async () => {
      const archive = await filled();
      const runs = await archive.session(SCOPE, 's-a', signal, 1);
      expect(runs.map(({ metadata }) => metadata.name)).toEqual(['a-2']);
    });

    it('belong to their agent', async () => {
      const archive = await filled();
      const scope = { ...SCOPE, agentUid: 'uid-spy' };
      expect(await archive.sessions(scope, ALL, signal)).toEqual([]);
      expect(await archive.sessions(scope, { ...ALL, waiting: true }, signal)).toEqual([]);
      expect(await archive.partsOf(scope, { sessionIds: ['s-a'], exceptUids: [] }, signal)).toEqual([]);
    });
  });

  it('gives back run and transcript as they were', async () => {
    const { archive } = open();
    const events = [userMessage(1, 'hello \u0000 \ud800'), toolEvent(2), outputEvent(3, 'Hello!')];
    const texts = { message: 'hello \u0000 \ud800 😀', output: 'quote " and \\ and \u0000' };
    const run = makeFinishedRun('greeter-1', {
      spec: { message: texts.message },
      status: { output: texts.output, transcript: { state: 'full', chunks: 2, bytes: 100 } },
    });
    const chunks = [await makeChunk(run, 0, events.slice(0, 1)), await makeChunk(run, 1, events.slice(1))];
    expect(await archive.put(makeEntry(run, { chunks }), signal)).toBe('stored');
    const found = await archive.find(SCOPE, { name: 'greeter-1' }, signal);
    expect(found?.spec).toEqual({ ...run.spec, sessionTitle: 'hello' });
    expect(found?.status).toEqual({ ...run.status, transcript: { state: 'archived', chunks: 2, bytes: 100 } });
    const stored = await archive.chunks(SCOPE, 'uid-greeter-1', signal);
    expect(stored).toEqual(chunks);
    expect(await collect(stored, 'archived')).toEqual({ events, state: 'archived' });
  });

  it('lists in the order of list_runs: acceptance, then name, both backwards', async () => {
    const { archive } = open();
    const accepted: [string, string][] = [
      ['run-a', '2026-05-01T09:00:00.001Z'],
      ['run-c', '2026-05-01T09:00:00.002Z'],
      ['run-b', '2026-05-01T09:00:00.002Z'],
      ['run-0', '2026-05-01T09:00:00.002Z'],
      ['run--x', '2026-05-01T09:00:00.003Z'],
    ];
    for (const [name, createdAt] of accepted) {
      await archive.put(makeEntry(makeFinishedRun(name, { spec: { createdAt } })), signal);
    }
    const names = async (limit: number) => (await archive.list(SCOPE, limit, signal)).map((run) => run.metadata.name);
    expect(await names(10)).toEqual(['run--x', 'run-c', 'run-b', 'run-0', 'run-a']);
    expect(await names(2)).toEqual(['run--x', 'run-c']);
  });

  it('gives the runs of a session oldest first', async () => {
    const { archive } = open();
    for (const number of [2, 1, 3]) {
      const spec = { sessionId: 's-talk', createdAt: `2026-05-01T09:00:0${number}.000Z` };
      await archive.put(makeEntry(makeFinishedRun(`talk-${number}`, { spec })), signal);
    }
    await archive.put(makeEntry(makeFinishedRun('other')), signal);
    const runs = await archive.session(SCOPE, 's-talk', signal);
    expect(runs.map((run) => run.metadata.name)).toEqual(['talk-1', 'talk-2', 'talk-3']);
  });

  it.each([
    ['another workspace', { ...SCOPE, workspace: 'rival' }],
    ['another Box', { ...SCOPE, box: 'rival-box' }],
    ['another agent', { ...SCOPE, agentUid: 'uid-spy' }],
  ])('shows nothing to %s', async (_who, scope) => {
    const { archive } = open();
    const run = makeFinishedRun('greeter-1');
    await archive.put(makeEntry(run, { chunks: [await makeChunk(run, 0, [toolEvent(1)])] }), signal);
    expect(await archive.list(scope, 10, signal)).toEqual([]);
    expect(await archive.session(scope, 's-greeter-1', signal)).toEqual([]);
    expect(await archive.find(scope, { name: 'greeter-1' }, signal)).toBeUndefined();
    expect(await archive.find(scope, { uid: 'uid-greeter-1' }, signal)).toBeUndefined();
    expect(await archive.chunks(scope, 'uid-greeter-1', signal)).toEqual([]);
    expect(await archive.list(SCOPE, 10, signal)).toHaveLength(1);
  });

  it('takes values for values, whatever they look like', async () => {
    const { archive } = open();
    await archive.put(makeEntry(makeFinishedRun('greeter-1')), signal);
    const hostile = "x' or '1'='1'; drop table boxwright_runs; --";
    expect(await archive.find(SCOPE, { name: hostile }, signal)).toBeUndefined();
    expect(await archive.session({ ...SCOPE, agentUid: hostile }, hostile, signal)).toEqual([]);
    expect(await archive.list(SCOPE, 10, signal)).toHaveLength(1);
  });

  it('is the same after the same run was stored by two controllers at once, many times', async () => {
    const run = makeFinishedRun('greeter-1');
    const chunks = await Promise.all([0, 1, 2].map((seq) => makeChunk(run, seq, [toolEvent(seq + 1)])));
    const [one, other] = [open().archive, open().archive];
    const puts = Array.from({ length: 20 }, (_, turn) =>
      (turn % 2 === 0 ? one : other).put(makeEntry(run, { chunks }), signal),
    );
    expect(new Set(await Promise.all(puts))).toEqual(new Set(['stored']));
    expect(await open().archive.list(SCOPE, 10, signal)).toHaveLength(1);
    expect(await open().archive.chunks(SCOPE, 'uid-greeter-1', signal)).toEqual(chunks);
  });

  it('never lets an older version replace a newer one', async () => {
    const { archive } = open();
    const version = (resourceVersion: string, totalTokens: number) =>
      makeEntry(
        makeFinishedRun('greeter-1', {
          metadata: { resourceVersion },
          status: { usage: { steps: 1, inputTokens: totalTokens, outputTokens: 0, totalTokens } },
        }),
      );
    await archive.put(version('999', 10), signal);
    await archive.put(version('1001', 30), signal);
    await archive.put(version('1000', 20), signal);
    const found = await archive.find(SCOPE, { name: 'greeter-1' }, signal);
    expect(found?.status?.usage?.totalTokens).toBe(30);
  });

  it('keeps input and chunks that retention removed from the cluster later', async () => {
    const { archive } = open();
    const input = { encoding: 'gzip' as const, bytes: 5_000, sha256: 'ab', data: 'H4sI' };
    const { message: _message, ...spec } = makeFinishedRun('greeter-1').spec;
    const before = { ...makeFinishedRun('greeter-1'), spec: { ...spec, input } };
    const chunk = await makeChunk(before, 0, [toolEvent(1)]);
    await archive.put(makeEntry(before, { chunks: [chunk] }), signal);
    const { data: _data, ...left } = input;
    const after = { ...makeFinishedRun('greeter-1', { metadata: { resourceVersion: '2000' } }) };
    await archive.put(makeEntry({ ...after, spec: { ...spec, input: left } }), signal);
    expect((await archive.find(SCOPE, { name: 'greeter-1' }, signal))?.spec.input).toEqual(input);
    expect(await archive.chunks(SCOPE, 'uid-greeter-1', signal)).toEqual([chunk]);
  });

  it('leaves out a chunk that was damaged before, and stores the rest', async () => {
    const { archive } = open();
    const run = makeFinishedRun('greeter-1');
    const whole = await makeChunk(run, 0, [toolEvent(1)]);
    const damaged = { ...whole, seq: 1, sha256: '\u0000' };
    expect(await archive.put(makeEntry(run, { chunks: [whole, damaged] }), signal)).toBe('stored');
    expect(await archive.chunks(SCOPE, 'uid-greeter-1', signal)).toEqual([whole]);
  });

  it('purges an agent with all that belongs to it, and nothing of others', async () => {
    const { archive } = open();
    for (let number = 0; number < 450; number++) {
      const run = makeFinishedRun(`greeter-${number}`);
      const chunks = number % 50 === 0 ? [await makeChunk(run, 0, [toolEvent(1)])] : [];
      await archive.put(makeEntry(run, { chunks }), signal);
    }
    const other = makeFinishedRun('spy-1', { spec: { agent: 'spy', agentUid: 'uid-spy' } });
    await archive.put(makeEntry(other), signal);
    await archive.purge('uid-greeter', signal);
    expect(await server.query('select name from boxwright_runs')).toEqual([{ name: 'spy-1' }]);
    expect(await server.query('select run_uid from boxwright_run_chunks')).toEqual([]);
    await archive.purge('uid-greeter', signal);
  });

  it('stores nothing of a purged agent any more, whatever a late controller sends', async () => {
    const [one, other] = [open().archive, open().archive];
    const late = Array.from({ length: 30 }, (_, number) =>
      (number % 2 === 0 ? one : other).put(makeEntry(makeFinishedRun(`greeter-${number}`)), signal),
    );
    await Promise.all([...late, one.purge('uid-greeter', signal)]);
    expect(await server.query('select uid from boxwright_runs')).toEqual([]);
    expect(await other.put(makeEntry(makeFinishedRun('greeter-99')), signal)).toBe('purged');
    expect(await server.query('select uid from boxwright_runs')).toEqual([]);
  });

  it('fails at once while the server is away, says so once, and comes back by itself with all data', async () => {
    const { archive, clock, log, registry } = open();
    await archive.put(makeEntry(makeFinishedRun('greeter-1')), signal);
    await server.kill();
    await expect(archive.list(SCOPE, 10, signal)).rejects.toThrow(ArchiveUnavailableError);
    expect(archive.retryInMs()).toBe(5_000);
    await expect(archive.put(makeEntry(makeFinishedRun('greeter-2')), signal)).rejects.toThrow(
      'the archive cannot be used: the last call failed a moment ago',
    );
    await clock.advance(5_000);
    await expect(archive.list(SCOPE, 10, signal)).rejects.toThrow('ECONNREFUSED');
    expect(log.messages()).toEqual(['error the archive cannot be used']);
    expect(await registry.getSingleMetricAsString('boxwright_archive_up')).toMatch(/boxwright_archive_up 0/);
    await server.start();
    await clock.advance(5_000);
    expect(await archive.list(SCOPE, 10, signal)).toHaveLength(1);
    expect(await archive.put(makeEntry(makeFinishedRun('greeter-2')), signal)).toBe('stored');
    expect(log.messages()).toEqual(['error the archive cannot be used', 'info the archive can be used again']);
    expect(await registry.getSingleMetricAsString('boxwright_archive_up')).toMatch(/boxwright_archive_up 1/);
  });

  it('starts while the server is away', async () => {
    await server.kill();
    const { archive, clock } = open();
    await expect(archive.list(SCOPE, 10, signal)).rejects.toThrow(ArchiveUnavailableError);
    await server.start();
    await clock.advance(5_000);
    expect(await archive.list(SCOPE, 10, signal)).toEqual([]);
  });

  it('tells neither address nor password, in errors and in logs', async () => {
    const { archive, log } = open(server.url.replace('boxwright:not-a-secret', 'nobody:hunter2'));
    const error = await archive.list(SCOPE, 10, signal).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(String(error)).toBe('ArchiveUnavailableError: the archive cannot be used: SQLSTATE 28000');
    expect(JSON.stringify(log.lines)).not.toMatch(/hunter2|127\.0\.0\.1|nobody/);
  });

  it('gives a call up when it is told to', async () => {
    const { archive } = open();
    const stop = new AbortController();
    stop.abort();
    await expect(archive.list(SCOPE, 10, stop.signal)).rejects.toThrow('the call was given up');
    expect(archive.retryInMs()).toBe(0);
    expect(await archive.list(SCOPE, 10, signal)).toEqual([]);
  });
});

/** The tools that read runs, with an archive behind the cluster: the same answers before and after the object is gone. */
import * as fc from '../builders/properties.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { AgentRunChunks } from '../../src/api/v1alpha1/agent-run-chunk.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { createRegistry } from '../../src/mcp/registry.js';
import { writeChunk } from '../../src/transcript/chunk-store.js';
import { encodeEvents } from '../../src/transcript/codec.js';
import { makeEntry } from '../builders/archive-entries.js';
import { McpHarness, OTHER_KEY } from '../builders/mcp-harness.js';
import { MemoryArchive } from '../builders/memory-archive.js';
import { assistantMessage, outputEvent, toolEvent, userMessage } from '../builders/run-events.js';

const AGENT = { agentId: 'acme-box.greeter' };
const NAMESPACE = 'bw-acme-box';
const AWAY_NOTE =
  'The archive of older runs cannot be reached at the moment: runs that are no longer in the cluster are missing here.';

class ArchiveWorld {
  readonly archive = new MemoryArchive();
  readonly mcp = new McpHarness(createRegistry(), this.archive);
  readonly agentUid = this.mcp.api.peek(Agents, `${NAMESPACE}/greeter`)?.metadata.uid ?? '';

  /** A finished run in the cluster, accepted in that second, with a transcript of one tool call. */
  async finishedRun(name: string, second: number, spec: Partial<AgentRun['spec']> = {}): Promise<AgentRun> {
    const time = (offset: number) => new Date(Date.UTC(2026, 4, 1, 9, 0, second, offset)).toISOString();
    const run = this.mcp.seedRun('acme-box', name, {
      spec: { agentUid: this.agentUid, createdAt: time(0), message: `hello ${name}`, ...spec },
      status: {
        phase: 'done',
        reason: 'Completed',
        output: `answer ${name}`,
        outputTruncated: true,
        finishedAt: time(500),
        usageFinal: true,
        usage: { steps: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15, costUsd: '0.000123' },
        provider: 'boxwright',
        model: 'scripted',
        transcript: { state: 'full', chunks: 1, bytes: 100, messages: 2 },
      },
    });
    const said = [userMessage(1, `hello ${name}`), toolEvent(2), assistantMessage(3, `answer ${name} in full`)];
    const events = [...said, outputEvent(4, `answer ${name} in full`)];
    const owner = { namespace: NAMESPACE, name, uid: run.metadata.uid ?? '' };
    await writeChunk(this.mcp.api, owner, 0, await encodeEvents(events));
    this.mcp.api.clearRecords();
    return run;
  }

  /** As the controller: what the API server has goes to the archive. */
  async store(name: string): Promise<void> {
    const run = this.mcp.api.peek(AgentRuns, `${NAMESPACE}/${name}`);
    const chunk = this.mcp.api.peek(AgentRunChunks, `${NAMESPACE}/${name}.00`);
    if (run === undefined || chunk === undefined) throw new Error(`there is no run ${name}`);
    const sessionTitle = run.spec.sessionTitle ?? run.spec.message;
    await this.archive.put(makeEntry(run, { agentUid: this.agentUid, sessionTitle, chunks: [chunk.spec] }));
    this.archive.calls.length = 0;
  }

  vanish(name: string): void {
    this.mcp.api.vanish(AgentRunChunks, `${NAMESPACE}/${name}.00`);
    this.mcp.api.vanish(AgentRuns, `${NAMESPACE}/${name}`);
    this.mcp.api.clearRecords();
  }

  async archiveAndRemove(name: string): Promise<void> {
    await this.store(name);
    this.vanish(name);
  }

  async listedIds(limit = 200): Promise<string[]> {
    const { payload } = await this.mcp.call('list_runs', { ...AGENT, limit });
    return (payload as { runs: { runId: string }[] }).runs.map(({ runId }) => runId);
  }
}

describe('list_runs', () => {
  it('is the same before, during and after the removal of runs, at every length', async () => {
    const world = new ArchiveWorld();
    const seconds: [string, number][] = [
      ['greeter-a', 1],
      ['greeter-b', 2],
      ['greeter-c', 2],
      ['greeter-d', 3],
      ['greeter-e', 4],
    ];
    for (const [name, second] of seconds) await world.finishedRun(name, second);
    const lists = async () =>
      Promise.all([1, 2, 3, 4, 5, 200].map((limit) => world.mcp.call('list_runs', { ...AGENT, limit })));
    const before = (await lists()).map(({ payload }) => payload);
    for (const name of ['greeter-c', 'greeter-e', 'greeter-a']) {
      await world.store(name);
      expect((await lists()).map(({ payload }) => payload)).toEqual(before);
      world.vanish(name);
      expect((await lists()).map(({ payload }) => payload)).toEqual(before);
    }
    expect(await world.listedIds()).toEqual(['greeter-e', 'greeter-d', 'greeter-c', 'greeter-b', 'greeter-a']);
  });

  it('costs no call of the cluster, with and without archived runs', async () => {
    const world = new ArchiveWorld();
    await world.finishedRun('greeter-a', 1);
    expect(await world.listedIds()).toEqual(['greeter-a']);
    await world.archiveAndRemove('greeter-a');
    expect(await world.listedIds()).toEqual(['greeter-a']);
    expect(world.mcp.requests()).toEqual([]);
  });

  it('shows a deleted run until the archive has it', async () => {
    const world = new ArchiveWorld();
    await world.finishedRun('greeter-a', 1);
    const run = world.mcp.api.peek(AgentRuns, `${NAMESPACE}/greeter-a`);
    if (run === undefined) throw new Error('there is no run');
    const metadata = { ...run.metadata, deletionTimestamp: '2026-05-01T09:30:00Z', finalizers: ['boxwright.dev/fold'] };
    world.mcp.api.seed(AgentRuns, { ...run, metadata });
    expect(await world.listedIds()).toEqual(['greeter-a']);
    expect((await world.mcp.call('get_run', { ...AGENT, runId: 'greeter-a' })).isError).toBe(false);
    await world.archiveAndRemove('greeter-a');
    expect(await world.listedIds()).toEqual(['greeter-a']);
  });

  it('shows what the cluster has and says so while the archive is away', async () => {
    const world = new ArchiveWorld();
    await world.finishedRun('greeter-a', 1);
    await world.finishedRun('greeter-b', 2);
    await world.archiveAndRemove('greeter-a');
    world.archive.available = false;
    const { payload, isError } = await world.mcp.call('list_runs', AGENT);
    expect(isError).toBe(false);
    expect(payload).toEqual({ runs: [expect.objectContaining({ runId: 'greeter-b' })], note: AWAY_NOTE });
  });

  it('never shows a run twice or loses one, whatever is archived, removed and not yet seen', async () => {
    const fate = fc.constantFrom('live', 'archived', 'removed');
    const runs = fc.array(fc.record({ second: fc.integer({ min: 0, max: 3 }), fate }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(runs, fc.integer({ min: 1, max: 14 }), async (made, limit) => {
        const world = new ArchiveWorld();
        const names: { name: string; second: number }[] = [];
        for (const [number, { second, fate }] of made.entries()) {
          const name = `greeter-${String(number).padStart(2, '0')}`;
          names.push({ name, second });
          await world.finishedRun(name, second);
          if (fate !== 'live') await world.store(name);
          if (fate === 'removed') world.vanish(name);
        }
        const newestFirst = names.sort((a, b) => b.second - a.second || (a.name < b.name ? 1 : -1));
        expect(await world.listedIds(limit)).toEqual(newestFirst.slice(0, limit).map(({ name }) => name));
      }),
      { numRuns: 25 },
    );
  });

  it('misses no run that leaves the cluster while the archive is being read', async () => {
    const world = new ArchiveWorld();
    await world.finishedRun('greeter-a', 1);
    const list = world.archive.list.bind(world.archive);
    world.archive.list = async (scope, limit) => {
      await world.archiveAndRemove('greeter-a');
      return await list(scope, limit);
    };
    expect(await world.listedIds()).toEqual(['greeter-a']);
  });
});

describe('get_run', () => {
  it('gives the same answer after the object is gone, but for where the transcript is', async () => {
    const world = new ArchiveWorld();
    await world.finishedRun('greeter-a', 1);
    const args = { ...AGENT, runId: 'greeter-a', includeToolCalls: true };
    const before = await world.mcp.call('get_run', args);
    await world.archiveAndRemove('greeter-a');
    const after = await world.mcp.call('get_run', args);
    expect(after.payload).toEqual({ ...before.payload, transcript: 'archived' });
    expect(after.payload).toMatchObject({
      output: 'answer greeter-a in full',
      input: 'hello greeter-a',
      toolCalls: [{ step: 1, tool: 'shell', input: '{"command":"ls"}', result: '{"exitCode":0}', isError: false }],
    });
    expect(world.mcp.requests()).toEqual(['get agentruns']);
    expect(world.archive.calls).toEqual(['find', 'chunks']);
  });

  it('asks the archive nothing about a run of the cluster', async () => {
    const world = new ArchiveWorld();
    await world.finishedRun('greeter-a', 1);
    await world.mcp.call('get_run', { ...AGENT, runId: 'greeter-a', includeToolCalls: true });
    expect(world.archive.calls).toEqual([]);
  });

  it('does not wait for an archived run', async () => {
    const world = new ArchiveWorld();
    await world.finishedRun('greeter-a', 1);
    await world.archiveAndRemove('greeter-a');
    const { payload } = await world.mcp.call('get_run', { ...AGENT, runId: 'greeter-a', waitSeconds: 600 });
    expect(payload).toMatchObject({ runId: 'greeter-a', status: 'done' });
  });

  it('reads input and transcript that were moved to the archive while the run is still in the cluster', async () => {
    const world = new ArchiveWorld();
    const input = { encoding: 'gzip' as const, bytes: 5, sha256: 'ab', data: 'H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==' };
    const run = await world.finishedRun('greeter-a', 1, { message: undefined, input });
    const args = { ...AGENT, runId: 'greeter-a', includeToolCalls: true };
    const before = await world.mcp.call('get_run', args);
    expect(before.payload.input).toBe('hello');
    await world.store('greeter-a');
    world.mcp.api.vanish(AgentRunChunks, `${NAMESPACE}/greeter-a.00`);
    const { data: _data, ...left } = input;
    const { message: _message, ...spec } = run.spec;
    const transcript = { state: 'archived' as const, chunks: 0, bytes: 0 };
    const status = { ...run.status, phase: 'done' as const, transcript };
    world.mcp.api.seed(AgentRuns, { ...run, spec: { ...spec, input: left }, status });
    expect((await world.mcp.call('get_run', args)).payload).toEqual({ ...before.payload, transcript: 'archived' });
  });

  it('says that the archive is away instead of denying a run', async () => {
    const world = new ArchiveWorld();
    await world.finishedRun('greeter-a', 1);
    await world.archiveAndRemove('greeter-a');
    world.archive.available = false;
    const { isError, payload } = await world.mcp.call('get_run', { ...AGENT, runId: 'greeter-a' });
    expect(isError).toBe(true);
    expect(JSON.stringify(payload)).toContain(
      'there is no such run in the cluster, and the archive of older runs cannot be reached at the moment: try again later',
    );
  });

  it('shows nothing to another workspace, and nothing of a former agent of the same name', async () => {
    const world = new ArchiveWorld();
    await world.finishedRun('greeter-a', 1);
    await world.archiveAndRemove('greeter-a');
    const foreign = await world.mcp.call('get_run', { ...AGENT, runId: 'greeter-a' }, OTHER_KEY);
    expect(foreign.isError).toBe(true);
    expect(JSON.stringify(foreign.payload)).toContain('agent not found');
    world.mcp.api.vanish(Agents, `${NAMESPACE}/greeter`);
    world.mcp.seedAgent('acme-box', 'greeter');
    expect(await world.listedIds()).toEqual([]);
    const { payload } = await world.mcp.call('get_run', { ...AGENT, runId: 'greeter-a' });
    expect(JSON.stringify(payload)).toContain('run not found');
  });
});

describe('get_session', () => {
  const SESSION = { ...AGENT, sessionId: 's-talk' };

  async function talk(): Promise<ArchiveWorld> {
    const world = new ArchiveWorld();
    for (const number of [1, 2, 3]) {
      const title = number === 1 ? { sessionTitle: 'The talk' } : {};
      await world.finishedRun(`greeter-${number}`, number, { sessionId: 's-talk', ...title });
    }
    return world;
  }

  it('is the same on every page while its runs leave the cluster, up to the last', async () => {
    const world = await talk();
    const pages = async () =>
      (
        await Promise.all(
          [
            { limit: 50, offset: 0 },
            { limit: 2, offset: 0 },
            { limit: 2, offset: 2 },
            { limit: 3, offset: 4 },
          ].map((page) => world.mcp.call('get_session', { ...SESSION, ...page })),
        )
      ).map(({ payload }) => payload);
    const before = await pages();
    expect(before[0]).toMatchObject({ title: 'The talk', runCount: 3, nextOffset: null });
    for (const name of ['greeter-1', 'greeter-2', 'greeter-3']) {
      await world.archiveAndRemove(name);
      expect(await pages()).toEqual(before);
    }
  });

  it('reads archived runs without a call of the cluster', async () => {
    const world = await talk();
    for (const name of ['greeter-1', 'greeter-2']) await world.archiveAndRemove(name);
    await world.mcp.call('get_session', SESSION);
    expect(world.mcp.requests()).toEqual(['get agentruns', 'get agentrunchunks']);
  });

  it('reads no run in front of the page, neither here nor there', async () => {
    const world = await talk();
    for (const name of ['greeter-1', 'greeter-2']) await world.archiveAndRemove(name);
    world.archive.calls.length = 0;
    const { payload } = await world.mcp.call('get_session', { ...SESSION, limit: 2, offset: 4 });
    expect(payload).toMatchObject({ messages: [{ runId: 'greeter-1' }, { runId: 'greeter-1' }], nextOffset: null });
    expect(world.mcp.requests()).toEqual([]);
    expect(world.archive.calls).toEqual(['session', 'find', 'chunks']);
  });

  it('shows what the cluster has and says so while the archive is away', async () => {
    const world = await talk();
    await world.archiveAndRemove('greeter-1');
    world.archive.available = false;
    const { payload } = await world.mcp.call('get_session', SESSION);
    expect(payload).toMatchObject({ runCount: 2, note: AWAY_NOTE });
  });

  it('is continued by send_message when nothing of it is left in the cluster', async () => {
    const world = await talk();
    for (const name of ['greeter-1', 'greeter-2', 'greeter-3']) await world.archiveAndRemove(name);
    const message = { ...SESSION, message: 'and then?', waitSeconds: 0 };
    const { isError, payload } = await world.mcp.call('send_message', message);
    expect([isError, payload.sessionId, payload.status]).toEqual([false, 's-talk', 'running']);
    expect(world.mcp.api.all(AgentRuns).map(({ spec }) => spec.sessionId)).toEqual(['s-talk']);
    const { payload: session } = await world.mcp.call('get_session', SESSION);
    expect(session).toMatchObject({ title: 'The talk', runCount: 4 });
  });

  it('is continued while its deleted runs wait for the archive', async () => {
    const world = await talk();
    for (const run of world.mcp.api.all(AgentRuns)) {
      const metadata = { ...run.metadata, deletionTimestamp: '2026-05-01T09:30:00Z', finalizers: ['x/y'] };
      world.mcp.api.seed(AgentRuns, { ...run, metadata });
    }
    const { isError } = await world.mcp.call('send_message', { ...SESSION, message: 'and then?', waitSeconds: 0 });
    expect(isError).toBe(false);
  });

  it('is neither denied nor continued while the archive is away', async () => {
    const world = await talk();
    for (const name of ['greeter-1', 'greeter-2', 'greeter-3']) await world.archiveAndRemove(name);
    world.archive.available = false;
    const { isError, payload } = await world.mcp.call('send_message', { ...SESSION, message: 'and then?' });
    expect(isError).toBe(true);
    expect(JSON.stringify(payload)).toContain(
      'this session is not in the cluster, and the archive of older runs cannot be reached at the moment: try again later',
    );
    expect(world.mcp.api.writes).toEqual([]);
    expect((await world.mcp.call('get_session', SESSION)).payload).toEqual(payload);
  });

  it('that nobody knows is not found, here and there', async () => {
    const world = await talk();
    const { payload } = await world.mcp.call('send_message', { ...AGENT, sessionId: 's-nobody', message: 'hi' });
    expect(JSON.stringify(payload)).toContain('session not found');
  });
});

describe('list_sessions', () => {
  interface Session {
    sessionId: string;
    title: string;
    runCount: number;
    pending: { text: string } | null;
  }

  async function sessionsOf(world: ArchiveWorld, more: Record<string, unknown> = {}): Promise<Session[]> {
    const { payload, isError } = await world.mcp.call('list_sessions', { ...AGENT, ...more });
    expect(isError).toBe(false);
    return (payload as unknown as { sessions: Session[] }).sessions;
  }

  async function talks(): Promise<ArchiveWorld> {
    const world = new ArchiveWorld();
    await world.finishedRun('greeter-1', 1, { sessionTitle: 'One' });
    await world.finishedRun('greeter-2', 2, { sessionTitle: 'Two' });
    await world.finishedRun('greeter-3', 3, { sessionId: 's-greeter-1' });
    await world.finishedRun('greeter-4', 4, { sessionTitle: 'Four' });
    return world;
  }

  it('is the same while runs leave the cluster, at every length', async () => {
    const world = await talks();
    const lists = () => Promise.all([1, 2, 3, 200].map((limit) => sessionsOf(world, { limit })));
    const before = await lists();
    expect(before[3]?.map(({ title, runCount }) => [title, runCount])).toEqual([
      ['Four', 1],
      ['One', 2],
      ['Two', 1],
    ]);
    for (const name of ['greeter-1', 'greeter-2', 'greeter-4', 'greeter-3']) {
      await world.store(name);
      expect(await lists()).toEqual(before);
      world.vanish(name);
      expect(await lists()).toEqual(before);
    }
  });

  it('reads the archive twice and the cluster never, however many sessions there are', async () => {
    const world = await talks();
    await world.archiveAndRemove('greeter-2');
    await sessionsOf(world);
    expect(world.archive.calls).toEqual(['sessions', 'parts']);
    expect(world.mcp.requests()).toEqual([]);
  });

  it('counts runs that were removed by hand from the middle of a session', async () => {
    const world = await talks();
    await world.finishedRun('greeter-5', 5, { sessionId: 's-greeter-1' });
    const before = await sessionsOf(world);
    expect(before[0]).toMatchObject({ title: 'One', runCount: 3 });
    await world.archiveAndRemove('greeter-3');
    expect(await sessionsOf(world)).toEqual(before);
  });

  it('shows archived sessions that wait for an answer, until they got one', async () => {
    const world = new ArchiveWorld();
    const claim = {
      podUid: 'p',
      podName: 'p',
      at: '2026-05-01T09:00:00.000Z',
      gatewayPod: 'g',
      gatewayUid: 'g',
      gatewayAddress: 'g:1',
      epoch: 1,
    };
    const pending = { kind: 'question' as const, text: 'Blue?', callId: 'c1' };
    for (const [name, second] of [
      ['greeter-1', 1],
      ['greeter-2', 2],
    ] as const) {
      const run = await world.finishedRun(name, second);
      world.mcp.api.seed(AgentRuns, { ...run, status: { ...run.status, phase: 'done', claim, pending } });
    }
    const later = await world.finishedRun('greeter-3', 3, { sessionId: 's-greeter-2' });
    world.mcp.api.seed(AgentRuns, { ...later, status: { ...later.status, phase: 'done', claim } });
    const waiting = async () => (await sessionsOf(world, { pending: true })).map(({ sessionId }) => sessionId);
    const asked = async (runId: string) => (await world.mcp.call('get_run', { ...AGENT, runId })).payload.pending;
    expect(await waiting()).toEqual(['s-greeter-1']);
    for (const name of ['greeter-1', 'greeter-2', 'greeter-3']) await world.archiveAndRemove(name);
    expect(await waiting()).toEqual(['s-greeter-1']);
    expect(await asked('greeter-1')).toMatchObject({ text: 'Blue?' });
    expect(await asked('greeter-2')).toBeNull();
  });

  it('shows what the cluster has and says so while the archive is away', async () => {
    const world = await talks();
    await world.archiveAndRemove('greeter-2');
    world.archive.available = false;
    const { payload } = await world.mcp.call('list_sessions', AGENT);
    expect(payload).toMatchObject({ sessions: [{ title: 'Four' }, { title: 'One' }], note: AWAY_NOTE });
  });
});

test('cancel_run answers for an archived run as for any that has ended', async () => {
  const world = new ArchiveWorld();
  await world.finishedRun('greeter-a', 1);
  await world.archiveAndRemove('greeter-a');
  const { payload } = await world.mcp.call('cancel_run', { ...AGENT, runId: 'greeter-a' });
  expect(payload).toEqual({ runId: 'greeter-a', status: 'done', note: null });
  expect(world.mcp.api.writes).toEqual([]);
});

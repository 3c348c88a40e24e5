/** Sessions and memories: list_sessions, get_session, list_memories. */
import { AgentRunChunks } from '../../src/api/v1alpha1/agent-run-chunk.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import type { RunEvent } from '../../src/protocol/run.js';
import { encodeEvents } from '../../src/transcript/codec.js';
import { McpHarness } from '../builders/mcp-harness.js';

const AGENT = 'acme-box.greeter';

let harness: McpHarness;
beforeEach(() => {
  harness = new McpHarness();
});

interface Turn {
  minute: number;
  spec?: object;
  status?: Partial<NonNullable<AgentRun['status']>>;
  /** What the agent said, one after the other; null = no transcript. */
  said?: string[] | null;
  /** Whether the gateway counted its messages; earlier ones did not. */
  counts?: boolean;
}

const counted = (counts: boolean, said: string[]) => (counts ? { messages: 1 + said.length } : {});

const at = (minute: number, seconds = 0) =>
  new Date(Date.parse('2026-05-01T08:00:00Z') + minute * 60_000 + seconds * 1000).toISOString();

/** A finished run with its transcript. */
async function seedTurn(name: string, turn: Turn) {
  const { minute, spec = {}, status = {}, said = [`answer of ${name}`], counts = true } = turn;
  const message = `question of ${name}`;
  const run = harness.seedRun('acme-box', name, {
    spec: {
      agentUid: harness.api.peek(Agents, 'bw-acme-box/greeter')?.metadata.uid,
      message,
      createdAt: at(minute),
      ...spec,
    },
    status: {
      phase: 'done',
      finishedAt: at(minute, 30),
      output: said?.at(-1) ?? 'from the status',
      ...(said === null ? {} : { transcript: { state: 'full', chunks: 1, bytes: 10, ...counted(counts, said) } }),
      ...status,
    },
  });
  if (said === null) return;
  const events: RunEvent[] = [
    { type: 'message', v: 1, seq: 1, at: at(minute, 1), message: { role: 'user', text: message } },
    ...said.map((text, index): RunEvent => ({
      type: 'message', v: 1, seq: index + 2, at: at(minute, index + 2), message: { role: 'assistant', text },
    })),
  ]; // prettier-ignore
  const chunk = await encodeEvents(events);
  harness.api.seed(AgentRunChunks, {
    apiVersion: 'boxwright.dev/v1alpha1',
    kind: 'AgentRunChunk',
    metadata: { namespace: 'bw-acme-box', name: `${name}.00` },
    spec: {
      run: name,
      runUid: run.metadata.uid ?? '',
      seq: 0,
      bytes: chunk.bytes,
      sha256: chunk.sha256,
      data: chunk.data,
    },
  });
}

const list = async (args: object = {}) =>
  (await harness.call('list_sessions', { agentId: AGENT, ...args })).payload['sessions'] as Record<string, unknown>[];
const get = (args: object) => harness.call('get_session', { agentId: AGENT, ...args });

describe('list_sessions', () => {
  test('shows conversations, the latest first, without a request', async () => {
    await seedTurn('greeter-1', { minute: 1 });
    await seedTurn('greeter-2', {
      minute: 2,
      spec: { sessionTitle: 'trigger: hook', trigger: { origin: 'trigger', name: 'hook' } },
    });
    await seedTurn('greeter-3', { minute: 3, spec: { sessionId: 's-greeter-1' } });
    harness.seedRun('acme-box', 'other-1', { spec: { agent: 'other', createdAt: at(4) } });
    harness.api.clearRecords();
    expect(await list()).toEqual([
      {
        sessionId: 's-greeter-1', title: 'question of greeter-1', runCount: 2, pending: null,
        createdAt: at(1), updatedAt: at(3, 30),
      },
      {
        sessionId: 's-greeter-2', title: 'trigger: hook', runCount: 1, pending: null,
        createdAt: at(2), updatedAt: at(2, 30),
      },
    ]); // prettier-ignore
    expect(harness.requests()).toEqual([]);
  });

  test('limits, filters, and knows nothing of a deleted namesake', async () => {
    for (let minute = 0; minute < 25; minute++) await seedTurn(`greeter-${minute}`, { minute });
    harness.seedRun('acme-box', 'greeter-old', { spec: { agentUid: 'uid-of-a-namesake', createdAt: at(90) } });
    expect(await list()).toHaveLength(20);
    expect(await list({ limit: 200 })).toHaveLength(25);
    expect((await list({ limit: 1 })).map(({ sessionId }) => sessionId)).toEqual(['s-greeter-24']);
    expect(await list({ pending: true })).toEqual([]);
  });

  test('a run that works moves its session to the top', async () => {
    await seedTurn('greeter-1', { minute: 1 });
    await seedTurn('greeter-2', { minute: 2 });
    harness.seedRun('acme-box', 'greeter-3', { spec: { sessionId: 's-greeter-1', createdAt: at(5) } });
    expect((await list()).map(({ sessionId, updatedAt }) => [sessionId, updatedAt])).toEqual([
      ['s-greeter-1', at(5)],
      ['s-greeter-2', at(2, 30)],
    ]);
  });

  test.each([
    [{ limit: 0 }, 'argument "limit" must be at least 1'],
    [{ limit: 201 }, 'argument "limit" must be at most 200'],
    [{ pending: 'yes' }, 'argument "pending" must be a boolean, got a string'],
  ])('with %j says what is wrong', async (args, error) => {
    expect((await harness.call('list_sessions', { agentId: AGENT, ...args })).payload).toEqual({ error });
  });
});

describe('get_session', () => {
  test('shows what was said over all runs, oldest first', async () => {
    await seedTurn('greeter-1', { minute: 1, said: ['I look.', 'Done.'] });
    await seedTurn('greeter-2', { minute: 2, spec: { sessionId: 's-greeter-1' } });
    harness.api.clearRecords();
    const { payload } = await get({ sessionId: 's-greeter-1' });
    expect(payload).toEqual({
      sessionId: 's-greeter-1', title: 'question of greeter-1', runCount: 2, pending: null,
      createdAt: at(1), updatedAt: at(2, 30), files: [],
      messages: [
        { runId: 'greeter-1', role: 'user', text: 'question of greeter-1', truncated: false, at: at(1) },
        { runId: 'greeter-1', role: 'agent', text: 'I look.', truncated: false, at: at(1, 2) },
        { runId: 'greeter-1', role: 'agent', text: 'Done.', truncated: false, at: at(1, 3) },
        { runId: 'greeter-2', role: 'user', text: 'question of greeter-2', truncated: false, at: at(2) },
        { runId: 'greeter-2', role: 'agent', text: 'answer of greeter-2', truncated: false, at: at(2, 2) },
      ],
      nextOffset: null,
    }); // prettier-ignore
    expect(harness.requests().sort()).toEqual([
      'get agentrunchunks',
      'get agentrunchunks',
      'get agentruns',
      'get agentruns',
    ]);
  });

  test.each([
    ['counted', () => true],
    ['not counted', () => false],
    ['counted in part, as during an upgrade', (n: number) => n > 5],
  ])('pages backwards from the newest message; runs are %s', async (_what, counts) => {
    for (let n = 1; n <= 12; n++) {
      await seedTurn(`greeter-${n}`, { minute: n, spec: ofSession(n), counts: counts(n) });
    }
    const seen: string[] = [];
    for (let offset: unknown = 0; offset !== null;) {
      const { payload } = await get({ sessionId: 's-greeter-1', limit: 7, offset });
      const messages = payload['messages'] as { text: string }[];
      expect(messages.length).toBeLessThanOrEqual(7);
      seen.unshift(...messages.map(({ text }) => text));
      offset = payload['nextOffset'];
    }
    const expected = Array.from({ length: 12 }, (_, n) => [
      `question of greeter-${n + 1}`,
      `answer of greeter-${n + 1}`,
    ]);
    expect(seen).toEqual(expected.flat());
  });

  const ofSession = (n: number) => (n === 1 ? {} : { sessionId: 's-greeter-1' });

  async function requestsOf(page: { limit: number; offset?: number }, counts = true) {
    for (let n = 1; n <= 30; n++) {
      // The seventh run has no transcript, the ninth is longer than others.
      const more = n === 22 ? { said: ['I look.', 'I look again.', 'Found.'] } : n === 24 ? { said: null } : {};
      await seedTurn(`greeter-${n}`, { minute: n, spec: ofSession(n), counts, ...more });
    }
    harness.api.clearRecords();
    const { payload } = await get({ sessionId: 's-greeter-1', ...page });
    const runs = harness.requests().filter((request) => request === 'get agentruns').length;
    const chunks = harness.requests().filter((request) => request === 'get agentrunchunks').length;
    const shown = (payload['messages'] as { text: string }[]).map(({ text }) => text);
    return { runs, chunks, requests: harness.requests().length, shown, nextOffset: payload['nextOffset'] };
  }

  test('reads no more runs than a page needs', async () => {
    expect(await requestsOf({ limit: 4 })).toMatchObject({ runs: 2, chunks: 2, requests: 4, nextOffset: 4 });
  });

  test('a page far back costs as much as the first one: the runs before it are not read', async () => {
    expect(await requestsOf({ limit: 4, offset: 51 })).toEqual({
      runs: 3, chunks: 3, requests: 6, nextOffset: 55,
      shown: ['answer of greeter-4', 'question of greeter-5', 'answer of greeter-5', 'question of greeter-6'],
    }); // prettier-ignore
  });

  test('the last page knows that it is the last one', async () => {
    expect(await requestsOf({ limit: 4, offset: 58 })).toMatchObject({ requests: 4, nextOffset: null });
  });

  test('a page behind the end reads nothing', async () => {
    expect(await requestsOf({ limit: 4, offset: 500 })).toMatchObject({ requests: 0, shown: [], nextOffset: null });
  });

  test('runs whose transcripts were not counted are read up to the page', async () => {
    expect(await requestsOf({ limit: 4, offset: 50 }, false)).toMatchObject({ runs: 29, nextOffset: 54 });
  });

  test('cuts long texts between characters', async () => {
    await seedTurn('greeter-1', { minute: 1, said: ['a'.repeat(3_999) + '😀'.repeat(2), 'b'.repeat(4_000)] });
    const { payload } = await get({ sessionId: 's-greeter-1' });
    const messages = payload['messages'] as { text: string; truncated: boolean }[];
    expect(messages.slice(1).map(({ text, truncated }) => [text, truncated])).toEqual([
      ['a'.repeat(3_999), true],
      ['b'.repeat(4_000), false],
    ]);
  });

  test('takes input and output of the run where the transcript has none', async () => {
    await seedTurn('greeter-1', {
      minute: 1,
      said: null,
      status: { transcript: { state: 'expired', chunks: 0, bytes: 0 } },
    });
    harness.seedRun('acme-box', 'greeter-2', {
      spec: { sessionId: 's-greeter-1', message: 'waiting', createdAt: at(2) },
    });
    const { payload } = await get({ sessionId: 's-greeter-1' });
    expect(payload['messages']).toMatchObject([
      { role: 'user', text: 'question of greeter-1', at: at(1) },
      { role: 'agent', text: 'from the status', at: at(1, 30) },
      { role: 'user', text: 'waiting', at: at(2) },
    ]);
  });

  test.each([
    [{ sessionId: 's-nothing' }, 'session not found: this agent has no session with this sessionId; list_sessions shows the latest'],
    [{ sessionId: '../../x' }, 'session not found: this agent has no session with this sessionId; list_sessions shows the latest'],
    [{ sessionId: 's-other-1' }, 'session not found: this agent has no session with this sessionId; list_sessions shows the latest'],
    [{}, 'missing required argument: sessionId (string)'],
    [{ sessionId: 5 }, 'argument "sessionId" must be a string, got a number'],
    [{ sessionId: 's-x', limit: 0 }, 'argument "limit" must be at least 1'],
    [{ sessionId: 's-x', offset: -1 }, 'argument "offset" must be at least 0'],
  ])('with %j says what is wrong', async (args, error) => {
    harness.seedRun('acme-box', 'other-1', { spec: { agent: 'other' } });
    expect((await get(args)).payload).toEqual({ error });
  }); // prettier-ignore
});

describe('list_memories', () => {
  const created = (second: number) => ({ creationTimestamp: `2026-04-01T00:00:0${second}Z` });
  const memories = async (args: object = {}) =>
    (await harness.call('list_memories', { agentId: AGENT, ...args })).payload['memories'] as Record<string, unknown>[];

  beforeEach(() => {
    harness.seedMemory('acme-box', 'greeter', 'm1', 'The customer Grüße GmbH pays late.', { metadata: created(1) });
    harness.seedMemory('acme-box', 'greeter', 'm3', 'Call the customer on Monday.', { metadata: created(3) });
    harness.seedMemory('acme-box', 'greeter', 'm2', 'Likes tea.', { metadata: created(2) });
    harness.seedMemory('acme-box', 'other', 'm4', 'A note of another agent.', { metadata: created(4) });
    harness.api.clearRecords();
  });

  test('shows the agent’s own notes, newest first, without a request', async () => {
    expect(await memories()).toEqual([
      { id: 'm3', text: 'Call the customer on Monday.', createdAt: '2026-04-01T00:00:03.000Z', updatedAt: '2026-04-01T00:00:03.000Z' },
      { id: 'm2', text: 'Likes tea.', createdAt: '2026-04-01T00:00:02.000Z', updatedAt: '2026-04-01T00:00:02.000Z' },
      { id: 'm1', text: 'The customer Grüße GmbH pays late.', createdAt: '2026-04-01T00:00:01.000Z', updatedAt: '2026-04-01T00:00:01.000Z' },
    ]); // prettier-ignore
    expect(harness.requests()).toEqual([]);
  });

  test.each([
    ['one word in any case', 'CUSTOMER', ['m3', 'm1']],
    ['all words in any order', 'late grüße', ['m1']],
    ['a part of a word', 'mond', ['m3']],
    ['nothing that fits', 'coffee', []],
    ['white space only', '  ', ['m3', 'm2', 'm1']],
    ['no pattern', '.*', []],
  ])('finds %s', async (_what, query, ids) => {
    expect((await memories({ query })).map(({ id }) => id)).toEqual(ids);
  });

  test('limits', async () => {
    expect((await memories({ limit: 1 })).map(({ id }) => id)).toEqual(['m3']);
  });

  test.each([
    [{ limit: 501 }, 'argument "limit" must be at most 500'],
    [{ limit: 0 }, 'argument "limit" must be at least 1'],
    [{ query: 5 }, 'argument "query" must be a string, got a number'],
    [{ query: 'x'.repeat(257) }, 'argument "query" must have at most 256 characters'],
  ])('with %j says what is wrong', async (args, error) => {
    expect((await harness.call('list_memories', { agentId: AGENT, ...args })).payload).toEqual({ error });
  });
});

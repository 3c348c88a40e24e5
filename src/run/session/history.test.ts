import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { RunEvent, TranscriptMessage } from '../../protocol/run.js';
import { assistantMessage, userMessage } from '../../../test/builders/run-events.js';
import { withoutResult } from '../../transcript/room.js';
import { MAX_HISTORY_BYTES, historyOf, repaired, type History } from './history.js';

function run(name: string, claimedAt?: string): AgentRun {
  return {
    apiVersion: '',
    kind: '',
    metadata: { name, namespace: 'bw-lab', uid: `uid-${name}` },
    spec: { agent: 'helper', sessionId: 's-1' },
    status: {
      phase: 'done',
      ...(claimedAt === undefined
        ? {}
        : {
            claim: {
              podUid: '',
              podName: '',
              at: claimedAt,
              gatewayPod: '',
              gatewayUid: '',
              gatewayAddress: '',
              epoch: 1,
            },
          }),
    },
  };
}

function sources(runs: AgentRun[], previous: string | undefined, events: (name: string) => RunEvent[]) {
  const read: string[] = [];
  return {
    read,
    previous: runs.find(({ metadata }) => metadata.name === previous),
    others: () => runs.filter(({ metadata, status }) => metadata.name !== previous && status?.claim !== undefined),
    transcript: (earlier: AgentRun) => {
      read.push(earlier.metadata.name);
      return Promise.resolve({ events: events(earlier.metadata.name), state: 'full' as const });
    },
    message: (earlier: AgentRun) => Promise.resolve(earlier.spec.message),
    isIncomplete: false,
  };
}

const texts = ({ messages }: Pick<History, 'messages'>) =>
  messages.map((message) => (message.role === 'tool' ? message.result : message.text));

test('runs follow in the order of their claims, up to the run that the Job names', async () => {
  const runs = [
    run('c', '2026-01-03'),
    run('a', '2026-01-02'),
    run('b', '2026-01-01'),
    run('late', '2026-01-04'),
    run('never'),
  ];
  const from = sources(runs, 'c', (name) => [userMessage(1, `to ${name}`)]);

  expect(texts(await historyOf(from))).toEqual(['to b', 'to a', 'to c']);
  expect(from.read).toEqual(['c', 'a', 'b']);
});

test('after a run that did not come to its own end the agent is told so, and why', async () => {
  const lost = run('lost', '2026-01-01');
  lost.status = { ...lost.status, phase: 'error', reason: 'NodeLost' };
  const from = sources([lost], 'lost', () => [userMessage(1, 'Deploy it.')]);

  expect((await historyOf(from)).messages).toEqual([
    { role: 'user', text: 'Deploy it.' },
    {
      role: 'user',
      text: '',
      frame: {
        before:
          '(The work on this was interrupted here. The node of the run is gone. What is above was done; the last call may be done in part.)',
        after: '',
      },
    },
  ]);
});

test('what a person said to a run of which nothing was stored is there', async () => {
  const lost = run('lost', '2026-01-01');
  lost.spec.message = 'Deploy it.';
  const from = sources([lost], 'lost', () => []);

  expect(texts(await historyOf(from))).toEqual(['Deploy it.']);
  lost.status = { phase: 'done', ...lost.status, transcript: { state: 'expired', chunks: 0, bytes: 0 } };
  expect(texts(await historyOf(from))).toEqual([]);
});

test('without an earlier run nothing is read', async () => {
  const from = sources([run('a', '2026-01-01')], undefined, () => [userMessage(1, 'x')]);

  expect(await historyOf(from)).toEqual({ messages: [], warnings: [] });
  expect(from.read).toEqual([]);
});

/** A run in which the agent read a lot: a message of the person, calls with results, and its last words. */
function busy(steps: number, bytes: number): RunEvent[] {
  const events: RunEvent[] = [userMessage(1, 'Read it all.')];
  for (let step = 0; step < steps; step++) {
    const id = `c${step}`;
    const message = (message: TranscriptMessage): RunEvent => ({ type: 'message', v: 1, seq: 0, at: '', message });
    events.push(message({ role: 'assistant', text: '', toolCalls: [{ id, tool: 'shell', input: '{}' }] }));
    events.push(
      message({ role: 'tool', callId: id, tool: 'shell', result: JSON.stringify('x'.repeat(bytes)), isError: false }),
    );
  }
  return [...events, assistantMessage(99, 'I read it.')];
}

const ROLES = (steps: number) => [
  'user',
  ...Array.from({ length: steps }, () => ['assistant', 'tool']).flat(),
  'assistant',
];
const roles = ({ messages }: History) => messages.map(({ role }) => role);
const isMarked = (message: TranscriptMessage) => message.role === 'tool' && message.result.includes('"truncated":true');

test('of a run that is larger than the bound old results are cut, and nothing that a person said', async () => {
  const history = await historyOf(sources([run('a', '2026-01-01')], 'a', () => busy(40, 60_000)));

  expect(Buffer.byteLength(JSON.stringify(history.messages))).toBeLessThan(MAX_HISTORY_BYTES + 1000);
  expect(roles(history)).toEqual(['user', ...ROLES(40)]);
  expect(texts(history)[1]).toBe('Read it all.');
  expect(texts(history).at(-1)).toBe('I read it.');
  const marked = history.messages.map(isMarked);
  const cut = marked.filter(Boolean).length;
  expect(cut).toBeGreaterThan(4);
  expect(marked.lastIndexOf(true)).toBe(1 + 2 * cut);
  expect(texts(history)[0]).toContain(
    `Cut are, the oldest first: ${cut} results of tools. What the user said is whole.`,
  );
  expect(history.warnings).toEqual([expect.stringContaining(`${cut} results of tools. What people said was not cut.`)]);
});

test('what is older than the bound keeps what was said in it', async () => {
  const runs = Array.from({ length: 6 }, (_, i) => run(`r${i}`, `2026-01-0${i + 1}`));
  const history = await historyOf(sources(runs, 'r5', () => busy(20, 60_000)));

  expect(roles(history)).toEqual(['user', ...runs.flatMap(() => ROLES(20))]);
  expect(texts(history).filter((text) => text === 'Read it all.' || text === 'I read it.')).toHaveLength(12);
  expect(Buffer.byteLength(JSON.stringify(history.messages))).toBeLessThan(MAX_HISTORY_BYTES + 1000);
  const cut = history.messages.filter(isMarked).length;
  expect(history.warnings).toEqual([expect.stringContaining(`${cut} results of tools.`)]);
});

test('messages of people stay, however long', async () => {
  const runs = [run('a', '2026-01-01'), run('b', '2026-01-02')];
  const long = (name: string) => name.repeat(MAX_HISTORY_BYTES);
  const history = await historyOf(
    sources(runs, 'b', (name) => [userMessage(1, long(name)), assistantMessage(2, 'ok')]),
  );

  expect(texts(history)).toEqual([long('a'), 'ok', long('b'), 'ok']);
});

const many = (count: number) =>
  Array.from({ length: count }, (_, i) => run(`r${i}`, `2026-01-01T00:00:00.${String(i).padStart(4, '0')}`));

test('all runs of a session with short ones are read, up to 500, and the rest is named', async () => {
  const from = sources(many(120), 'r119', () => [userMessage(1, 'x')]);
  expect(await historyOf(from)).toEqual({
    messages: Array.from({ length: 120 }, () => ({ role: 'user', text: 'x' })),
    warnings: [],
  });

  const longer = sources(many(520), 'r519', (name) => [userMessage(1, name)]);
  const history = await historyOf(longer);
  expect(texts(history).slice(1)).toEqual(Array.from({ length: 500 }, (_, i) => `r${i + 20}`));
  expect(history.warnings).toEqual([expect.stringContaining('20 older runs were not read')]);
  expect(longer.read).toHaveLength(500);
});

test('of long runs the newest 50 are read, and the rest is named', async () => {
  const from = sources(many(80), 'r79', () => [userMessage(1, 'x'.repeat(MAX_HISTORY_BYTES / 40))]);
  const history = await historyOf(from);

  expect(history.messages).toHaveLength(51);
  expect(history.warnings).toEqual([expect.stringContaining('30 older runs were not read')]);
});

test('a run whose old results were cut when they were stored misses nothing else', async () => {
  const earlier = run('a', '2026-01-01');
  const transcript = { state: 'truncated' as const, onlyResultsCut: true, chunks: 22, bytes: 1 };
  earlier.status = { phase: 'done', ...earlier.status, transcript };
  const [asked, call, result, answer] = busy(1, 60_000);
  const events = [asked, call, result, answer].flatMap((event) => (event === undefined ? [] : [withoutResult(event)]));
  const from = sources([earlier], 'a', () => []);
  const history = await historyOf({ ...from, transcript: () => Promise.resolve({ events, state: 'truncated' }) });

  expect(texts(history)[0]).toContain('Cut are, the oldest first: 1 results of tools. What the user said is whole.');
  expect(texts(history)[0]).not.toContain('not there any more');
  expect(history.warnings).toEqual([expect.stringContaining('1 results of tools. What people said was not cut.')]);
});

test.each(['truncated', 'expired'] as const)('a transcript that is %s is named', async (state) => {
  const from = sources([run('a', '2026-01-01')], 'a', () => []);
  const history = await historyOf({
    ...from,
    transcript: () => Promise.resolve({ events: [assistantMessage(2, 'hi')], state }),
  });

  expect(texts(history)).toEqual(['(Some earlier messages of this conversation are not there any more.)', 'hi']);
  expect(history.warnings).toHaveLength(1);
});

const user: TranscriptMessage = { role: 'user', text: 'go' };
const calling: TranscriptMessage = {
  role: 'assistant',
  text: '',
  toolCalls: [
    { id: '1', tool: 'shell', input: '{}' },
    { id: '2', tool: 'shell', input: '{}' },
  ],
};
const answered = (callId: string): TranscriptMessage => ({
  role: 'tool',
  callId,
  tool: 'shell',
  result: callId,
  isError: false,
});
const interrupted = (callId: string): TranscriptMessage => ({
  role: 'tool',
  callId,
  tool: 'shell',
  result:
    '{"error":"Interrupted: the run ended before this call had a result. Check what it did before you call it again."}',
  isError: true,
});

test.each<[string, TranscriptMessage[], TranscriptMessage[]]>([
  ['is whole', [user, calling, answered('1'), answered('2')], [user, calling, answered('1'), answered('2')]],
  ['ended in the middle of a call', [user, calling, answered('2')], [user, calling, interrupted('1'), answered('2')]],
  ['begins with a result', [answered('0'), user], [user]],
  ['has a result too many', [user, answered('9')], [user]],
  ['has no message of a person', [calling, answered('1')], [calling, answered('1'), interrupted('2')]],
])('a conversation that %s can be continued', (_name, messages, expected) => {
  expect(repaired(messages)).toEqual(expected);
});

test('a compacted session begins with its summary and the messages that were kept', async () => {
  const runs = [run('a', '2026-01-01'), run('b', '2026-01-02'), run('c', '2026-01-03')];
  const compaction = (seq: number, kept: number): RunEvent => ({
    type: 'compaction',
    seq,
    at: '',
    text: 'task, summary',
    kept,
  });
  const events: Record<string, RunEvent[]> = {
    a: [userMessage(1, 'task'), assistantMessage(2, 'old')],
    b: [userMessage(1, 'second'), assistantMessage(2, 'kept')],
    c: [userMessage(1, 'third'), compaction(2, 3), assistantMessage(3, 'new')],
  };
  const from = sources(runs, 'c', (name) => events[name] ?? []);
  const expected = ['task, summary', 'second', 'kept', 'third', 'new'];
  expect(texts(await historyOf(from))).toEqual(expected);
  expect(from.read).toEqual(['c', 'b']);

  events['c'] = [compaction(1, 0), userMessage(2, 'third')];
  expect(texts(await historyOf(sources(runs, 'c', (name) => events[name] ?? [])))).toEqual(['task, summary', 'third']);
});

test('results that a run cut on the way stay cut', async () => {
  const [first, ...rest] = busy(3, 1000);
  const compaction: RunEvent = { type: 'compaction', seq: 50, at: '', text: 'Read it all.', kept: 6, cleared: 2 };
  const events = [first as RunEvent, ...rest.slice(0, 6), compaction, ...rest.slice(6)];
  const history = await historyOf(sources([run('a', '2026-01-01')], 'a', () => events));
  expect(roles(history)).toEqual(ROLES(3));
  expect(history.messages.map(isMarked)).toEqual([false, false, true, false, true, false, false, false]);
  expect(history.warnings).toEqual([]);
});

test('a conversation without its beginning says so', async () => {
  const from = sources([run('a', '2026-01-01')], 'a', () => [assistantMessage(2, 'hi')]);
  expect(texts(await historyOf(from))).toEqual(['(The beginning of this conversation is not there any more.)', 'hi']);
});

test('what could not be read is named in front of the rest', async () => {
  const note = '(Earlier messages of this conversation are archived, and the archive cannot be read at the moment.)';
  const from = sources([run('a', '2026-01-01')], 'a', () => [userMessage(1, 'go'), assistantMessage(2, 'done')]);
  const history = await historyOf({ ...from, isIncomplete: true });
  expect(texts(history)).toEqual([note, 'go', 'done']);
  expect(history.warnings).toHaveLength(1);
  expect(texts(await historyOf({ ...from, previous: undefined, isIncomplete: true }))).toEqual([note]);
});

import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { RunEvent, TranscriptMessage } from '../../protocol/run.js';
import { assistantMessage, userMessage } from '../../../test/builders/run-events.js';
import { MAX_HISTORY_BYTES, historyOf, repaired } from './history.js';

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
    isIncomplete: false,
  };
}

const texts = (messages: readonly TranscriptMessage[]) =>
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

test('without an earlier run nothing is read', async () => {
  const from = sources([run('a', '2026-01-01')], undefined, () => [userMessage(1, 'x')]);

  expect(await historyOf(from)).toEqual([]);
  expect(from.read).toEqual([]);
});

test('old messages go when a session has more than 1 MiB', async () => {
  const runs = [run('a', '2026-01-01'), run('b', '2026-01-02'), run('c', '2026-01-03')];
  const from = sources(runs, 'c', (name) => [
    userMessage(1, name.repeat(400 * 1024)),
    assistantMessage(2, `re ${name}`),
  ]);

  const history = await historyOf(from);

  expect(texts(history).map((text) => text.slice(0, 4))).toEqual(['bbbb', 're b', 'cccc', 're c']);
  expect(Buffer.byteLength(JSON.stringify(history))).toBeLessThan(MAX_HISTORY_BYTES);
});

test('at most 50 runs are read', async () => {
  const runs = Array.from({ length: 80 }, (_, i) => run(`r${i}`, `2026-01-01T00:00:${String(i).padStart(2, '0')}`));
  const from = sources(runs, 'r79', () => [userMessage(1, 'x')]);

  expect(await historyOf(from)).toHaveLength(50);
  expect(from.read).toHaveLength(50);
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
  result: '{"error":"The run ended before this call had a result."}',
  isError: true,
});

test.each<[string, TranscriptMessage[], TranscriptMessage[]]>([
  ['is whole', [user, calling, answered('1'), answered('2')], [user, calling, answered('1'), answered('2')]],
  ['ended in the middle of a call', [user, calling, answered('2')], [user, calling, interrupted('1'), answered('2')]],
  ['begins with a result', [answered('0'), user], [user]],
  ['begins with an answer', [{ role: 'assistant', text: 'hi' }, user], [user]],
  ['has a result too many', [user, answered('9')], [user]],
  ['has no message of a person', [calling, answered('1')], []],
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

test('what could not be read is named in front of the rest', async () => {
  const note = '(Earlier messages of this conversation are archived, and the archive cannot be read at the moment.)';
  const from = sources([run('a', '2026-01-01')], 'a', () => [userMessage(1, 'go'), assistantMessage(2, 'done')]);
  expect(texts(await historyOf({ ...from, isIncomplete: true }))).toEqual([note, 'go', 'done']);
  expect(texts(await historyOf({ ...from, previous: undefined, isIncomplete: true }))).toEqual([note]);
});

import type { ModelMessage } from 'ai';
import {
  compactionWindow,
  clearOldResults,
  compacted,
  cutFirst,
  isFull,
  planCompaction,
  summaryRequest,
} from './compaction.js';

const WINDOW = 100_000;
const user = (content: string): ModelMessage => ({ role: 'user', content });
const says = (content: string): ModelMessage => ({ role: 'assistant', content });
const calls = (id: string): ModelMessage => ({
  role: 'assistant',
  content: [{ type: 'tool-call', toolCallId: id, toolName: 'shell', input: {} }],
});
const results = (...ids: string[]): ModelMessage => ({
  role: 'tool',
  content: ids.map((id) => ({
    type: 'tool-result',
    toolCallId: id,
    toolName: 'shell',
    output: { type: 'json', value: 'x'.repeat(30_000) },
  })),
});

test('four fifths of the window are full', () => {
  expect(isFull(80_000, WINDOW)).toBe(false);
  expect(isFull(80_001, WINDOW)).toBe(true);
});

test('the newest 20,000 tokens stay, and results of tools stay with their calls', () => {
  const messages = [
    user('task'),
    says('a'),
    calls('1'),
    results('1'),
    calls('2'),
    results('2'),
    calls('3'),
    results('3'),
  ];
  const plan = planCompaction(messages, WINDOW);
  expect(plan).toMatchObject({ first: 'task', middle: messages.slice(1, 4), tail: messages.slice(4) });
});

test('a result that is larger than what is kept goes into the summary with its call', () => {
  const messages = [user('task'), calls('1'), results('1', '2', '3', '4')];
  expect(planCompaction(messages, WINDOW)).toMatchObject({ middle: messages.slice(1), tail: [] });
});

test('a short conversation has nothing to summarise', () => {
  expect(planCompaction([user('task'), says('a')], WINDOW)).toBeUndefined();
  expect(planCompaction([user('x'.repeat(500_000))], WINDOW)).toBeUndefined();
  expect(planCompaction([], WINDOW)).toBeUndefined();
});

test('a small window keeps a quarter of itself', () => {
  const messages = [user('task'), says('x'.repeat(8000)), says('y'.repeat(8000))];
  expect(planCompaction(messages, 10_000)).toMatchObject({ middle: [messages[1]], tail: [messages[2]] });
});

test('the summary stands behind the first message; a later one takes its place', () => {
  const plan = planCompaction([user('task'), says('x'.repeat(90_000)), calls('1'), results('1')], WINDOW);
  if (plan === undefined) throw new Error('there is no plan');
  const { messages, text, kept } = compacted(plan, 'I did x.');
  expect(text).toBe('task\n\n[The conversation since then, summarised]\nI did x.');
  expect(messages).toEqual([user(text), calls('1'), results('1')]);
  expect(kept).toBe(2);

  const again = planCompaction([...messages, says('z'.repeat(90_000)), says('end')], WINDOW);
  if (again === undefined) throw new Error('there is no plan');
  expect(summaryRequest(again, WINDOW)).toContain('user: task\nI did x.\n');
  expect(compacted(again, 'I did x and z.').text).toBe(
    'task\n\n[The conversation since then, summarised]\nI did x and z.',
  );
});

test('what is summarised is cut to a part of the window', () => {
  const plan = planCompaction([user('task'), says('x'.repeat(900_000)), says('end')], WINDOW);
  if (plan === undefined) throw new Error('there is no plan');
  expect(Buffer.byteLength(summaryRequest(plan, WINDOW))).toBeLessThan(245_000);
});

test('older results are cleared, and those that stay are counted', () => {
  const messages = [
    user('task'),
    user('and more'),
    calls('1'),
    results('1'),
    calls('2'),
    results('2'),
    calls('3'),
    results('3', '4'),
  ];
  const cleared = clearOldResults(messages, WINDOW);
  expect(cleared).toMatchObject({ text: 'task\n\nand more', kept: 7, cleared: 2 });
  expect(cleared?.messages[0]).toEqual(user('task\n\nand more'));
  expect(JSON.stringify(cleared?.messages[2])).toContain('"truncated":true,"bytes":30002');
  expect(cleared?.messages.slice(5)).toEqual(messages.slice(6));
  expect(clearOldResults(cleared?.messages ?? [], WINDOW)).toBeUndefined();
});

test('what a person answered and short results are not cleared', () => {
  const answer: ModelMessage = {
    role: 'tool',
    content: [
      {
        type: 'tool-result',
        toolCallId: '1',
        toolName: 'ask_user',
        output: { type: 'json', value: { answer: 'x'.repeat(9000) } },
      },
    ],
  };
  const messages = [user('task'), calls('1'), answer, calls('2'), results('2', '3')];
  expect(clearOldResults(messages, WINDOW)).toBeUndefined();
});

test('what the user said first is cut as the last resort only', () => {
  expect(cutFirst([user('task'), says('a')], 1000)).toBeUndefined();
  const cut = cutFirst([user('x'.repeat(9000)), says('a')], 1000);
  expect(cut).toMatchObject({ kept: 1, text: expect.stringContaining('9000 bytes in all') });
  expect(Buffer.byteLength(cut?.text ?? '')).toBeLessThanOrEqual(2000);
});

test.each([
  ['nothing is said', 200_000, undefined, 200_000],
  ['a share is said', 200_000, 0.4, 100_000],
  ['the share is that of all others', 200_000, 0.8, 200_000],
  ['a share of nobody knows what is said', undefined, 0.4, undefined],
  ['tokens are said', 1_000_000, 80_000, 100_000],
  ['tokens are said that the model cannot read', 100_000, 200_000, 100_000],
  ['tokens are said of an unknown window', undefined, 80_000, 100_000],
])('the window is kept within, if %s', (_when, real, compactAt, window) => {
  expect(compactionWindow(real, compactAt)).toBe(window);
});

import * as fc from '../../../test/builders/properties.js';
import type { TranscriptMessage } from '../../protocol/run.js';
import { clearResults, fitHistory, sizeOf } from './fit.js';

const user = (text: string): TranscriptMessage => ({ role: 'user', text });
const says = (text: string): TranscriptMessage => ({ role: 'assistant', text });
const calls = (id: string, input = '{}'): TranscriptMessage => ({
  role: 'assistant',
  text: '',
  toolCalls: [{ id, tool: 'shell', input }],
});
const thinks = (text: string, reasoning: string): TranscriptMessage => ({
  role: 'assistant',
  text,
  sent: { provider: 'anthropic', model: 'm', parts: [{ type: 'reasoning', text: reasoning, vendor: '{}' }] },
});
const result = (callId: string, bytes: number, tool = 'shell'): TranscriptMessage => ({
  role: 'tool',
  callId,
  tool,
  result: JSON.stringify('x'.repeat(bytes)),
  isError: false,
});
const denied = (bytes: number): TranscriptMessage => ({
  role: 'tool',
  callId: 'd',
  tool: 'shell',
  result: JSON.stringify({ error: `denied by the user: ${'n'.repeat(bytes)}` }),
  isError: true,
});
const NONE = { results: 0, reasoning: 0, texts: 0 };
const LONG = 'x'.repeat(4000);

test.each<[string, TranscriptMessage[], number, object]>([
  ['everything that fits', [user('a'), says(LONG)], 5000, NONE],
  ['what a person said, however long', [user(LONG), user(LONG)], 1000, NONE],
  ['what a person answered', [calls('1'), result('1', 4000, 'ask_user')], 1000, NONE],
  ['why a person denied', [calls('d'), denied(4000)], 1000, NONE],
  ['results that are short', [calls('1'), result('1', 300), result('2', 300)], 100, NONE],
])('%s stays', (_what, messages, maxBytes, cuts) => {
  expect(fitHistory(messages, { maxBytes })).toEqual({ messages, cuts });
});

test('results go first and the oldest first, then reasoning, then texts and arguments', () => {
  const messages = [
    user('a'),
    thinks(LONG, LONG),
    calls('1', JSON.stringify({ content: LONG })),
    result('1', 4000),
    calls('2'),
    result('2', 4000),
  ];
  const cutsAt = (maxBytes: number) => fitHistory(messages, { maxBytes }).cuts;
  expect(cutsAt(19_000)).toEqual({ ...NONE, results: 1 });
  expect(cutsAt(14_000)).toEqual({ ...NONE, results: 2 });
  expect(cutsAt(10_000)).toEqual({ ...NONE, results: 2, reasoning: 1 });
  expect(cutsAt(2_000)).toEqual({ results: 2, reasoning: 1, texts: 2 });
  const { messages: least } = fitHistory(messages, { maxBytes: 100 });
  expect(least[0]).toEqual(user('a'));
  expect(least[1]).toMatchObject({ text: expect.stringContaining('4000 bytes in all') });
  expect(JSON.parse((least[2] as { toolCalls: { input: string }[] }).toolCalls[0]?.input ?? '')).toMatchObject({
    truncated: true,
  });
  expect(JSON.parse((least[3] as { result: string }).result)).toMatchObject({ truncated: true, bytes: 4002 });
});

test('the message with the open call stays as it is', () => {
  const open = { ...thinks(LONG, LONG), toolCalls: [{ id: '9', tool: 'shell', input: JSON.stringify(LONG) }] };
  const messages = [user('a'), says(LONG), open as TranscriptMessage];
  const fitted = fitHistory(messages, { maxBytes: 100, openCall: '9' });
  expect(fitted.messages[2]).toBe(open);
  expect(fitted.cuts).toEqual({ ...NONE, texts: 1 });
});

const message = fc.oneof(
  fc.integer({ min: 0, max: 3000 }).map((bytes) => user('u'.repeat(bytes))),
  fc.integer({ min: 0, max: 3000 }).map((bytes) => says('s'.repeat(bytes))),
  fc.integer({ min: 0, max: 3000 }).map((bytes) => thinks('t', 'r'.repeat(bytes))),
  fc.integer({ min: 0, max: 6000 }).map((bytes) => result('c', bytes)),
  fc.integer({ min: 0, max: 3000 }).map((bytes) => result('q', bytes, 'ask_user')),
);
const conversation = fc.array(message, { maxLength: 40 });
const sum = (messages: readonly TranscriptMessage[]) => messages.reduce((all, one) => all + sizeOf(one), 0);

test('whatever is cut: every message is there, those of people are whole, and it fits if anything else can go', () => {
  fc.assert(
    fc.property(conversation, fc.integer({ min: 100, max: 60_000 }), (messages, maxBytes) => {
      const { messages: fitted, cuts } = fitHistory(messages, { maxBytes });
      expect(fitted.map(({ role }) => role)).toEqual(messages.map(({ role }) => role));
      expect(fitted.filter(({ role }) => role === 'user')).toEqual(messages.filter(({ role }) => role === 'user'));
      const everything = fitHistory(messages, { maxBytes: 1 });
      expect(sum(fitted)).toBeLessThanOrEqual(Math.max(maxBytes, sum(everything.messages)));
      // The next kind is touched only when nothing of the one before is left.
      if (cuts.reasoning > 0 || cuts.texts > 0) expect(clearResults(fitted).results).toBe(0);
      if (sum(messages) <= maxBytes) expect(fitted).toEqual(messages);
    }),
  );
});

test('a conversation that grows keeps its beginning until another share of the bound must go', () => {
  const maxBytes = 40_000;
  const messages = Array.from({ length: 200 }, (_, n) => [calls(`${n}`), result(`${n}`, 1000)]).flat();
  let beginnings = 0;
  let before = '';
  for (let end = 80; end <= messages.length; end += 2) {
    const { messages: fitted } = fitHistory(messages.slice(0, end), { maxBytes });
    const text = JSON.stringify(fitted).slice(0, -1);
    if (!text.startsWith(before)) beginnings += 1;
    before = text;
  }
  // 120 turns of 1 KB more; a new beginning for each eighth of the bound, and not for each turn.
  expect(beginnings).toBeGreaterThan(10);
  expect(beginnings).toBeLessThan(35);
});

test('what was cleared while reading counts as cut', () => {
  const messages = Array.from({ length: 20 }, (_, n) => [calls(`${n}`), result(`${n}`, 4000)]).flat();
  const early = clearResults(messages.slice(0, 10));
  const both = fitHistory([...early.messages, ...messages.slice(10)], { maxBytes: 40_000, cleared: early });
  expect(both).toEqual(fitHistory(messages, { maxBytes: 40_000 }));
});

/** Whatever a provider's server answers: an answer with counts that can be believed, or one that failed; never a fault of ours. */
import { Readable } from 'node:stream';
import * as fc from '../../../test/builders/properties.js';
import { BodyBudget } from '../../net/body-budget.js';
import { readModelAnswer } from './answers.js';
import { anthropicMessages } from './anthropic.js';
import { chatCompletions } from './chat-completions.js';
import type { Dialect } from './dialect.js';
import { googleGenerate } from './google.js';
import { openaiResponses } from './openai-responses.js';
import { TryFailed } from './try-failed.js';

/** An answer of each protocol in events, of which the fuzzing makes others. */
const STREAMS: Readonly<Record<string, readonly [Dialect, readonly object[]]>> = {
  'Anthropic messages': [
    anthropicMessages,
    [
      { type: 'message_start', message: { id: 'm', content: [], usage: { input_tokens: 9, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 't', name: 'look', input: {} } },
      { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '{"at":1}' } },
      { type: 'content_block_start', index: 1, content_block: { type: 'thinking', thinking: '', signature: '' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'thinking_delta', thinking: 'So.' } },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 30 } },
      { type: 'message_stop' },
    ],
  ],
  'chat completions': [
    chatCompletions,
    [
      { id: 'c', choices: [{ index: 0, delta: { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] } }] },
      { id: 'c', choices: [{ delta: { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'So.' }] }] } }] },
      { id: 'c', choices: [{ delta: { tool_calls: [{ index: 0, id: 'a', function: { name: 'look' } }] } }] },
      { id: 'c', choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: '{}' } }] } }] },
      { id: 'c', choices: [{ delta: {}, finish_reason: 'tool_calls' }] },
      { id: 'c', choices: [], usage: { prompt_tokens: 5, completion_tokens: 6 } },
    ],
  ],
  'Google generateContent': [
    googleGenerate,
    [
      { candidates: [{ content: { role: 'model', parts: [{ text: 'Hi', thought: true }] } }] },
      { candidates: [{ content: { parts: [{ functionCall: { name: 'look', args: { at: 1 } } }] } }] },
      { candidates: [{ finishReason: 'STOP' }], usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 6 } },
    ],
  ],
  'OpenAI responses': [
    openaiResponses,
    [
      { type: 'response.created', response: { id: 'r' } },
      { type: 'response.output_text.delta', delta: 'Hi' },
      { type: 'response.output_item.done', output_index: 0, item: { type: 'message', content: [] } },
      { type: 'response.completed', response: { output: [], usage: { input_tokens: 5, output_tokens: 6 } } },
    ],
  ],
};

const HOSTILE = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(
    null,
    -1,
    0.5,
    2 ** 53,
    4_294_967_294,
    'x'.repeat(70_000),
    [[]],
    { length: 1e9 },
    JSON.parse('{"__proto__":{"input_tokens":1},"constructor":1,"toString":1}'),
  ),
);

/** Values in the places of others, at any depth; and other fields beside them. */
function changed(value: unknown, pick: () => number, hostile: () => unknown): unknown {
  if (pick() < 0.12) return hostile();
  if (Array.isArray(value)) return value.map((entry) => changed(entry, pick, hostile));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([name, entry]) => [name, changed(entry, pick, hostile)] as const);
  const more =
    pick() < 0.1 ? [[['__proto__', 'error', 'usage', 'type'][Math.floor(pick() * 4)], hostile()] as const] : [];
  return Object.fromEntries([...fields, ...more]);
}

describe.each(Object.entries(STREAMS))('%s', (_what, [dialect, events]) => {
  test.each(['text/event-stream', 'application/json'])('in %s', async (contentType) => {
    const numbers = fc.infiniteStream(fc.noBias(fc.nat(999)));
    let answered = 0;
    await fc.assert(
      fc.asyncProperty(numbers, fc.infiniteStream(HOSTILE), fc.boolean(), async (random, values, asEvents) => {
        const pick = () => (random.next().value ?? 0) / 1000;
        const hostile = () => values.next().value;
        const made = [...events, ...events].filter(() => pick() > 0.2).map((event) => changed(event, pick, hostile));
        const text = made.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
        const whole = JSON.stringify(changed(wholeOf(dialect, events), pick, hostile));
        const all = new BodyBudget(64 * 1024 * 1024);
        const outcome = await readModelAnswer(
          {
            status: 200,
            contentType,
            body: Readable.from([Buffer.from(contentType === 'application/json' ? whole : text)]),
          },
          {
            provider: 'boxwright',
            dialect,
            asEvents,
            secret: '',
            budget: { all, address: 'a' },
            follow: () => undefined,
          },
        ).catch((error: unknown) => error);
        expect(all.bytes).toBe(0);
        if (outcome instanceof TryFailed) return;
        answered += 1;
        expect(outcome).toMatchObject({ contentType: expect.any(String), writtenTokens: expect.any(Number) });
        const { counts = {} } = outcome as { counts?: object };
        for (const count of Object.values(counts)) expect(Number.isSafeInteger(count) && count >= 0).toBe(true);
      }),
      { numRuns: 150 },
    );
    // Else it would be refusals alone that are looked at.
    expect(answered).toBeGreaterThan(20);
  });
});

/** The answer that the unchanged events make. */
function wholeOf(dialect: Dialect, events: readonly object[]): unknown {
  const reader = dialect.reader();
  for (const event of structuredClone(events)) reader.read(event as Record<string, unknown>);
  return reader.answer();
}

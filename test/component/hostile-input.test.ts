/**
 * The largest and worst input that is taken costs time in proportion to its bytes: processor time, against that of reading
 * and writing the same bytes as JSON in the same process, so that neither speed nor load of a machine decides.
 */
import { z } from 'zod';
import { slugFromName } from '../../src/api/names.js';
import { readMessage } from '../../src/gateway/mcp/message.js';
import { anthropicMessages } from '../../src/gateway/providers/anthropic.js';
import { chatCompletions } from '../../src/gateway/providers/chat-completions.js';
import type { Dialect, JsonObject } from '../../src/gateway/providers/dialect.js';
import { googleGenerate } from '../../src/gateway/providers/google.js';
import { openaiResponses } from '../../src/gateway/providers/openai-responses.js';
import { StreamEvents } from '../../src/gateway/providers/stream-events.js';
import { quoted, sayingOf } from '../../src/gateway/providers/provider-errors.js';
import { parseDirectives } from '../../src/gateway/scripted/directives.js';
import { withoutValues } from '../../src/kube/errors.js';
import { parseIncoming } from '../../src/mcp/json-rpc.js';
import { TOOLS } from '../../src/mcp/registry.js';
import { redact } from '../../src/observability/logger.js';
import { maximumOf, parseBounded, withoutWrappers } from '../../src/protocol/bounded-parse.js';
import { EventsRequest, FinishRequest, ToolRequest } from '../../src/protocol/run.js';
import { secretIn } from '../../src/templates/secret-text.js';
import { isPassiveVisit } from '../../src/webhook/passive-visit.js';
import { McpHarness } from '../builders/mcp-harness.js';

/** What stopped the product once took thousands of times the reference; what is there now, thirty at most. */
const MOST_TIMES = 250;
/** Small inputs are measured against this much. */
const LEAST_BYTES = 512 * 1024;
const BYTES = 128 * 1024;
/** Entries of a list: as many as stay within the bytes of a call. */
const ENTRIES = 4;

/** Repeated, these begin what a pattern or parser looks for, and never end it. */
const FILLS = [
  'a',
  ' ',
  '-',
  'a-',
  '_-',
  '\\',
  '"',
  '{"',
  '[',
  '0,',
  '\n',
  '\u2028',
  '<',
  '</ ',
  '@',
  ':',
  'a:',
  '://',
  '${',
  'sk-',
  '-sk-a',
  '-eyJ',
  'eyJ.',
  '/api/t/',
  'bw_',
  'Bearer ',
  '***',
  '-----BEGIN ',
  'Invalid value: {',
  'Invalid value: "\\',
  'data: ',
  'data:\n',
  '`',
  '(',
  '{,',
  'é',
  '💥',
  '\u0000',
];

function fill(unit: string, bytes: number): string {
  return unit.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(unit))));
}

/** Milliseconds of the processor, for all threads of this process. */
function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

const references = new Map<number, number>();

/** Of about as many bytes. */
function referenceTime(bytes: number): number {
  const size = Math.ceil(bytes / LEAST_BYTES) * LEAST_BYTES;
  const known = references.get(size);
  if (known !== undefined) return known;
  const text = JSON.stringify(fill('a"b ', size));
  const started = processorTime();
  for (let i = 0; i < 8; i++) JSON.stringify(JSON.parse(text));
  const found = Math.max((processorTime() - started) / 8, 0.5);
  references.set(size, found);
  return found;
}

/** How many times the reference the work takes; the best of three, since collecting garbage is nobody's fault. */
async function timesReference(bytes: number, work: () => unknown): Promise<number> {
  let best = Infinity;
  for (let i = 0; i < 3 && best > MOST_TIMES / 4; i++) {
    const reference = referenceTime(bytes);
    const started = processorTime();
    await work();
    best = Math.min(best, (processorTime() - started) / reference);
  }
  return best;
}

/** The largest value that a schema takes, of texts that repeat `unit`. */
function largest(schema: z.ZodType, unit: string): unknown {
  const inner = withoutWrappers(schema);
  if (inner instanceof z.ZodString) return Array.from(fill(unit, BYTES)).slice(0, maximumOf(inner)).join('');
  if (inner instanceof z.ZodNumber) return Math.min(maximumOf(inner) ?? 1, Number.MAX_SAFE_INTEGER);
  if (inner instanceof z.ZodBoolean) return true;
  if (inner instanceof z.ZodEnum) return inner.options[0];
  if (inner instanceof z.ZodArray) {
    const length = Math.min(maximumOf(inner) ?? 0, ENTRIES);
    return Array.from({ length }, () => largest(inner.element as z.ZodType, unit));
  }
  if (inner instanceof z.ZodUnion) return largest(inner.options[0] as z.ZodType, unit);
  if (!(inner instanceof z.ZodObject)) return {};
  return Object.fromEntries(
    Object.entries(inner.shape).map(([name, field]) => [name, largest(field as z.ZodType, unit)]),
  );
}

const IDS = { agentId: 'acme-box.greeter', slug: 'hook', templateId: 'acme.writers', spaceId: 'acme-box' };

describe.each(TOOLS.map((tool) => [tool.name, tool] as const))('%s', (name, { input }) => {
  test.each(['-eyJ', '</ '])('with the largest arguments, of %j', async (unit) => {
    const harness = new McpHarness();
    harness.seedTrigger('acme-box', 'greeter', 'hook');
    harness.seedTemplate('acme', 'writers');
    Object.assign(harness.agentWaiter, { wait: () => Promise.resolve(undefined) });
    Object.assign(harness.runWaiter, { wait: () => Promise.resolve(undefined) });
    const args = { ...(largest(input, unit) as object), ...IDS, confirm: true };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1.5, method: 'tools/call', params: { name, arguments: args } });
    const times = await timesReference(body.length, async () => {
      const { text } = await harness.post(body);
      expect(text).toContain('"id":1.5');
    });
    expect(times).toBeLessThan(MOST_TIMES);
  });
});

/** Events of which each adds something that is held until the answer is whole. */
const GROWING: readonly (readonly [string, Dialect, (n: number) => JsonObject])[] = [
  ['fields of a completion', chatCompletions, (n) => ({ choices: [], [`f${n}`]: 0 })],
  ['fields of a choice', chatCompletions, (n) => ({ choices: [{ [`f${n}`]: 0 }] })],
  ['fields of a message', chatCompletions, (n) => ({ choices: [{ delta: { [`f${n}`]: 'a' } }] })],
  ['parts of a message', chatCompletions, (n) => ({ choices: [{ delta: { content: [{ type: `t${n}` }] } }] })],
  [
    'parts of a thought',
    chatCompletions,
    (n) => ({ choices: [{ delta: { content: [{ type: 't', thinking: [{ type: `t${n}` }] }] } }] }),
  ],
  ['calls', chatCompletions, (n) => ({ choices: [{ delta: { tool_calls: [{ index: n }] } }] })],
  [
    'fields of a call',
    chatCompletions,
    (n) => ({ choices: [{ delta: { tool_calls: [{ index: 0, [`f${n}`]: 0 }] } }] }),
  ],
  ['fields of a message', anthropicMessages, (n) => ({ type: 'message_delta', delta: { [`f${n}`]: 0 } })],
  ['counts', anthropicMessages, (n) => ({ type: 'message_delta', usage: { [`f${n}`]: 0 } })],
  ['blocks', anthropicMessages, (n) => ({ type: 'content_block_start', index: n, content_block: { type: 'text' } })],
  ['fields of an answer', googleGenerate, (n) => ({ [`f${n}`]: 0 })],
  ['fields of a candidate', googleGenerate, (n) => ({ candidates: [{ [`f${n}`]: 0 }] })],
  ['parts', googleGenerate, (n) => ({ candidates: [{ content: { parts: [{ inlineData: n }, { text: 'a' }] } }] })],
  ['items', openaiResponses, (n) => ({ type: 'response.output_item.done', output_index: n, item: { id: n } })],
];

describe.each(GROWING)('an answer with more and more %s', (_what, dialect, event) => {
  test('is put together in time, and what is held is counted', async () => {
    const events = Array.from({ length: 30_000 }, (_, n) => JSON.stringify(event(n)));
    const bytes = events.reduce((sum, text) => sum + text.length, 0);
    let reader = dialect.reader();
    const times = await timesReference(bytes, () => {
      reader = dialect.reader();
      for (const text of events) reader.read(JSON.parse(text) as JsonObject);
      return JSON.stringify(reader.answer());
    });
    expect(times).toBeLessThan(MOST_TIMES);
    expect(reader.characters).toBeGreaterThan(30_000);
    expect(reader.characters).toBeLessThan(bytes);
  });
});

/** Everything that reads what others wrote, from its bytes. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a call of the MCP endpoint': (text) => parseIncoming(Buffer.from(`{"id":1.5,"params":${text}`)),
  'a call with an id that is no integer': (text) =>
    parseIncoming(Buffer.from(`{"id":1.5,"params":${JSON.stringify(text)}}`)),
  'a message to an MCP server': (text) =>
    readMessage({ jsonrpc: '2.0', id: text, method: 'tools/call', params: { name: text } }),
  'a report': (text) => parseBounded(EventsRequest, { epoch: 1, events: Array.from(text).slice(0, 90_000) }),
  'the end of a run': (text) => [
    parseBounded(FinishRequest, { epoch: 1, events: [], outcome: Array.from(text).slice(0, 90_000) }),
    parseBounded(FinishRequest, { epoch: 1, events: [], outcome: { reason: text, message: text, output: text } }),
  ],
  'a call of a tool': (text) =>
    parseBounded(ToolRequest, { epoch: 1, call: 1, tool: text, input: Array.from(text).slice(0, 90_000) }),
  'events of a model': (text) => [
    ...new StreamEvents(BYTES * 64).read(Buffer.from(text)),
    ...new StreamEvents(BYTES * 64).read(Buffer.from(`data: ${text}\n\n`)),
  ],
  'words of a model server': (text) => [
    quoted(text, 'secret'),
    sayingOf({ text: JSON.stringify({ error: text }), secret: '' }),
  ],
  'a script': (text) => [
    parseDirectives(text),
    parseDirectives(`/shell${text}\u2028`),
    parseDirectives(`/call @a ${text}`),
  ],
  'a line of a log': (text) => redact(text),
  'a text of a template': (text) => secretIn(text),
  'an error of the API server': (text) => withoutValues(`Invalid value: ${text}`),
  'a name': (text) => slugFromName(text),
  'headers of a visit': (text) =>
    isPassiveVisit('GET', { 'user-agent': text.slice(0, 16_384), purpose: text.slice(0, 16_384) }),
};

describe.each(Object.entries(READERS))('%s', (_what, read) => {
  test.each(FILLS)('of %j', async (unit) => {
    const texts = [fill(unit, BYTES), `${fill(unit, BYTES)}!`, `x ${fill(unit, BYTES)}\u2028!`];
    const times = await timesReference(3 * BYTES, () => texts.map(read));
    expect(times).toBeLessThan(MOST_TIMES);
  });
});

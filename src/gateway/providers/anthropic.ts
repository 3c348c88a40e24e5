/** Anthropic's Messages API (docs.anthropic.com/en/api/messages). */
import { z } from 'zod';
import { Amount, Text, listOf } from '../../protocol/sizes.js';
import { messageCounts, MessageStream } from './anthropic-stream.js';
import { limitIn, objectIn, type Dialect, type JsonObject } from './dialect.js';

const cached = { cache_control: z.unknown().optional() };
const TextBlock = z.strictObject({ type: z.literal('text'), text: Text, ...cached });
const Image = z.strictObject({
  type: z.literal('image'),
  source: z.strictObject({ type: z.literal('base64'), media_type: Text, data: Text }),
  ...cached,
});
const Block = z.discriminatedUnion('type', [
  TextBlock,
  Image,
  z.strictObject({
    type: z.literal('tool_use'),
    id: Text,
    name: Text,
    input: z.unknown(),
    ...cached,
  }),
  z.strictObject({
    type: z.literal('tool_result'),
    tool_use_id: Text,
    content: z.union([Text, listOf(z.discriminatedUnion('type', [TextBlock, Image]))]).optional(),
    is_error: z.boolean().optional(),
    ...cached,
  }),
  z.strictObject({ type: z.literal('thinking'), thinking: Text, signature: Text }),
  z.strictObject({ type: z.literal('redacted_thinking'), data: Text }),
]);

const Body = z.strictObject({
  model: Text,
  max_tokens: z.int().min(1),
  messages: listOf(z.strictObject({ role: z.enum(['user', 'assistant']), content: z.union([Text, listOf(Block)]) })),
  system: z.union([Text, listOf(TextBlock)]).optional(),
  // A hosted tool has another type.
  tools: listOf(
    z.strictObject({
      type: z.literal('custom').optional(),
      name: Text,
      description: Text.optional(),
      input_schema: z.unknown(),
      strict: z.boolean().optional(),
      eager_input_streaming: z.boolean().optional(),
      ...cached,
    }),
  ).optional(),
  tool_choice: z.unknown().optional(),
  temperature: Amount.optional(),
  top_p: Amount.optional(),
  top_k: Amount.optional(),
  stop_sequences: listOf(Text).optional(),
  thinking: z.unknown().optional(),
  output_config: z.unknown().optional(),
  stream: z.boolean().optional(),
});

/** The least that may be thought, where a number is given. */
const LEAST_THINKING_TOKENS = 1024;

/** A budget for thoughts must be below the limit, and leave room for the answer: half of it where it does not. */
function thinkingWithin(body: JsonObject, maxOutputTokens: number): Record<string, unknown> {
  const thinking = objectIn(body['thinking']);
  const budget = limitIn(thinking['budget_tokens']);
  if (budget === undefined || budget < maxOutputTokens) return {};
  const half = Math.floor(maxOutputTokens / 2);
  if (half < LEAST_THINKING_TOKENS) return { thinking: { type: 'disabled' } };
  return { thinking: { ...thinking, budget_tokens: half } };
}

export const anthropicMessages: Dialect = {
  pathOf: (path) => (path === 'messages' ? {} : undefined),
  body: Body,
  read: (body) => ({
    model: String(body['model']),
    stream: body['stream'] === true,
    maxOutputTokens: limitIn(body['max_tokens']),
  }),
  limit: (body, maxOutputTokens) => ({
    ...body,
    ...thinkingWithin(body, maxOutputTokens),
    max_tokens: maxOutputTokens,
  }),
  optional: { temperature: ['temperature'], reasoning: ['thinking', 'output_config'] },
  usageOf: messageCounts,
  streamed: (path, body) => ({ path, body: { ...body, stream: true } }),
  reader: () => new MessageStream(),
};

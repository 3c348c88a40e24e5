/** Chat completions as OpenAI described them; Mistral, DeepSeek, vLLM, Ollama and llama-server speak it with small additions. */
import { z } from 'zod';
import { Amount, Text, listOf } from '../../protocol/sizes.js';
import { completionCounts, ChatStream } from './chat-stream.js';
import { limitIn, type Dialect, type JsonObject } from './dialect.js';

const DataUrl = Text.regex(/^data:/, 'must be a data: URL');

const Part = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: Text }),
  z.strictObject({
    type: z.literal('image_url'),
    image_url: z.union([DataUrl, z.strictObject({ url: DataUrl, detail: Text.optional() })]),
  }),
  // Mistral's reasoning models.
  z.strictObject({
    type: z.literal('thinking'),
    thinking: listOf(z.strictObject({ type: z.literal('text'), text: Text })),
    signature: Text.nullish(),
    closed: z.boolean().optional(),
  }),
]);

const Message = z.strictObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z.union([Text, listOf(Part)]).nullish(),
  name: Text.optional(),
  prefix: z.boolean().optional(),
  reasoning_content: Text.nullish(),
  reasoning: Text.nullish(),
  refusal: Text.nullish(),
  tool_call_id: Text.optional(),
  tool_calls: listOf(
    z.strictObject({
      id: Text,
      index: z.int().optional(),
      type: z.literal('function').optional(),
      function: z.strictObject({ name: Text, arguments: Text }),
    }),
  ).optional(),
});

const Body = z.strictObject({
  model: Text,
  messages: listOf(Message),
  tools: listOf(
    z.strictObject({
      type: z.literal('function'),
      function: z.strictObject({
        name: Text,
        description: Text.optional(),
        parameters: z.unknown(),
        strict: z.boolean().nullish(),
      }),
    }),
  ).optional(),
  tool_choice: z.unknown().optional(),
  parallel_tool_calls: z.boolean().optional(),
  max_tokens: z.int().min(1).optional(),
  max_completion_tokens: z.int().min(1).optional(),
  temperature: Amount.optional(),
  top_p: Amount.optional(),
  presence_penalty: Amount.optional(),
  frequency_penalty: Amount.optional(),
  seed: Amount.optional(),
  random_seed: Amount.optional(),
  stop: z.union([Text, listOf(Text)]).optional(),
  safe_prompt: z.boolean().optional(),
  reasoning_effort: Text.optional(),
  thinking: z.unknown().optional(),
  response_format: z.unknown().optional(),
  stream: z.boolean().optional(),
  stream_options: z.strictObject({ include_usage: z.boolean().optional() }).optional(),
});

export const chatCompletions: Dialect = {
  pathOf: (path) => (path === 'chat/completions' ? {} : undefined),
  body: Body,
  read: (body) => ({
    model: String(body['model']),
    stream: body['stream'] === true,
    maxOutputTokens: limitIn(body['max_completion_tokens']) ?? limitIn(body['max_tokens']),
  }),
  limit: (body, maxOutputTokens) =>
    body['max_completion_tokens'] === undefined
      ? { ...body, max_tokens: maxOutputTokens }
      : { ...body, max_completion_tokens: maxOutputTokens },
  optional: { temperature: ['temperature'], reasoning: ['reasoning_effort', 'thinking'] },
  usageOf: completionCounts,
  streamed: (path, body) => ({ path, body: { ...body, stream: true } }),
  reader: () => new ChatStream(),
};

/** The same, for servers that tell the usage of a stream only when they are asked; Mistral refuses the question. */
export function askingForUsage(body: JsonObject): Record<string, unknown> {
  return body['stream'] === true ? { ...body, stream_options: { include_usage: true } } : { ...body };
}

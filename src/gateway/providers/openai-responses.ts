/** OpenAI's Responses API (platform.openai.com/docs/api-reference/responses), which xAI speaks as well. */
import { z } from 'zod';
import { Amount, Text, listOf } from '../../protocol/sizes.js';
import { limitIn, type Dialect } from './dialect.js';
import { responseCounts, ResponseStream } from './responses-stream.js';

/** The bytes themselves; no address that the provider would fetch. */
const DataUrl = Text.regex(/^data:/, 'must be a data: URL');

const Parts = listOf(
  z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('input_text'), text: Text }),
    z.strictObject({
      type: z.literal('output_text'),
      text: Text,
      annotations: listOf(z.unknown()).optional(),
      logprobs: listOf(z.unknown()).optional(),
    }),
    z.strictObject({ type: z.literal('refusal'), refusal: Text }),
    z.strictObject({ type: z.literal('input_image'), image_url: DataUrl, detail: Text.optional() }),
  ]),
);
const id = Text.optional();
const status = Text.optional();

// An item_reference names what the provider stored: it is not among them.
const Item = z.union([
  z.strictObject({
    type: z.literal('message').optional(),
    id,
    role: z.enum(['user', 'assistant', 'system', 'developer']),
    content: z.union([Text, Parts]),
    phase: Text.nullish(),
    status,
  }),
  z.strictObject({
    type: z.literal('function_call'),
    id,
    call_id: Text,
    name: Text,
    arguments: Text,
    status,
  }),
  z.strictObject({
    type: z.literal('function_call_output'),
    id,
    call_id: Text,
    output: z.union([Text, Parts]),
    status,
  }),
  z.strictObject({
    type: z.literal('reasoning'),
    id,
    summary: listOf(z.unknown()).optional(),
    content: listOf(z.unknown()).nullish(),
    encrypted_content: Text.nullish(),
    status,
  }),
]);

const Body = z.strictObject({
  model: Text,
  input: z.union([Text, listOf(Item)]),
  instructions: Text.optional(),
  // Their default is to keep every answer.
  store: z.literal(false),
  include: listOf(z.literal('reasoning.encrypted_content')).optional(),
  max_output_tokens: z.int().min(1).optional(),
  temperature: Amount.optional(),
  top_p: Amount.optional(),
  tools: listOf(
    z.strictObject({
      type: z.literal('function'),
      name: Text,
      description: Text.optional(),
      parameters: z.unknown(),
      strict: z.boolean().nullish(),
    }),
  ).optional(),
  tool_choice: z
    .union([z.enum(['auto', 'none', 'required']), z.strictObject({ type: z.literal('function'), name: Text })])
    .optional(),
  parallel_tool_calls: z.boolean().optional(),
  reasoning: z.unknown().optional(),
  text: z.unknown().optional(),
  truncation: Text.optional(),
  prompt_cache_key: Text.optional(),
  stream: z.boolean().optional(),
});

export const openaiResponses: Dialect = {
  pathOf: (path) => (path === 'responses' ? {} : undefined),
  body: Body,
  read: (body) => ({
    model: String(body['model']),
    stream: body['stream'] === true,
    maxOutputTokens: limitIn(body['max_output_tokens']),
  }),
  limit: (body, maxOutputTokens) => ({ ...body, max_output_tokens: maxOutputTokens }),
  optional: { temperature: ['temperature'], reasoning: ['reasoning'] },
  usageOf: responseCounts,
  streamed: (path, body) => ({ path, body: { ...body, stream: true } }),
  reader: () => new ResponseStream(),
};

/** Google's generateContent (ai.google.dev/api/generate-content). The path names the model and whether it streams. */
import { z } from 'zod';
import { Amount, Text, listOf } from '../../protocol/sizes.js';
import { limitIn, objectIn, type Dialect } from './dialect.js';
import { generateCounts, GenerateStream } from './google-stream.js';

// fileData names what the provider stored or would fetch: it is not among them.
const Content = z.strictObject({
  role: z.enum(['user', 'model', 'function']).optional(),
  parts: listOf(
    z.strictObject({
      text: Text.optional(),
      thought: z.boolean().optional(),
      thoughtSignature: Text.optional(),
      inlineData: z.strictObject({ mimeType: Text, data: Text }).optional(),
      functionCall: z.strictObject({ id: Text.optional(), name: Text, args: z.unknown().optional() }).optional(),
      functionResponse: z
        .strictObject({
          id: Text.optional(),
          name: Text,
          response: z.unknown(),
          // Pictures.
          parts: listOf(z.strictObject({ inlineData: z.strictObject({ mimeType: Text, data: Text }) })).optional(),
        })
        .optional(),
    }),
  ),
});

const GenerationConfig = z.strictObject({
  maxOutputTokens: z.int().min(1).optional(),
  temperature: Amount.optional(),
  topP: Amount.optional(),
  topK: Amount.optional(),
  stopSequences: listOf(Text).optional(),
  seed: Amount.optional(),
  presencePenalty: Amount.optional(),
  frequencyPenalty: Amount.optional(),
  responseMimeType: Text.optional(),
  responseSchema: z.unknown().optional(),
  responseJsonSchema: z.unknown().optional(),
  thinkingConfig: z.unknown().optional(),
});

const Body = z.strictObject({
  contents: listOf(Content),
  systemInstruction: Content.optional(),
  generationConfig: GenerationConfig.optional(),
  // googleSearch, codeExecution, urlContext and the like run at the provider.
  tools: listOf(z.strictObject({ functionDeclarations: listOf(z.unknown()) })).optional(),
  toolConfig: z.strictObject({ functionCallingConfig: z.unknown() }).optional(),
  safetySettings: z.unknown().optional(),
});

const PATH = /^models\/([A-Za-z0-9._-]{1,128}):(generateContent|streamGenerateContent)$/;

export const googleGenerate: Dialect = {
  pathOf(path) {
    const [, model, method] = PATH.exec(path) ?? [];
    return model === undefined ? undefined : { model, stream: method === 'streamGenerateContent' };
  },
  body: Body,
  read: (body, { model = '', stream = false }) => ({
    model,
    stream,
    maxOutputTokens: limitIn(objectIn(body['generationConfig'])['maxOutputTokens']),
  }),
  limit: (body, maxOutputTokens) => ({
    ...body,
    generationConfig: { ...objectIn(body['generationConfig']), maxOutputTokens },
  }),
  optional: { temperature: ['generationConfig.temperature'], reasoning: ['generationConfig.thinkingConfig'] },
  usageOf: generateCounts,
  streamed: (path, body) => ({ path: path.replace(/:generateContent$/, ':streamGenerateContent'), body: { ...body } }),
  reader: () => new GenerateStream(),
};

/** The part of the OpenAI chat-completions format that the scripted engine speaks, with and without streaming. */
import { z } from 'zod';
import { Text, listOf } from '../../protocol/sizes.js';

const Part = z.object({ type: Text, text: Text.optional() });
const Content = z.union([Text, listOf(Part)]).nullish();

const ChatMessage = z.object({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: Content,
  tool_calls: listOf(z.object({ id: Text, function: z.object({ name: Text, arguments: Text }) })).nullish(),
  /** Of a result: the call that it belongs to. */
  tool_call_id: Text.nullish(),
});
export type ChatMessage = z.output<typeof ChatMessage>;

export const ChatRequest = z.object({
  model: z.string().max(128),
  messages: listOf(ChatMessage).min(1),
  tools: listOf(z.object({ function: z.object({ name: Text }) })).nullish(),
  tool_choice: z.unknown().optional(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
});
export type ChatRequest = z.output<typeof ChatRequest>;

/** The text of a message; other parts than text count as nothing. */
export function textOf(message: Pick<ChatMessage, 'content'>): string {
  const { content } = message;
  if (content === null || content === undefined) return '';
  return typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('');
}

/** A call of a tool. */
export interface AnswerCall {
  id: string;
  tool: string;
  arguments: string;
}

/** One answer of a model. */
export interface ChatAnswer {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  model: string;
  text: string;
  calls: readonly AnswerCall[];
  /** The text ends at an output limit. */
  isCut?: boolean;
  usage: { inputTokens: number; outputTokens: number };
}

/** The body of an answer without streaming. */
export function completionOf(answer: ChatAnswer): Record<string, unknown> {
  return {
    ...head(answer, 'chat.completion'),
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: answer.text === '' ? null : answer.text,
          ...(answer.calls.length === 0 ? {} : { tool_calls: answer.calls.map(toolCall) }),
        },
        finish_reason: finishReason(answer),
      },
    ],
    usage: usageOf(answer),
  };
}

/** Pieces of a streamed text; none ends within a character. */
const PIECES = /[^]{1,64}/gu;

/** The events of a streamed answer, each one `data:` line with its empty line. */
export function* eventsOf(answer: ChatAnswer, includeUsage: boolean): Generator<string> {
  const chunk = (delta: Record<string, unknown>, finish: string | null) => ({
    ...head(answer, 'chat.completion.chunk'),
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  yield event(chunk({ role: 'assistant', content: '' }, null));
  for (const content of answer.text.match(PIECES) ?? []) yield event(chunk({ content }, null));
  for (const [index, call] of answer.calls.entries())
    yield event(chunk({ tool_calls: [{ index, ...toolCall(call) }] }, null));
  yield event(chunk({}, finishReason(answer)));
  if (includeUsage) yield event({ ...head(answer, 'chat.completion.chunk'), choices: [], usage: usageOf(answer) });
  yield 'data: [DONE]\n\n';
}

function head(answer: ChatAnswer, object: string): Record<string, unknown> {
  return { id: answer.id, object, created: answer.created, model: answer.model };
}

function toolCall(call: AnswerCall): Record<string, unknown> {
  return { id: call.id, type: 'function', function: { name: call.tool, arguments: call.arguments } };
}

function finishReason(answer: ChatAnswer): string {
  if (answer.isCut === true) return 'length';
  return answer.calls.length === 0 ? 'stop' : 'tool_calls';
}

function usageOf({ usage }: ChatAnswer): Record<string, number> {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}

function event(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

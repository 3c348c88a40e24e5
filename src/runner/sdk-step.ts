/** What the AI SDK tells of a step and of its calls, and what of it we record. Pure. */
import type { CallWarning, ContentPart, LanguageModelUsage, ModelMessage, ToolSet } from 'ai';
import type { StepRecord, ToolResult } from './engine.js';

/** A call that has ended. */
export interface ToolEnd {
  toolCall: { toolCallId: string; toolName: string; input: unknown };
  toolOutput: { type: string; output?: unknown; error?: unknown };
}

/** A step that has ended. */
export interface StepEnd {
  text: string;
  finishReason: string;
  rawFinishReason?: string | undefined;
  usage: Pick<LanguageModelUsage, 'inputTokens' | 'inputTokenDetails' | 'outputTokens'>;
  warnings: readonly CallWarning[] | undefined;
  response: { messages: readonly ModelMessage[]; headers?: Readonly<Record<string, string>> | undefined };
  content: readonly (
    | { type: 'tool-error'; toolCallId: string; toolName: string; input: unknown; error: unknown }
    | { type: 'tool-call'; toolCallId: string; toolName: string; input: unknown }
    | { type: Exclude<ContentPart<ToolSet>['type'], 'tool-error' | 'tool-call'> }
  )[];
}

/** What a call came to, as it is recorded. */
export interface CallOutcome {
  result: unknown;
  isError: boolean;
}

/** Of a result, or of an error that the SDK made. */
export function callOutcome(output: { type: string; output?: unknown; error?: unknown }): CallOutcome {
  if (output.type === 'tool-result') {
    const { result, isError } = output.output as ToolResult;
    return { result, isError };
  }
  const error = textOf(output.error);
  return { result: { error }, isError: true };
}

/** What a tool threw, for a model: an aborted call throws what the run was stopped with, which is no Error. */
function textOf(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown;
  const { message } = (thrown ?? {}) as { message?: unknown };
  return typeof message === 'string' && message !== '' ? message : 'The tool was stopped before it answered.';
}

/** What the provider counted, without what it did not say. */
export function tokensOf(usage: StepEnd['usage']): Omit<StepRecord, 'step' | 'finishReason'> {
  const { inputTokenDetails: cache, inputTokens = 0, outputTokens = 0 } = usage;
  return {
    inputTokens,
    ...(cache.cacheReadTokens ? { cacheReadTokens: cache.cacheReadTokens } : {}),
    ...(cache.cacheWriteTokens ? { cacheWriteTokens: cache.cacheWriteTokens } : {}),
    outputTokens,
  };
}

/** Settings of an agent, as the SDK calls them. */
const SETTINGS: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  maxOutputTokens: 'maxOutputTokens',
  reasoning: 'reasoning',
  reasoningEffort: 'reasoning',
  'extended thinking': 'reasoning',
  'providerOptions.anthropic.thinking': 'reasoning',
  'providerOptions.anthropic.effort': 'reasoning',
};

/** For people; undefined for what is no setting of an agent. */
export function warningText(warning: CallWarning): string | undefined {
  const setting = 'feature' in warning ? SETTINGS[warning.feature] : undefined;
  if (setting === undefined) return undefined;
  const details = 'details' in warning && warning.details !== undefined ? `: ${warning.details}` : '.';
  return `The model does not take ${setting} as the agent sets it${details}`;
}

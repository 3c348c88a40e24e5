/** How a run begins: with its message, with the answer to an open call, or by executing the call that a person approved. */
import { fitInput } from '../protocol/fit-input.js';
import type { ClaimAnswer, TranscriptMessage } from '../protocol/run.js';
import type { Clock } from '../runtime/clock.js';
import type { EngineHooks, EngineTool, ToolResult } from './engine.js';
import { parseJson } from './gateway-client.js';
import { failed, withNotes } from './results.js';

export interface OpeningContext {
  /** As they are, without the question for an approval. */
  tools: readonly EngineTool[];
  hooks: Pick<EngineHooks, 'onTool' | 'onMessage'>;
  clock: Clock;
  signal: AbortSignal;
}

/** The messages that follow the history, a note of the runner last; they are recorded already. An approved call belongs to the first step. */
export async function openConversation(
  claim: Pick<ClaimAnswer, 'message' | 'opening' | 'approved'> & { note?: TranscriptMessage | undefined },
  context: OpeningContext,
): Promise<TranscriptMessage[]> {
  const { approved } = claim;
  const messages = [
    ...(claim.opening ?? [{ role: 'user' as const, text: claim.message }]),
    ...(approved === undefined ? [] : [await execute(approved, context)]),
    ...(claim.note === undefined ? [] : [claim.note]),
  ];
  for (const message of messages) await context.hooks.onMessage(message);
  return messages;
}

async function execute(
  { callId, tool, input: json }: NonNullable<ClaimAnswer['approved']>,
  { tools, hooks, clock, signal }: OpeningContext,
): Promise<TranscriptMessage> {
  const startedAt = clock.monotonic();
  const input = parseJson(json);
  const definition = tools.find(({ name }) => name === tool);
  const { result, isError, text } = await call(definition, input, signal);
  await hooks.onTool({ step: 1, tool, input, result, isError, durationMs: Math.round(clock.monotonic() - startedAt) });
  const answer = { role: 'tool' as const, callId, tool, isError };
  if (text !== undefined) return { ...answer, result: JSON.stringify(text), form: 'text' };
  return { ...answer, result: JSON.stringify(result) };
}

async function call(tool: EngineTool | undefined, input: unknown, signal: AbortSignal): Promise<ToolResult> {
  const fitted = tool === undefined ? undefined : fitInput(tool.input, input);
  if (tool === undefined || fitted === undefined || 'problem' in fitted) {
    return failed('The approved call cannot be executed any more: the tool is not there or has changed.');
  }
  const result = await tool.execute(fitted.input, signal);
  // It becomes a stored message, and these hold no pictures.
  const unseen = (result.pictures ?? []).length === 0 ? [] : ['its picture is not shown after an approval'];
  return withNotes(result, [...fitted.notes, ...unseen]);
}

/**
 * How a run goes on that answers what its session waits for (DESIGN 4, Questions and approvals; reference tools.md 2):
 * the message of the run becomes the result of the call that was left open. Pure.
 */
import type { RunPending } from '../../api/v1alpha1/agent-run.js';
import type { TranscriptMessage } from '../../protocol/run.js';

/** Whether the newest assistant message of a conversation holds that call without a result. */
export function hasOpenCall(history: readonly TranscriptMessage[], callId: string): boolean {
  const last = history.findLastIndex(({ role }) => role === 'assistant');
  const message = history[last];
  if (message?.role !== 'assistant') return false;
  const isAnswered = history.slice(last + 1).some((later) => later.role === 'tool' && later.callId === callId);
  return !isAnswered && (message.toolCalls ?? []).some(({ id }) => id === callId);
}

/** The result of an open `ask_user`. */
export function answeredQuestion(pending: RunPending, message: string): TranscriptMessage[] {
  const result = JSON.stringify({ answer: `user replied: ${message}` });
  return [{ role: 'tool', callId: pending.callId, tool: 'ask_user', result, isError: false }];
}

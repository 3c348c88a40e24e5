/**
 * How a run goes on that answers what its session waits for:
 * the message of the run becomes the result of the call that was left open. Pure.
 * See docs/architecture.md#questions-and-approvals.
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

/** How a run begins that answers what its session waits for. */
export interface Resume {
  /** Results of the open call; empty when the call is approved and executed by the run. */
  opening: TranscriptMessage[];
  approved?: { callId: string; tool: string; input: string };
  /** The tool that needs no approval any more in this session. */
  always?: string;
}

/** `actor` is who sent the message: what another run says is passed on, but never approves anything. */
export function resumeOf(pending: RunPending, message: string, actor: string | undefined): Resume {
  const { callId, tool, input } = pending;
  const result = (value: object, isError: boolean) => {
    const name = pending.kind === 'question' ? 'ask_user' : (tool ?? '');
    return [{ role: 'tool' as const, callId, tool: name, result: JSON.stringify(value), isError }];
  };
  if (pending.kind === 'question' || tool === undefined || input === undefined) {
    return { opening: result({ answer: `user replied: ${message}` }, false) };
  }
  const decision = decisionOf(message);
  if (decision.approved && !isRun(actor)) {
    const approved = { callId, tool, input };
    return decision.always ? { opening: [], approved, always: tool } : { opening: [], approved };
  }
  const reason = decision.approved ? 'only a person can approve this call, not another agent' : decision.reason;
  return { opening: result({ error: reason === '' ? 'denied by the user' : `denied by the user: ${reason}` }, true) };
}

type Decision = { approved: true; always: boolean } | { approved: false; reason: string };

/** `approve`, `approve always`, `deny: reason` in any case; any other text denies and is passed on. */
function decisionOf(message: string): Decision {
  const text = message.trim();
  if (/^approve(?:\s+always)?[.!]?$/i.test(text)) return { approved: true, always: /always/i.test(text) };
  if (!/^deny(?![^\s:])/i.test(text)) return { approved: false, reason: text };
  const said = text.slice('deny'.length).trim();
  return { approved: false, reason: said.replace(/^:\s*/, '') };
}

/** Runs act as `run:<name>` (src/gateway/tools). */
function isRun(actor: string | undefined): boolean {
  return actor?.startsWith('run:') === true;
}

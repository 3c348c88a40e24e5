/** What a run that waits for a person hands over: the pending record of its outcome. */
import type { PendingRequest } from '../protocol/run.js';
import type { OpenCall } from './engine.js';

/** Pure. A question names no tool: what is asked is all that there is. */
export function pendingOf({ callId, tool, input, pause }: OpenCall): PendingRequest {
  const { kind, text, choices } = pause;
  return {
    kind,
    text,
    callId,
    ...(choices === undefined ? {} : { choices: [...choices] }),
    ...(kind === 'approval' ? { tool, input: JSON.stringify(input) } : {}),
  };
}

/** A model call that failed, in the words of the gateway. Pure. */
import { APICallError } from 'ai';
import type { EngineOutcome } from './engine.js';
import { parseJson } from './gateway-client.js';

const SAID_BY_GATEWAY = [
  'ModelNotConfigured',
  'StepLimitReached',
  'ModelError',
  'ModelUnpriced',
  'ReplayFailed',
  'BudgetExhausted',
] as const;

/** Whether a call failed although nothing was wrong with what was asked: another model may answer it. */
export function isNotServed(error: unknown): boolean {
  if (!APICallError.isInstance(error)) return false;
  const body = parseJson(error.responseBody ?? '') as
    { notServed?: unknown; error?: { type?: unknown } } | null | undefined;
  return body?.notServed === true || body?.error?.type === 'ModelNotConfigured';
}

/** Whether a budget in US dollars kept the call back, because the model has no price. */
export function isUnpriced(error: unknown): boolean {
  return describeFailure(error).reason === 'ModelUnpriced';
}

/** A failed model call in the words of the gateway: `{"error": {"type": "<RunReason>", "message": "..."}}`. */
export function describeFailure(error: unknown): Pick<EngineOutcome, 'reason' | 'message'> {
  if (!APICallError.isInstance(error)) {
    return { reason: 'ModelError', message: error instanceof Error ? error.message : 'The model call failed.' };
  }
  const body = parseJson(error.responseBody ?? '') as
    { error?: { type?: unknown; message?: unknown } } | null | undefined;
  const message = typeof body?.error?.message === 'string' ? body.error.message : error.message;
  const type = body?.error?.type;
  // The gateway counts too: it can be a step ahead when an answer got lost on its way.
  const known = SAID_BY_GATEWAY.find((reason) => reason === type);
  if (known !== undefined) return { reason: known, message };
  const status = error.statusCode === undefined || error.statusCode === 200 ? '' : ` (HTTP ${error.statusCode})`;
  return { reason: 'ModelError', message: `The model call failed${status}: ${message}` };
}

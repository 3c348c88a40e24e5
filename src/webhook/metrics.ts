/** Outcomes of calls to trigger URLs. */
import { Counter } from 'prom-client';
import type { Registry } from 'prom-client';

/**
 * The outcomes of a call: a closed list, fit for a label. Only `fired` started a run; `deduplicated` was answered with the
 * run of an earlier call.
 */
const OUTCOMES = [
  'fired',
  'deduplicated',
  'head',
  'options',
  'passive',
  'unknown',
  'disabled',
  'method',
  'body_too_large',
  'body_stalled',
  'body_aborted',
  'lookup_failed',
  'signature_missing',
  'signature_stale',
  'signature_wrong',
  'signature_key_missing',
  'internal_error',
  'backlog_agent',
  'backlog_box',
  'backlog_installation',
  'refused',
  'no_answer',
  'message_too_large',
] as const;
export type WebhookOutcome = (typeof OUTCOMES)[number];

export interface WebhookMetrics {
  called(outcome: WebhookOutcome): void;
}

/** `boxwright_webhook_calls_total`; alert on backlog_*, refused, no_answer and signature_key_missing: callers lost a call. */
export function createWebhookMetrics(registry: Registry): WebhookMetrics {
  const calls = new Counter({
    name: 'boxwright_webhook_calls_total',
    help: 'Calls of trigger URLs by what became of them.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  // An alert can see a rise only of a series that already exists.
  for (const outcome of OUTCOMES) calls.inc({ outcome }, 0);
  return { called: (outcome) => calls.inc({ outcome }) };
}

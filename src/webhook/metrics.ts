/** What became of the calls of trigger URLs. */
import { Counter } from 'prom-client';
import type { Registry } from 'prom-client';
import type { TurnAwayCause } from './fire.js';

/** A closed list, fit for a label. Only `fired` started a run; `deduplicated` was answered with the run of an earlier call. */
export type WebhookOutcome =
  | 'fired'
  | 'deduplicated'
  | 'head'
  | 'options'
  | 'passive'
  | 'unknown'
  | 'disabled'
  | 'method'
  | 'body_too_large'
  | 'body_stalled'
  | 'body_aborted'
  | 'lookup_failed'
  | 'internal_error'
  | TurnAwayCause;

export interface WebhookMetrics {
  called(outcome: WebhookOutcome): void;
}

/** `boxwright_webhook_calls_total`; alert on backlog_*, refused and no_answer: callers lost a call. */
export function createWebhookMetrics(registry: Registry): WebhookMetrics {
  const calls = new Counter({
    name: 'boxwright_webhook_calls_total',
    help: 'Calls of trigger URLs by what became of them.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  return { called: (outcome) => calls.inc({ outcome }) };
}

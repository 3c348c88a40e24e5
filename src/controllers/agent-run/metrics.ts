/** How runs ended, and how long they wait. The label is a reason of the closed list (docs/reasons.md), never a name or a text. */
import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import { RUN_REASONS } from '../../run/reasons.js';

export interface RunMetrics {
  /** A run got its outcome, whoever wrote it. */
  ended(reason: string | undefined): void;
  /** A run lost its Job before anything was executed, and waits again. */
  returned(): void;
  /** How long the oldest run of the queue waits; 0 when none does. */
  oldestWaiting(seconds: number): void;
}

export function createRunMetrics(registry: Registry): RunMetrics {
  const ended = new Counter({
    name: 'boxwright_runs_ended_total',
    help: 'Runs that ended, by reason.',
    labelNames: ['reason'],
    registers: [registry],
  });
  const returned = new Counter({
    name: 'boxwright_runs_returned_total',
    help: 'Runs that went back to the queue because the cluster had no room for their pod.',
    registers: [registry],
  });
  const oldest = new Gauge({
    name: 'boxwright_oldest_waiting_run_seconds',
    help: 'How long the oldest run of the queue waits; runs of paused or inactive agents too.',
    registers: [registry],
  });
  return {
    ended: (reason) =>
      ended.inc({ reason: reason !== undefined && Object.hasOwn(RUN_REASONS, reason) ? reason : 'other' }),
    returned: () => returned.inc(),
    oldestWaiting: (seconds) => oldest.set(seconds),
  };
}

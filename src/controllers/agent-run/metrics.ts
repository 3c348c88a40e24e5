/** How runs ended. The label is a reason of the closed list (docs/reasons.md), never a name or a text. */
import { Counter } from 'prom-client';
import type { Registry } from 'prom-client';
import { RUN_REASONS } from '../../api/reasons.js';

export interface RunMetrics {
  /** A run got its outcome, whoever wrote it. */
  ended(reason: string | undefined): void;
  /** A run lost its Job before anything was executed, and waits again. */
  returned(): void;
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
  return {
    ended: (reason) =>
      ended.inc({ reason: reason !== undefined && Object.hasOwn(RUN_REASONS, reason) ? reason : 'other' }),
    returned: () => returned.inc(),
  };
}

/** What retention did and what it holds. Labels are the rules of retention, never names. */
import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { ExpiryRule, RemovalRule, RetentionAction } from './plan.js';

/** How full the installation is, at each pass. */
export interface RetentionLevels {
  finishedRuns: number;
  /** Finished runs above the maximum that may not go yet. */
  heldRuns: number;
  storedBytes: number;
  /** Actions that were due. */
  due: number;
}

export interface RetentionMetrics {
  acted(action: RetentionAction['do'], rule: RemovalRule | ExpiryRule): void;
  levels(levels: RetentionLevels): void;
}

/** Alert on `boxwright_retention_held_runs` above 0: new calls of trigger URLs are about to be turned away. */
export function createRetentionMetrics(registry: Registry): RetentionMetrics {
  const actions = new Counter({
    name: 'boxwright_retention_actions_total',
    help: 'Finished runs that were removed, or lost their stored input and transcript, by rule.',
    labelNames: ['action', 'rule'],
    registers: [registry],
  });
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers: [registry] });
  const finished = gauge('boxwright_finished_runs', 'Finished runs in the cluster.');
  const held = gauge('boxwright_retention_held_runs', 'Finished runs above the maximum that may not be removed yet.');
  const stored = gauge('boxwright_retention_stored_bytes', 'Stored inputs and transcripts of finished runs.');
  const due = gauge('boxwright_retention_due_actions', 'Removals that were due at the last pass.');
  return {
    acted: (action, rule) => actions.inc({ action, rule }),
    levels(levels) {
      finished.set(levels.finishedRuns);
      held.set(levels.heldRuns);
      stored.set(levels.storedBytes);
      due.set(levels.due);
    },
  };
}

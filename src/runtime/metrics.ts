/** What the runtime reports about itself. src/observability implements these; tests may leave them out. */

export type ReconcileOutcome = 'success' | 'requeue_after' | 'conflict' | 'terminal' | 'error';

export interface ControllerMetrics {
  /** One reconcile ended. `controller` is the controller's name: a closed set, fit for a label. */
  reconciled(controller: string, outcome: ReconcileOutcome, seconds: number): void;
  /** Keys that wait for a worker, after every change. */
  queueDepth(controller: string, depth: number): void;
  /** Workers that are busy, after every change. */
  activeWorkers(controller: string, workers: number): void;
}

export interface LeaderMetrics {
  /** Called with true when the lease was won and with false when it was lost or released. */
  leading(lease: string, isLeading: boolean): void;
}

/** Why an event was not written: its object or the process had too many, the write failed, or the process stopped. */
export type EventDropCause = 'object_rate' | 'queue_full' | 'failed' | 'stopped';

export interface EventMetrics {
  dropped(cause: EventDropCause): void;
}

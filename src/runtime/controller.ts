import type { Logger } from '../observability/logger.js';
import type { BackoffOptions } from './backoff.js';
import type { Clock } from './clock.js';
import type { ControllerMetrics } from './metrics.js';
export interface ReconcileResult {
  /** Look at the key again after this many milliseconds, also when nothing changes. */
  requeueAfterMs?: number;
}
export interface ControllerOptions {
  name: string;
  workers: number;
  reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult | void>;
  clock: Clock;
  log: Logger;
  metrics?: ControllerMetrics;
  backoff?: BackoffOptions;
  random?: () => number;
  /** Bound of one reconcile: its signal fires. */
  reconcileTimeoutMs?: number;
}
export declare class Controller {
  constructor(options: ControllerOptions);
  readonly name: string;
  /** Keys that are added before start() wait for it. */
  enqueue(key: string): void;
  enqueueAfter(key: string, ms: number): void;
  start(): void;
  stop(): Promise<void>;
}

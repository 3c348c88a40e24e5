/** What every folder of src/controllers exports: the process makes one runtime Controller of each part. */
import type { ReconcileResult } from '../../runtime/controller.js';

export interface ControllerPart {
  /** For logs and metrics, for example `box`. */
  readonly name: string;
  /** Keys that may be worked on at once. */
  readonly workers: number;
  /** Level-triggered: reads caches, decides, writes; the same result when repeated. */
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult | void>;
  /** Subscribes to caches, before the informers start, and calls back with keys to look at. Returns unsubscribe. */
  watch(enqueue: (key: string) => void): () => void;
}

/** Several unsubscribes as one. */
export function all(unsubscribes: readonly (() => void)[]): () => void {
  return () => {
    for (const unsubscribe of unsubscribes) unsubscribe();
  };
}

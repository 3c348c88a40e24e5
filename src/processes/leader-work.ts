/**
 * What only the leader does. The parts subscribe to the caches when leadership begins and are then told every object once, so
 * that a process in waiting holds nothing but its caches, however long it waits.
 */
import type { ControllerPart } from '../controllers/common/controller-part.js';
import type { CacheChange, Informer } from '../kube/types.js';
import type { Logger } from '../observability/logger.js';
import type { Clock } from '../runtime/clock.js';
import { Controller } from '../runtime/controller.js';
import type { ControllerMetrics } from '../runtime/metrics.js';

export interface Replayable<P> {
  informer: Informer<P>;
  /** Tells the present listeners every object as an addition. */
  replay: () => void;
}

/** The informer with a memory of its keys and of who listens; call it before the informer starts. */
export function replayable<P>(source: Informer<P>): Replayable<P> {
  const listeners = new Set<(change: CacheChange<P>) => void>();
  const keys = new Set<string>();
  source.onChange(({ key, current }) => {
    if (current === undefined) keys.delete(key);
    else keys.add(key);
  });
  const informer: Informer<P> = {
    get: (key) => source.get(key),
    values: () => source.values(),
    byIndex: (index, value) => source.byIndex(index, value),
    get size() {
      return source.size;
    },
    get changes() {
      return source.changes;
    },
    onChange(listener) {
      listeners.add(listener);
      const unsubscribe = source.onChange(listener);
      return () => {
        listeners.delete(listener);
        unsubscribe();
      };
    },
    synced: source.synced,
    isHealthy: () => source.isHealthy(),
    waitForResourceVersion: (version, signal) => source.waitForResourceVersion(version, signal),
    start: () => source.start(),
    stop: () => source.stop(),
  };
  return {
    informer,
    replay() {
      for (const key of keys) {
        const current = source.get(key);
        if (current !== undefined) for (const listener of listeners) listener({ key, current });
      }
    },
  };
}

export interface LeaderWorkOptions {
  parts: readonly ControllerPart[];
  replays: readonly (() => void)[];
  clock: Clock;
  log: Logger;
  metrics: ControllerMetrics;
}

/** Starts all controllers; they stop together. */
export class LeaderWork {
  #controllers: Controller[] = [];
  #unsubscribes: (() => void)[] = [];

  constructor(private readonly options: LeaderWorkOptions) {}

  start(): void {
    const { parts, replays, clock, log, metrics } = this.options;
    for (const part of parts) {
      const controller = new Controller({
        name: part.name,
        workers: part.workers,
        reconcile: (key, signal) => part.reconcile(key, signal),
        clock,
        log,
        metrics,
      });
      this.#controllers.push(controller);
      this.#unsubscribes.push(part.watch((key) => controller.enqueue(key)));
    }
    for (const replay of replays) replay();
    for (const controller of this.#controllers) controller.start();
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    await Promise.all(this.#controllers.map((controller) => controller.stop()));
    this.#unsubscribes = [];
    this.#controllers = [];
  }
}

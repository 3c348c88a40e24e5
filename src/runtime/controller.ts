/**
 * The controller engine: keys in, reconciles out. Level-triggered: the reconcile function gets a key, reads the
 * caches, and gives the same result when it is called twice.
 */
import type { Logger } from '../observability/logger.js';
import type { BackoffOptions } from './backoff.js';
import { timeoutSignal } from './timeout-signal.js';
import type { Clock } from './clock.js';
import { sleep } from './clock.js';
import { isRetrySoon, isUnavailable, NotLeadingError, TerminalError } from './errors.js';
import type { ControllerMetrics, ReconcileOutcome } from './metrics.js';
import { WorkQueue } from './work-queue.js';

export interface ReconcileResult {
  /** Look at the key again after this many milliseconds, also when nothing changes. */
  requeueAfterMs?: number;
}

export interface ControllerOptions {
  name: string;
  /** Keys that are worked on at the same time; one key is never with two workers. */
  workers: number;
  /**
   * Brings one object closer to what it should be. Throws TerminalError when retrying cannot help; anything else that
   * it throws is retried with backoff.
   */
  reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult | void>;
  clock: Clock;
  log: Logger;
  metrics?: ControllerMetrics;
  /** Of failed keys. Default 200 ms to 60 s. */
  backoff?: BackoffOptions;
  random?: () => number;
  /** Bound of one reconcile: its signal fires. Default 2 minutes. */
  reconcileTimeoutMs?: number;
  /** How long stop() waits for workers. Default 20 s. */
  stopTimeoutMs?: number;
}

const DEFAULT_BACKOFF: BackoffOptions = { baseMs: 200, maxMs: 60_000, jitter: 0.2 };
/** Longest pause of a key that failed because the API server was unavailable: what waits goes on within seconds of its return. */
const UNAVAILABLE_MAX_MS = 5_000;

export class Controller {
  readonly name: string;
  readonly #options: ControllerOptions;
  readonly #queue: WorkQueue;
  readonly #stopping = new AbortController();
  #workers: Promise<void>[] = [];
  #active = 0;

  constructor(options: ControllerOptions) {
    this.name = options.name;
    this.#options = options;
    this.#queue = new WorkQueue({
      clock: options.clock,
      backoff: options.backoff ?? DEFAULT_BACKOFF,
      ...(options.random === undefined ? {} : { random: options.random }),
    });
  }

  /** Asks for a reconcile of the key. Keys that are added before start() wait for it. */
  enqueue(key: string): void {
    this.#queue.add(key);
    this.#reportDepth();
  }

  start(): void {
    if (this.#workers.length > 0) return;
    this.#workers = Array.from({ length: this.#options.workers }, () => this.#work());
  }

  /** Aborts the signals of running reconciles and waits for them, at most `stopTimeoutMs`. */
  async stop(): Promise<void> {
    const { clock, log, stopTimeoutMs = 20_000 } = this.#options;
    this.#stopping.abort();
    this.#queue.shutDown();
    const ended = new AbortController();
    const workers = Promise.all(this.#workers).then(() => ended.abort());
    await Promise.race([workers, sleep(clock, stopTimeoutMs, ended.signal)]);
    if (this.#active > 0) log.warn({ controller: this.name, workers: this.#active }, 'workers did not stop in time');
  }

  async #work(): Promise<void> {
    for (;;) {
      const key = await this.#queue.take();
      if (key === undefined) return;
      this.#setActive(1);
      this.#reportDepth();
      await this.#process(key);
      this.#queue.done(key);
      this.#setActive(-1);
      this.#reportDepth();
    }
  }

  async #process(key: string): Promise<void> {
    const { clock, metrics } = this.#options;
    const started = clock.monotonic();
    const bound = timeoutSignal(clock, this.#options.reconcileTimeoutMs ?? 120_000, this.#stopping.signal);
    let outcome: ReconcileOutcome;
    try {
      outcome = this.#succeeded(key, await this.#options.reconcile(key, bound.signal));
    } catch (error) {
      outcome = this.#failed(key, error);
    } finally {
      bound.dispose();
    }
    metrics?.reconciled(this.name, outcome, (clock.monotonic() - started) / 1000);
  }

  #succeeded(key: string, result: ReconcileResult | void): ReconcileOutcome {
    this.#queue.forget(key);
    if (result?.requeueAfterMs === undefined) return 'success';
    this.#queue.addAfter(key, result.requeueAfterMs);
    return 'requeue_after';
  }

  /** Decides about the next try, and whether a person should hear of it. */
  #failed(key: string, error: unknown): ReconcileOutcome {
    const { log } = this.#options;
    const fields = { controller: this.name, key };
    if (this.#stopping.signal.aborted || error instanceof NotLeadingError) {
      // Nothing is lost: the next leader looks at every object.
      log.debug(fields, 'reconcile was given up');
      return 'error';
    }
    if (error instanceof TerminalError) {
      this.#queue.forget(key);
      log.warn({ ...fields, err: error }, 'reconcile cannot succeed until the object changes');
      return 'terminal';
    }
    const retryInMs = this.#queue.addRateLimited(key, isUnavailable(error) ? UNAVAILABLE_MAX_MS : undefined);
    if (isRetrySoon(error)) {
      log.debug({ ...fields, retryInMs }, 'object was changed meanwhile');
      return 'conflict';
    }
    log.error({ ...fields, retryInMs, err: error }, 'reconcile failed');
    return 'error';
  }

  #setActive(change: 1 | -1): void {
    this.#active += change;
    this.#options.metrics?.activeWorkers(this.name, this.#active);
  }

  #reportDepth(): void {
    this.#options.metrics?.queueDepth(this.name, this.#queue.length);
  }
}

/**
 * Starts and stops a process in order: groups one after the other, all members of a group together. The order that
 * our processes use: probes and metrics, caches, servers, leader-only work; stopped in reverse (style: start groups).
 */
import type { Logger } from '../observability/logger.js';
import { timeoutSignal } from './timeout-signal.js';
import type { Clock } from './clock.js';

/** Something that starts, runs and stops: an informer, an HTTP server, a controller, an elector. */
export interface Runnable {
  readonly name: string;
  /** Resolves when the next group may start. The signal fires when the process is told to stop meanwhile. */
  start(signal: AbortSignal): Promise<void> | void;
  /** Called at most once, only after start() was called. Must not need others of its group. */
  stop(): Promise<void>;
}

/** The part of `process` that the manager listens to. */
export interface ProcessEvents {
  on(event: string, listener: (value: unknown) => void): unknown;
  off(event: string, listener: (value: unknown) => void): unknown;
}

export interface ManagerOptions {
  log: Logger;
  clock: Clock;
  /** Bound of the whole stop. Default 25 s: below the 30 s that Kubernetes gives a pod. */
  stopTimeoutMs?: number;
  process?: ProcessEvents;
}

interface Group {
  name: string;
  runnables: readonly Runnable[];
}

const SIGNALS = ['SIGTERM', 'SIGINT'];
/** Where nobody reads the log any more each line fails, and that is a failure too: without an end they would follow one another. */
const MAX_LOGGED_FAILURES = 10;

export class Manager {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #stopTimeoutMs: number;
  readonly #process: ProcessEvents;
  readonly #groups: Group[] = [];
  /** Groups whose start was begun, in order. */
  #started: Group[] = [];
  readonly #stopping = new AbortController();
  #exitCode = 0;
  #failures = 0;

  constructor(options: ManagerOptions) {
    this.#log = options.log;
    this.#clock = options.clock;
    this.#stopTimeoutMs = options.stopTimeoutMs ?? 25_000;
    this.#process = options.process ?? process;
  }

  /** Groups start in the order in which they were added, and stop in the reverse order. */
  addGroup(name: string, runnables: readonly Runnable[]): void {
    this.#groups.push({ name, runnables });
  }

  /** Something cannot go on (a lost lease): run() stops everything and resolves with 1. */
  fail(error: unknown): void {
    this.#exitCode = 1;
    this.#failures += 1;
    if (this.#failures <= MAX_LOGGED_FAILURES) this.#log.error({ err: error }, 'process cannot go on');
    this.#stopping.abort();
  }

  /**
   * Starts, waits for SIGTERM, SIGINT or fail(), stops, and resolves with the exit code. A promise that nobody handled
   * is a bug of unknown effect: it is logged and ends the process with 1.
   */
  async run(): Promise<number> {
    const onSignal = () => this.#stopping.abort();
    const onUnhandled = (reason: unknown) => this.fail(reason);
    for (const name of SIGNALS) this.#process.on(name, onSignal);
    for (const name of ['unhandledRejection', 'uncaughtException']) this.#process.on(name, onUnhandled);
    try {
      await this.#start();
      await aborted(this.#stopping.signal);
      this.#log.info({}, 'stopping');
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.fail(error);
    }
    await this.stop();
    for (const name of SIGNALS) this.#process.off(name, onSignal);
    for (const name of ['unhandledRejection', 'uncaughtException']) this.#process.off(name, onUnhandled);
    return this.#exitCode;
  }

  async #start(): Promise<void> {
    const { signal } = this.#stopping;
    for (const group of this.#groups) {
      if (signal.aborted) return;
      this.#started.push(group);
      const starting = Promise.all(group.runnables.map(async (runnable) => runnable.start(signal)));
      // A start that hangs must not keep a process from stopping.
      await Promise.race([starting, aborted(signal)]);
      this.#log.debug({ group: group.name }, 'group started');
    }
  }

  /** Stops what was started, in reverse; gives up at the bound. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const bound = timeoutSignal(this.#clock, this.#stopTimeoutMs);
    for (const group of this.#started.toReversed()) {
      const stops = group.runnables.map((runnable) => this.#stopOne(runnable, bound.signal));
      await Promise.all(stops);
    }
    this.#started = [];
    bound.dispose();
  }

  async #stopOne(runnable: Runnable, bound: AbortSignal): Promise<void> {
    let stopped = false;
    const stopping = runnable.stop().then(
      () => (stopped = true),
      (error: unknown) => {
        stopped = true;
        this.#log.error({ runnable: runnable.name, err: error }, 'could not be stopped');
      },
    );
    await Promise.race([stopping, aborted(bound)]);
    if (!stopped) this.#log.warn({ runnable: runnable.name }, 'did not stop in time');
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

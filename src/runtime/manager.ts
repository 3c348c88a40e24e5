import type { Logger } from '../observability/logger.js';
import type { Clock } from './clock.js';
/** Something that starts, runs and stops: an informer, an HTTP server, a controller, an elector. */
export interface Runnable {
  readonly name: string;
  start(signal: AbortSignal): Promise<void> | void;
  stop(): Promise<void>;
}
export interface ManagerOptions {
  log: Logger;
  clock: Clock;
  /** Bound of the whole stop. */
  stopTimeoutMs?: number;
}
export declare class Manager {
  constructor(options: ManagerOptions);
  /** Groups start in the order in which they were added, and stop in the reverse order. */
  addGroup(name: string, runnables: readonly Runnable[]): void;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Something cannot go on (lease lost): ends run() with exit code 1 after an orderly stop. */
  fail(error: Error): void;
  /** start, wait for SIGTERM, SIGINT or fail(), stop; resolves with the exit code. */
  run(): Promise<number>;
}

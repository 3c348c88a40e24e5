import type { Logger } from '../observability/logger.js';
import type { Clock } from './clock.js';
import type { LeaderMetrics } from './metrics.js';
export interface LeaseRecord {
  /** Empty when released. */
  holder: string;
  durationSeconds: number;
  acquireTime: string;
  renewTime: string;
  transitions: number;
  /** resourceVersion; the precondition of an update. */
  version: string;
}
export interface LeaseStore {
  read(signal: AbortSignal): Promise<LeaseRecord | undefined>;
  create(record: Omit<LeaseRecord, 'version'>, signal: AbortSignal): Promise<LeaseRecord>;
  update(record: LeaseRecord, signal: AbortSignal): Promise<LeaseRecord>;
}
export interface LeaderElectorOptions {
  name: string;
  /** Unique per process: the pod's name. */
  identity: string;
  store: LeaseStore;
  clock: Clock;
  log: Logger;
  metrics?: LeaderMetrics;
  random?: () => number;
  leaseDurationMs?: number;
  renewDeadlineMs?: number;
  retryPeriodMs?: number;
  onStartedLeading: () => Promise<void> | void;
  /** Stop the workers; the lease is released after this. `lost` = taken or not renewable: end the process. */
  onStoppedLeading: (why: 'lost' | 'stopped') => Promise<void> | void;
}
export declare class LeaderElector {
  constructor(options: LeaderElectorOptions);
  readonly name: string;
  start(): void;
  stop(): Promise<void>;
  /** Checked on the monotonic clock: true only while nobody else can hold the lease. */
  isLeading(): boolean;
}

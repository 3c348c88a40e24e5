/**
 * One leader among several processes, by a record that each writes with the version that it read. Semantics of
 * client-go: another's lease has expired when WE have seen no change of the record for its duration on our monotonic
 * clock, so clocks need not agree. A leader that could not renew stops leading before anybody else can begin.
 */
import type { Logger } from '../observability/logger.js';
import { timeoutSignal } from './timeout-signal.js';
import type { Clock } from './clock.js';
import { isoNow, sleep } from './clock.js';
import type { LeaderMetrics } from './metrics.js';

export interface LeaseRecord {
  /** Identity of the leader; empty when it was released. */
  holder: string;
  durationSeconds: number;
  /** RFC 3339; for people: they decide nothing. */
  acquireTime: string;
  renewTime: string;
  /** How often the holder changed. */
  transitions: number;
  /** Precondition of an update. */
  version: string;
}

/** Where the record is kept. Every call may reject; a rejection is a failed try. */
export interface LeaseStore {
  read(signal: AbortSignal): Promise<LeaseRecord | undefined>;
  create(record: Omit<LeaseRecord, 'version'>, signal: AbortSignal): Promise<LeaseRecord>;
  /** Rejects when the record has another version by now. */
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
  /** Others wait this long after the last renewal that they saw. Default 15 s. */
  leaseDurationMs?: number;
  /** The leader gives up when it could not renew for this long. Default 10 s. */
  renewDeadlineMs?: number;
  /** Pause between tries. Default 2 s. */
  retryPeriodMs?: number;
  onStartedLeading: () => Promise<void> | void;
  /** Stops the workers; the lease is released after this. After `lost` the process must end. */
  onStoppedLeading: (why: 'lost' | 'stopped') => Promise<void> | void;
}

interface Observation {
  record: LeaseRecord;
  /** Monotonic time at which we first saw this version of the record. */
  at: number;
}

export class LeaderElector {
  readonly name: string;
  readonly #options: LeaderElectorOptions;
  readonly #leaseMs: number;
  readonly #renewMs: number;
  readonly #retryMs: number;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #observed: Observation | undefined;
  #leading = false;
  /** Monotonic time at which the last successful renewal was BEGUN: others count from its arrival, which is later. */
  #renewedAt = 0;
  /** Somebody else took the lease, or our work could not start: whatever the clock says, we do not lead. */
  #deposed = false;

  /** Throws when the times cannot work: lease > renew deadline > 1.2 x retry period. */
  constructor(options: LeaderElectorOptions) {
    this.name = options.name;
    this.#options = options;
    this.#leaseMs = options.leaseDurationMs ?? 15_000;
    this.#renewMs = options.renewDeadlineMs ?? 10_000;
    this.#retryMs = options.retryPeriodMs ?? 2_000;
    if (!(this.#leaseMs > this.#renewMs && this.#renewMs > 1.2 * this.#retryMs)) {
      throw new Error('leader election needs leaseDuration > renewDeadline > 1.2 x retryPeriod');
    }
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Stops the workers, releases the lease, and resolves; the next leader need not wait. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /**
   * True while nobody else can hold the lease: it was renewed within the renew deadline, judged now on the monotonic
   * clock, so that a process that was frozen does not write with an old belief.
   */
  isLeading(): boolean {
    return this.#leading && !this.#deposed && this.#sinceRenewal() < this.#renewMs;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    await this.#acquire(signal);
    if (signal.aborted) return;
    this.#setLeading(true);
    const started = this.#startWorkers();
    await this.#holdOn(signal);
    const why = signal.aborted ? 'stopped' : 'lost';
    await started;
    await this.#stopWorkers(why);
    const stillOurs = this.isLeading();
    this.#setLeading(false);
    if (stillOurs) await this.#release();
  }

  async #acquire(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !(await this.#tryAcquireOrRenew(signal))) {
      const jitter = 1 + 0.2 * (this.#options.random ?? Math.random)();
      await sleep(this.#options.clock, this.#retryMs * jitter, signal);
    }
  }

  /** Renews until told to stop, or until the deadline passed without a success. */
  async #holdOn(signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(this.#options.clock, this.#retryMs, signal);
      if (signal.aborted || !this.isLeading()) return;
      await this.#tryAcquireOrRenew(signal);
      if (signal.aborted || !this.isLeading()) return;
    }
  }

  /** One try, bounded so that a hanging call cannot outlive the renew deadline. */
  async #tryAcquireOrRenew(stop: AbortSignal): Promise<boolean> {
    const { clock, log, name } = this.#options;
    const begun = clock.monotonic();
    const bound = this.#leading ? Math.max(0, this.#renewMs - this.#sinceRenewal()) : this.#renewMs;
    const call = timeoutSignal(clock, bound, stop);
    try {
      const ours = await this.#claim(call.signal);
      if (ours) this.#renewedAt = begun;
      return ours;
    } catch (error) {
      if (!stop.aborted) log.warn({ lease: name, leading: this.#leading, err: error }, 'lease could not be renewed');
      return false;
    } finally {
      call.dispose();
    }
  }

  /** Reads, judges, writes. False when the lease belongs to somebody else. */
  async #claim(signal: AbortSignal): Promise<boolean> {
    const { store, identity, clock } = this.#options;
    const found = await store.read(signal);
    const now = isoNow(clock);
    const mine = { holder: identity, durationSeconds: Math.ceil(this.#leaseMs / 1000), renewTime: now };
    if (found === undefined) {
      this.#observe(await store.create({ ...mine, acquireTime: now, transitions: 0 }, signal));
      return true;
    }
    this.#observe(found);
    const held = found.holder === identity;
    if (!held && this.#leading) {
      this.#deposed = true;
      return false;
    }
    if (!held && found.holder !== '' && !this.#hasExpired()) return false;
    const acquired = held
      ? { acquireTime: found.acquireTime, transitions: found.transitions }
      : { acquireTime: now, transitions: found.transitions + 1 };
    this.#observe(await store.update({ ...found, ...mine, ...acquired }, signal));
    return true;
  }

  #observe(record: LeaseRecord): void {
    if (this.#observed?.record.version === record.version) return;
    this.#observed = { record, at: this.#options.clock.monotonic() };
  }

  /** Judged by the holder's own duration: it may run with other settings than we. */
  #hasExpired(): boolean {
    if (this.#observed === undefined) return false;
    const duration = this.#observed.record.durationSeconds * 1000;
    return this.#options.clock.monotonic() - this.#observed.at >= duration;
  }

  async #startWorkers(): Promise<void> {
    try {
      await this.#options.onStartedLeading();
    } catch (error) {
      this.#options.log.error({ lease: this.name, err: error }, 'leader work could not start');
      this.#deposed = true; // ends as a lost lease: the process restarts, another leads
    }
  }

  async #stopWorkers(why: 'lost' | 'stopped'): Promise<void> {
    try {
      // Workers may need long to stop; the lease is kept meanwhile, so that nobody else begins.
      const renewal = new AbortController();
      const renewing = why === 'stopped' ? this.#holdOn(renewal.signal) : Promise.resolve();
      await this.#options.onStoppedLeading(why);
      renewal.abort();
      await renewing;
    } catch (error) {
      this.#options.log.error({ lease: this.name, err: error }, 'leader work could not stop');
    }
  }

  async #release(): Promise<void> {
    const { store, clock, log, identity } = this.#options;
    const call = timeoutSignal(clock, this.#retryMs);
    try {
      // Read again: the answer of a renewal that was under way when we were told to stop may be lost.
      const found = await store.read(call.signal);
      if (found?.holder !== identity) return;
      const now = isoNow(clock);
      await store.update({ ...found, holder: '', durationSeconds: 1, renewTime: now, acquireTime: now }, call.signal);
    } catch (error) {
      log.warn({ lease: this.name, err: error }, 'lease could not be released, others wait until it expires');
    } finally {
      call.dispose();
    }
  }

  #sinceRenewal(): number {
    return this.#options.clock.monotonic() - this.#renewedAt;
  }

  #setLeading(leading: boolean): void {
    this.#leading = leading;
    this.#options.metrics?.leading(this.name, leading);
    const message = leading ? 'became leader' : 'stopped leading';
    this.#options.log.info({ lease: this.name, identity: this.#options.identity }, message);
  }
}

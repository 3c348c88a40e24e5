/**
 * Events on their way to the gateway: numbered, written to the journal, held until acknowledged,
 * sent in batches at an interval that doubles, with heartbeats in between. What is not stored yet is told at once, so that
 * people see what a run does now. A run that ends before the first interval stores nothing here: everything goes with
 * `finish`.
 */
import type { EventsAnswer, FinishAnswer, FinishRequest, RunEvent, SteerMessage } from '../protocol/run.js';
import type { Clock } from '../runtime/clock.js';
import { isoNow, sleep } from '../runtime/clock.js';
import type { Journal } from './journal.js';
import type { Report, RunGateway } from './run-gateway.js';

/** Unacknowledged events that are held before the loop waits. */
export const MAX_UNACKED_EVENTS = 64;
export const MAX_UNACKED_BYTES = 8 * 1024 * 1024;
/** One report, far below the bound of the gateway. */
export const MAX_REPORT_BYTES = 768 * 1024;
const MAX_REPORT_SECONDS = 120;
/** Events of this time are told together: what a step brings comes in one piece, and at most four times a second. */
const LIVE_MS = 250;
/** A gateway that does not answer holds a step up for no longer. */
const HEAR_MS = 1_000;
/** How long a report in flight may still take when the run ends. */
const LAST_REPORT_MS = 2_000;

type Unnumbered<T> = T extends unknown ? Omit<T, 'seq' | 'at'> : never;
/** An event as it happens; the reporter adds number and time. */
export type NewEvent = Unnumbered<RunEvent>;

export interface ReporterOptions {
  gateway: Pick<RunGateway, 'events' | 'finish'>;
  journal: Journal;
  clock: Clock;
  intervals: { heartbeatSeconds: number; reportSeconds: number };
  /** What people sent to the run; may come again until an event says that it was taken. */
  onSteer: (messages: readonly SteerMessage[]) => void;
  /** An answer asks to cancel. */
  onCancel: () => void;
  /** Reporting has ended: RunRefused when the gateway refuses the run for good, else an answer that should not be. */
  onFailed: (error: unknown) => void;
}

interface Held {
  event: RunEvent;
  bytes: number;
}

export class Reporter {
  readonly #options: ReporterOptions;
  readonly #stop = new AbortController();
  /** Fired and replaced to end the sleep of the loop early. */
  #wake = new AbortController();
  #held: Held[] = [];
  #heldBytes = 0;
  #nextSeq = 1;
  /** Highest sequence that the gateway was told, stored or not; undefined for one that does not take what it does not store. */
  #told: number | undefined = 0;
  /** When what it was not told is due. */
  #liveAt = Number.POSITIVE_INFINITY;
  #loop: Promise<void> = Promise.resolve();
  #roomWaiters: (() => void)[] = [];
  #hearers: (() => void)[] = [];
  /** Something is to be stored without delay. */
  #isUrgent = false;
  #ended = false;

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  /** Begins heartbeats and reports. */
  start(): void {
    this.#loop = this.#run();
  }

  /** Takes an event; waits while too much is unacknowledged, at most until the signal fires. */
  async record(event: NewEvent, signal: AbortSignal): Promise<void> {
    const numbered: RunEvent = { ...event, seq: this.#nextSeq, at: isoNow(this.#options.clock) };
    this.#nextSeq += 1;
    const held = { event: numbered, bytes: Buffer.byteLength(JSON.stringify(numbered)) };
    this.#held.push(held);
    this.#heldBytes += held.bytes;
    // Whoever sent it waits to be told that it was taken.
    this.#isUrgent ||= event.type === 'message' && event.message.role === 'user' && event.message.steered !== undefined;
    // The loop slept towards a heartbeat; now there is something to report before it.
    if (this.#expectLive() || this.#held.length === 1 || this.#isUrgent) this.#wake.abort();
    await this.#options.journal.append(numbered);
    while (this.#isFull() && !signal.aborted && !this.#ended) {
      this.#wake.abort();
      await this.#room(signal);
    }
  }

  /** Resolves when the gateway has said what it knows now, or is too slow to say it. An older one knows nothing of it. */
  async hear(): Promise<void> {
    if (this.#ended || this.#told === undefined) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(HEAR_MS, resolve);
      this.#hearers.push(() => {
        cancel();
        resolve();
      });
      this.#wake.abort();
    });
  }

  /**
   * Ends reporting and sends the outcome with everything that is not acknowledged. Throws what the gateway's calls
   * throw; then nothing of the outcome was stored as far as the runner knows.
   */
  async finish(outcome: FinishRequest['outcome'], signal: AbortSignal, giveUpAt: number): Promise<FinishAnswer> {
    await this.#endLoop();
    for (;;) {
      const batch = this.#batch();
      if (batch.length === this.#held.length)
        return this.#options.gateway.finish({ events: batch, outcome }, signal, giveUpAt);
      const before = this.#held.length;
      this.#accept(await this.#options.gateway.events({ events: batch, live: [] }, signal, giveUpAt));
      if (this.#held.length === before) throw new Error('The gateway acknowledged no event of a report.');
    }
  }

  /** Ends reporting without an outcome. */
  async close(): Promise<void> {
    await this.#endLoop();
  }

  async #endLoop(): Promise<void> {
    this.#ended = true;
    this.#wake.abort();
    for (const waiter of [...this.#roomWaiters.splice(0), ...this.#hearers.splice(0)]) waiter();
    const cancel = this.#options.clock.after(LAST_REPORT_MS, () => this.#stop.abort());
    await this.#loop;
    cancel();
  }

  async #run(): Promise<void> {
    const { clock, intervals } = this.#options;
    let reportSeconds = intervals.reportSeconds;
    let nextReport = clock.monotonic() + reportSeconds * 1000;
    let nextBeat = clock.monotonic() + intervals.heartbeatSeconds * 1000;
    while (!this.#ended) {
      const dueAt = this.#held.length > 0 ? Math.min(nextReport, nextBeat, this.#liveAt) : nextBeat;
      await sleep(clock, Math.max(0, dueAt - clock.monotonic()), this.#wake.signal);
      if (this.#ended) return;
      this.#wake = new AbortController();
      const now = clock.monotonic();
      const isReport = this.#held.length > 0 && (now >= nextReport || this.#isFull() || this.#isUrgent);
      const isAsked = this.#hearers.length > 0;
      if (!isReport && !isAsked && now < Math.min(nextBeat, this.#liveAt)) continue;
      if (!(await this.#send(isReport ? { events: this.#batch(), live: [] } : { events: [], live: this.#untold() })))
        return;
      if (isReport) reportSeconds = Math.min(MAX_REPORT_SECONDS, reportSeconds * 2);
      if (isReport) nextReport = clock.monotonic() + reportSeconds * 1000;
      nextBeat = clock.monotonic() + intervals.heartbeatSeconds * 1000;
    }
  }

  /** One report or heartbeat, tried until it is answered. False ends the loop. */
  async #send(report: Report): Promise<boolean> {
    this.#liveAt = Number.POSITIVE_INFINITY;
    if (report.events.length > 0) this.#isUrgent = false;
    const hearers = this.#hearers.splice(0);
    try {
      const answer = await this.#options.gateway.events(report, this.#stop.signal, Number.POSITIVE_INFINITY);
      this.#accept(answer);
      this.#told = answer.live;
      this.#expectLive();
      if (answer.cancel) this.#options.onCancel();
      this.#options.onSteer(answer.steer ?? []);
      return true;
    } catch (error) {
      // Stopped by the end of the run: what was not stored goes with finish.
      if (this.#ended) return false;
      this.#ended = true;
      for (const waiter of this.#roomWaiters.splice(0)) waiter();
      this.#options.onFailed(error);
      return false;
    } finally {
      for (const hearer of hearers) hearer();
    }
  }

  /** Sets the time for what the gateway was not told; true when it was not set yet. */
  #expectLive(): boolean {
    if (this.#liveAt !== Number.POSITIVE_INFINITY || this.#untold().length === 0) return false;
    this.#liveAt = this.#options.clock.monotonic() + LIVE_MS;
    return true;
  }

  /** What the gateway was not told, as much as fits into one report. */
  #untold(): RunEvent[] {
    const told = this.#told;
    return told === undefined ? [] : this.#batch((event) => event.seq > told);
  }

  #accept(answer: EventsAnswer): void {
    while (this.#held[0] !== undefined && this.#held[0].event.seq <= answer.ack) {
      this.#heldBytes -= this.#held[0].bytes;
      this.#held.shift();
    }
    if (!this.#isFull()) for (const waiter of this.#roomWaiters.splice(0)) waiter();
  }

  /** The oldest of these events that fit into one report; at least one of them. */
  #batch(of: (event: RunEvent) => boolean = () => true): RunEvent[] {
    let bytes = 0;
    const held = this.#held.filter(({ event }) => of(event));
    const fits = held.findIndex((one, index) => {
      bytes += one.bytes;
      return index > 0 && bytes > MAX_REPORT_BYTES;
    });
    return held.slice(0, fits === -1 ? undefined : fits).map(({ event }) => event);
  }

  #isFull(): boolean {
    return this.#held.length >= MAX_UNACKED_EVENTS || this.#heldBytes >= MAX_UNACKED_BYTES;
  }

  #room(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#roomWaiters.push(done);
      signal.addEventListener('abort', done, { once: true });
    });
  }
}

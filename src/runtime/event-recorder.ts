/**
 * Tells people what happened to an object, as `kubectl describe` shows it. Nobody waits for it: what is recorded goes into
 * a bounded queue, is written one after the other at a bounded rate, and is dropped and counted where that is not enough.
 */
import type { Logger } from '../observability/logger.js';
import { sleep } from './clock.js';
import type { Clock } from './clock.js';
import { Fifo } from './fifo.js';
import type { EventMetrics } from './metrics.js';
import { RecentMap } from './recent-map.js';
import { cutUtf8 } from './text.js';
import { TokenBucket } from './token-bucket.js';
import { withTimeout } from './with-timeout.js';

/** The object that an event is about. */
export interface EventSubject {
  apiVersion: string;
  kind: string;
  name: string;
  /** Absent for a kind without namespaces. */
  namespace?: string;
  uid: string;
}

export interface ObjectEvent {
  subject: EventSubject;
  type: 'Normal' | 'Warning';
  /** One word for machines, for example `NoCapacity`. */
  reason: string;
  /** A sentence for people; a long one is cut. */
  note: string;
  /** What was done, or was to be done: one word. */
  action: string;
  /** When it happened (RFC 3339). Who tells the same of the same time again, as after a restart, tells nothing new. */
  at: string;
}

/** How often an event was told, and when last. */
export interface EventSeries {
  count: number;
  lastAt: string;
}

export interface EventWriter {
  /** Stores an event; resolves as well when it is there already, or when nothing can be stored about its subject any more. */
  create(event: ObjectEvent, series: EventSeries | undefined, signal: AbortSignal): Promise<void>;
  /** Says how often a stored event was told by now. */
  repeat(event: ObjectEvent, series: EventSeries, signal: AbortSignal): Promise<void>;
}

/** Takes events and never fails. */
export interface EventSink {
  record(event: ObjectEvent): void;
}

export interface EventRecorderOptions {
  writer: EventWriter;
  clock: Clock;
  log: Logger;
  metrics?: EventMetrics;
}

/** More is refused by Kubernetes. */
const MAX_NOTE_BYTES = 1_024;
/** What is told again within this time is a further one of the same series. */
const SERIES_MS = 600_000;
/** An object's events that differ in the note alone are one series from here on. */
const MAX_SIMILAR = 10;
const COMBINED = '(combined from similar events) ';
/** An object that changes all the time must not take the room of the others. */
const OBJECT_RATE = { burst: 20, perSecond: 1 / 60 };
/** Of the whole process: events must not compete with the work. */
const TOTAL_RATE = { burst: 50, perSecond: 10 };
const MAX_QUEUED = 1_000;
/** Nothing but warnings is taken when so many wait. */
const MAX_QUEUED_NORMAL = 500;
/** Series and rates that are remembered. */
const MAX_REMEMBERED = 4_096;
const WRITE_MS = 5_000;
const FLUSH_MS = 2_000;

/** One event and its repetitions. */
interface Series {
  event: ObjectEvent;
  count: number;
  lastAt: string;
  isStored: boolean;
  isQueued: boolean;
}

export class EventRecorder implements EventSink {
  readonly #options: EventRecorderOptions;
  readonly #series: RecentMap<Series>;
  /** Different notes by object, type and reason. */
  readonly #similar: RecentMap<number>;
  readonly #rates: RecentMap<TokenBucket>;
  readonly #total: TokenBucket;
  readonly #queue = new Fifo<Series>();
  /** Rates no longer count: what waits is written at once. */
  readonly #hurry = new AbortController();
  readonly #quit = new AbortController();
  #writing: Promise<void> | undefined;

  constructor(options: EventRecorderOptions) {
    const { clock } = options;
    this.#options = options;
    this.#series = new RecentMap({ clock, keepMs: SERIES_MS, maxSize: MAX_REMEMBERED });
    this.#similar = new RecentMap({ clock, keepMs: SERIES_MS, maxSize: MAX_REMEMBERED });
    // By then a bucket is full again.
    const keepMs = (OBJECT_RATE.burst / OBJECT_RATE.perSecond) * 1000;
    this.#rates = new RecentMap({ clock, keepMs, maxSize: MAX_REMEMBERED });
    this.#total = new TokenBucket(clock, TOTAL_RATE);
  }

  record(event: ObjectEvent): void {
    if (this.#hurry.signal.aborted) return;
    const series = this.#seriesOf(event);
    series.count += 1;
    series.lastAt = event.at;
    if (series.isQueued) return;
    if (!this.#rateOf(event.subject).take()) return this.#dropped('object_rate');
    if (this.#queue.length >= (event.type === 'Warning' ? MAX_QUEUED : MAX_QUEUED_NORMAL)) {
      return this.#dropped('queue_full');
    }
    series.isQueued = true;
    this.#queue.push(series);
    this.#writing ??= this.#writeAll();
  }

  /** Takes nothing more; resolves when all is written that can be written soon. */
  async stop(): Promise<void> {
    this.#hurry.abort();
    await withTimeout(this.#options.clock, FLUSH_MS, (signal) => this.#flush(signal));
    this.#quit.abort();
  }

  /** The series of the event, of which it may be the first. */
  #seriesOf(event: ObjectEvent): Series {
    const { subject, type, reason, note } = event;
    const similar = `${subject.uid} ${type} ${reason}`;
    const known = this.#series.get(`${similar} ${note}`);
    if (known !== undefined) return known;
    const notes = (this.#similar.get(similar) ?? 0) + 1;
    this.#similar.set(similar, notes);
    if (notes <= MAX_SIMILAR) return this.#begin(`${similar} ${note}`, event);
    return this.#series.get(similar) ?? this.#begin(similar, { ...event, note: `${COMBINED}${note}` });
  }

  #begin(key: string, told: ObjectEvent): Series {
    const event = { ...told, note: cutUtf8(told.note, MAX_NOTE_BYTES) };
    const series = { event, count: 0, lastAt: event.at, isStored: false, isQueued: false };
    this.#series.set(key, series);
    return series;
  }

  #rateOf({ uid }: EventSubject): TokenBucket {
    const rate = this.#rates.get(uid) ?? new TokenBucket(this.#options.clock, OBJECT_RATE);
    this.#rates.set(uid, rate);
    return rate;
  }

  async #writeAll(): Promise<void> {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      while (!this.#hurry.signal.aborted && !this.#total.take()) {
        await sleep(this.#options.clock, this.#total.waitMs(), this.#hurry.signal);
      }
      if (this.#quit.signal.aborted) this.#dropped('stopped');
      else await this.#write(next);
    }
    this.#writing = undefined;
  }

  async #write(series: Series): Promise<void> {
    const { writer, clock, log } = this.#options;
    const { event, count, lastAt, isStored } = series;
    const repeated = count > 1 ? { count, lastAt } : undefined;
    series.isQueued = false;
    series.isStored = true;
    try {
      await withTimeout(
        clock,
        WRITE_MS,
        (signal) =>
          isStored && repeated !== undefined
            ? writer.repeat(event, repeated, signal)
            : writer.create(event, repeated, signal),
        this.#quit.signal,
      );
    } catch (error) {
      // The next one stores it anew.
      series.isStored = false;
      this.#dropped('failed');
      log.debug({ kind: event.subject.kind, reason: event.reason, err: error }, 'event could not be written');
    }
  }

  async #flush(signal: AbortSignal): Promise<void> {
    const late = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    await Promise.race([this.#writing, late]);
  }

  #dropped(why: Parameters<EventMetrics['dropped']>[0]): void {
    this.#options.metrics?.dropped(why);
  }
}

/**
 * A run as somebody follows it: server-sent events (src/protocol/feed.ts) as they happen, and the text of the model while it is
 * written, at most four times a second. A follower that is too slow is let go: it asks again for what comes after the last
 * event that it saw, and finds in the transcript what is stored by then.
 */
import type { RunEvent } from '../../protocol/run.js';
import type { FeedAnswer, FeedMessage } from '../../protocol/feed.js';
import { sleep, type Clock } from '../../runtime/clock.js';
import type { AnswerSink } from '../models/answer-sink.js';
import type { Said, ServedRun } from './served-runs.js';

const LOOK_MS = 250;
/** Proxies and clients take a connection that is silent for dead. */
const SILENCE_MS = 15_000;
/** What waits for a follower. */
const MAX_BEHIND_BYTES = 4 * 1024 * 1024;

export interface FeedStreamOptions {
  served: ServedRun;
  usage: () => FeedAnswer['usage'];
  clock: Clock;
  isDraining: () => boolean;
  sink: AnswerSink;
  /** Fires when the follower went away. */
  gone: AbortSignal;
}

export class FeedStream {
  readonly #options: FeedStreamOptions;
  #waiting: RunEvent[] = [];
  #waitingBytes = 0;
  #isOver = false;
  /** Fired and replaced to end a pause early. */
  #wake = new AbortController();
  #writtenAt: number;
  #usage = '';
  #answer: Said | undefined;
  /** Of the answer, in UTF-16 units. */
  #shown = 0;

  constructor(options: FeedStreamOptions) {
    this.#options = options;
    this.#writtenAt = options.clock.monotonic();
  }

  /** Resolves when there is nothing more to come, or nobody to read it. */
  async run(after: number): Promise<void> {
    const { served, sink, clock, gone, isDraining } = this.#options;
    const { live, uid } = served;
    const { events, incomplete } = live.after(after);
    this.#waiting = events;
    const stop = live.follow({
      told: (event, bytes) => this.#told(event, bytes),
      ended: () => this.#end(),
    });
    try {
      sink.start(200, 'text/event-stream');
      await this.#write({ type: 'run', uid, incomplete });
      while (!gone.aborted) {
        this.#wake = new AbortController();
        const isLast = this.#isOver;
        await this.#tell(isLast);
        if (isLast || isDraining() || this.#waitingBytes > MAX_BEHIND_BYTES) return;
        await sleep(clock, LOOK_MS, AbortSignal.any([this.#wake.signal, gone]));
      }
    } finally {
      stop();
    }
  }

  #told(event: RunEvent, bytes: number): void {
    this.#waitingBytes += bytes;
    if (this.#waitingBytes <= MAX_BEHIND_BYTES) this.#waiting.push(event);
    this.#wake.abort();
  }

  #end(): void {
    this.#isOver = true;
    this.#wake.abort();
  }

  async #tell(isLast: boolean): Promise<void> {
    // Before the events: what the model wrote stands in one of them when it is whole.
    await this.#tellText();
    for (const event of this.#waiting.splice(0)) await this.#write({ type: 'event', event }, event.seq);
    if (this.#waitingBytes <= MAX_BEHIND_BYTES && this.#waiting.length === 0) this.#waitingBytes = 0;
    const usage = this.#options.usage();
    const text = JSON.stringify(usage);
    if (text !== this.#usage) await this.#write({ type: 'usage', usage });
    this.#usage = text;
    if (isLast) await this.#write({ type: 'end' });
    if (this.#options.clock.monotonic() - this.#writtenAt >= SILENCE_MS) await this.#send(':\n\n');
  }

  async #tellText(): Promise<void> {
    const { call } = this.#options.served;
    if (call?.answer !== this.#answer) {
      this.#answer = call?.answer;
      this.#shown = 0;
    }
    const said = this.#answer?.said ?? '';
    if (said.length <= this.#shown) return;
    const from = this.#shown;
    this.#shown = said.length;
    await this.#write({ type: 'text', from, text: said.slice(from) });
  }

  #write(message: FeedMessage, id?: number): Promise<void> {
    const name = id === undefined ? '' : `id: ${id}\n`;
    return this.#send(`${name}data: ${JSON.stringify(message)}\n\n`);
  }

  async #send(text: string): Promise<void> {
    this.#writtenAt = this.#options.clock.monotonic();
    await this.#options.sink.write(text);
  }
}

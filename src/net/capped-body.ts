/** Reads bodies of HTTP messages of strangers: no more than a number of bytes is ever held. */
import type { Readable } from 'node:stream';
import type { BodyBudget, BodyShare } from './body-budget.js';

export interface BodyLimits {
  /** A larger body is too large; what came of it is dropped at once. */
  maxBytes: number;
  /**
   * How far a body that is too large is read and dropped; `maxBytes` when absent. A sender that writes all of it before it
   * reads gets our answer only when we read as far.
   */
  maxReadBytes?: number;
  /** False counts the bytes and keeps none. */
  keep?: boolean;
  /** The body has stalled once this fires. */
  giveUp?: AbortSignal;
  /** What the bodies of the process may hold together, and where this one comes from. */
  budget?: BodyOrigin;
}

/** Whose body it is, for the budget of all. */
export interface BodyOrigin {
  all: BodyBudget;
  address: string;
}

export type BodyState =
  /** All of it came. */
  | 'complete'
  /** More than `maxBytes` came. */
  | 'too_large'
  /** It did not end before `giveUp` fired, or had to make room for quicker ones. */
  | 'stalled'
  /** It broke off. */
  | 'aborted';

export interface CappedBody {
  state: BodyState;
  /** Empty unless complete and kept. */
  body: Buffer;
  /** False when bytes are left unread: an HTTP/1.1 connection cannot be used again. */
  drained: boolean;
  /** Why it broke off, when the stream tells. */
  error?: Error;
}

/** Never rejects and never closes the stream: its connection carries the answer. */
export function readCappedBody(stream: Readable, limits: BodyLimits): Promise<CappedBody> {
  const { maxBytes, maxReadBytes = maxBytes, keep = true, giveUp } = limits;
  const empty = Buffer.alloc(0);
  // Stays when all is read: a connection may break later, and `close` tells of it meanwhile.
  stream.on('error', () => undefined);
  if (stream.destroyed) return Promise.resolve(aborted(stream.errored));
  return new Promise((resolve) => {
    const kept = new Gathered(keep ? maxBytes : 0);
    let bytes = 0;
    let share: BodyShare | undefined;
    const finish = (found: CappedBody) => {
      stream.off('data', onData).off('end', onEnd).off('close', onClose);
      giveUp?.removeEventListener('abort', onGiveUp);
      share?.release();
      if (!found.drained) stream.pause();
      resolve(found);
    };
    const onData = (part: Buffer) => {
      bytes += part.length;
      if (bytes > maxBytes) {
        kept.drop();
        share?.release();
      } else if (keep) {
        kept.add(part);
        share?.holds(kept.capacity);
      }
      if (bytes > maxBytes && bytes > maxReadBytes) finish({ state: 'too_large', body: empty, drained: false });
    };
    const onEnd = () => {
      if (bytes > maxBytes) finish({ state: 'too_large', body: empty, drained: true });
      else finish({ state: 'complete', body: kept.bytes(), drained: true });
    };
    const onClose = () => finish(aborted(stream.errored));
    const onGiveUp = () => {
      kept.drop();
      finish({ state: bytes > maxBytes ? 'too_large' : 'stalled', body: empty, drained: false });
    };
    stream.on('data', onData).on('end', onEnd).on('close', onClose);
    giveUp?.addEventListener('abort', onGiveUp, { once: true });
    // Last but one: there may be no room for it from the start.
    share = limits.budget?.all.open(limits.budget.address, onGiveUp);
    if (giveUp?.aborted === true) onGiveUp();
  });
}

/** Parts in one buffer that doubles: many small parts cost no more than a large one. */
class Gathered {
  readonly #max: number;
  #buffer = Buffer.alloc(0);
  #length = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** What is held in memory. */
  get capacity(): number {
    return this.#buffer.length;
  }

  add(part: Buffer): void {
    const length = this.#length + part.length;
    if (length > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(this.#max, Math.max(length, 2 * this.#buffer.length)));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    part.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  drop(): void {
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}

function aborted(error: Error | null): CappedBody {
  return { state: 'aborted', body: Buffer.alloc(0), drained: false, ...(error === null ? {} : { error }) };
}

/**
 * All bytes of an answer; undefined when it has more than `maxBytes`, and then its connection is cut. Rejects when the
 * answer breaks off, or has to make room for others in the budget.
 */
export async function readAnswer(answer: Readable, maxBytes: number, budget?: BodyOrigin): Promise<Buffer | undefined> {
  const { state, body, error } = await readCappedBody(answer, { maxBytes, ...(budget && { budget }) });
  if (state === 'complete') return body;
  answer.destroy();
  if (state === 'too_large') return undefined;
  if (state === 'stalled') throw noRoom();
  throw error ?? Object.assign(new Error('the answer broke off'), { code: 'ERR_STREAM_PREMATURE_CLOSE' });
}

/** What came too slowly while others needed its memory. */
export function noRoom(): Error {
  return Object.assign(new Error('the answer had to make room for others'), { code: 'ERR_NO_ROOM' });
}

/** As {@link readAnswer}, in UTF-8. */
export async function readText(answer: Readable, maxBytes: number, budget?: BodyOrigin): Promise<string | undefined> {
  return (await readAnswer(answer, maxBytes, budget))?.toString('utf8');
}

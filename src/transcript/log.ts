/**
 * The transcript of one run while it is written: which events are stored, and what still fits. Idempotent by event
 * sequence; limits: 24 chunks and 4 MiB inflated per run, of which the last two chunks
 * and 1 MiB are kept for the closing messages and the output, so that a session always resumes.
 * See docs/architecture.md#transcripts.
 */
import { createHash } from 'node:crypto';
import { MAX_CHUNKS, MAX_TRANSCRIPT_INFLATED_BYTES } from '../api/v1alpha1/agent-run-chunk.js';
import { isForbidden, isNotFound } from '../kube/errors.js';
import type { RunEvent } from '../protocol/run.js';
import { afterStep } from '../runtime/event-loop.js';
import { DamagedChunkError, cutEvent, decodeChunk, splitEvents, type EncodedChunk } from './codec.js';
import {
  readFrom,
  writeChunk,
  type ChunkApi,
  type StoredChunk,
  type TranscriptOwner,
  type WriteChunkResult,
} from './chunk-store.js';
import { agentTexts } from './said.js';

/** Chunks and inflated bytes that only the end of a run may use. */
export const CLOSING_CHUNKS = 2;
export const CLOSING_BYTES = 1024 * 1024;
/** Of each text of an end that does not fit otherwise. */
const LAST_WORDS_BYTES = 16 * 1024;

/** The same sequence came with other content: one of the two reports is not from the run's own journal. */
export class SequenceConflictError extends Error {
  override readonly name = 'SequenceConflictError';
  constructor(readonly seq: number) {
    super(`event ${seq} is stored already with other content`);
  }
}

/** What `status.transcript` of a run says. */
export interface TranscriptSummary {
  state: 'full' | 'truncated';
  chunks: number;
  /** Before compression. */
  bytes: number;
  /** As stored: compressed, in base64. */
  storedBytes: number;
  /** The input of the run, and the texts of the agent in the chunks. */
  messages: number;
}

export class TranscriptLog {
  readonly #api: ChunkApi;
  readonly #owner: TranscriptOwner;
  /** Sequence -> digest of the event as it was sent; absent for what another process stored and may have cut. */
  readonly #digests = new Map<number, string>();
  /** Sequence -> digest of the event as another process stored it, where that may be a cut one. */
  readonly #perhapsCut = new Map<number, string>();
  #ack = 0;
  #chunks = 0;
  #bytes = 0;
  #storedBytes = 0;
  #agentTexts = 0;
  #truncated = false;
  #hasOutput = false;

  /** The log of a run that has no chunk yet. */
  constructor(api: ChunkApi, owner: TranscriptOwner) {
    this.#api = api;
    this.#owner = owner;
  }

  /** The log of a run that another process wrote until now: reads all its chunks by name. */
  static async load(api: ChunkApi, owner: TranscriptOwner, truncated: boolean): Promise<TranscriptLog> {
    const log = new TranscriptLog(api, owner);
    log.#truncated = truncated;
    for (const chunk of await readFrom(api, owner, 0)) await log.#adopt(chunk);
    return log;
  }

  /** Highest sequence that is stored, or left out for want of room. */
  get ack(): number {
    return this.#ack;
  }

  /** Whether the full last message of the agent is stored. */
  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  get summary(): TranscriptSummary {
    return {
      state: this.#truncated ? 'truncated' : 'full',
      chunks: this.#chunks,
      bytes: this.#bytes,
      storedBytes: this.#storedBytes,
      messages: 1 + this.#agentTexts,
    };
  }

  /**
   * Stores what is new of a report, as one chunk where it fits. Without room left, events are acknowledged but left out.
   * Rejects with {@link SequenceConflictError}, or with what the API server says; then it may be repeated.
   */
  async append(events: readonly RunEvent[]): Promise<void> {
    const { parts, cut } = await splitEvents(await this.#unseen(events));
    this.#truncated ||= cut;
    for (const part of parts) {
      if (this.#hasRegularRoom(part)) {
        const stored = await this.#store(part);
        if (!stored) return this.append(events);
      } else this.#leaveOut(part.events);
    }
  }

  /** Stores the last events of a run; may use what is kept for the end. What must go goes in this order: tool calls, old messages, long texts. */
  async close(events: readonly RunEvent[]): Promise<void> {
    const fresh = await this.#unseen(events);
    for (const select of CLOSING_SELECTIONS) {
      const { parts, cut } = await splitEvents(select(fresh));
      if (!this.#hasClosingRoom(parts)) continue;
      this.#truncated ||= cut || select !== everything;
      for (const part of parts) {
        const stored = await this.#store(part);
        if (!stored) return this.close(events);
      }
      this.#acknowledge(fresh.filter((event) => event.type !== 'output'));
      return;
    }
  }

  async #unseen(events: readonly RunEvent[]): Promise<RunEvent[]> {
    // Before anything is cut: a report that comes again is compared with what was sent, not with what was stored.
    const unseen = events.filter((event) => event.seq > this.#ack);
    await this.#compare([...events.filter(({ seq }) => seq <= this.#ack && this.#digests.has(seq)), ...unseen]);
    this.#truncated ||= events.some((event) => this.#isCut(event));
    return unseen;
  }

  #hasRegularRoom(part: EncodedChunk): boolean {
    return (
      this.#chunks < MAX_CHUNKS - CLOSING_CHUNKS &&
      this.#bytes + part.bytes <= MAX_TRANSCRIPT_INFLATED_BYTES - CLOSING_BYTES
    );
  }

  #hasClosingRoom(parts: readonly EncodedChunk[]): boolean {
    const bytes = parts.reduce((sum, part) => sum + part.bytes, this.#bytes);
    return this.#chunks + parts.length <= MAX_CHUNKS && bytes <= MAX_TRANSCRIPT_INFLATED_BYTES;
  }

  /** False when another gateway pod had written this position: its events now count as stored, try the rest again. */
  async #store(part: EncodedChunk): Promise<boolean> {
    const written = await this.#write(part);
    if (written === undefined) {
      this.#leaveOut(part.events);
      return true;
    }
    if (written.result === 'taken') {
      await this.#adopt(written.chunk);
      return false;
    }
    this.#chunks += 1;
    this.#bytes += part.bytes;
    this.#storedBytes += part.data.length;
    this.#agentTexts += part.agentTexts;
    this.#acknowledge(part.events);
    return true;
  }

  /** Undefined when the namespace takes no more objects (it is being deleted, or a quota is full): the run goes on. */
  async #write(part: EncodedChunk): Promise<WriteChunkResult | undefined> {
    try {
      return await writeChunk(this.#api, this.#owner, this.#chunks, part);
    } catch (error) {
      if (isForbidden(error) || isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #adopt(chunk: StoredChunk): Promise<void> {
    this.#chunks += 1;
    this.#bytes += chunk.spec.bytes;
    this.#storedBytes += chunk.spec.data.length;
    let events: RunEvent[];
    try {
      events = await decodeChunk(chunk.spec);
    } catch (error) {
      if (!(error instanceof DamagedChunkError)) throw error;
      this.#truncated = true;
      return;
    }
    this.#agentTexts += agentTexts(events);
    // What may have been cut to fit no longer equals what the runner sends again.
    await this.#compare(events.filter(isWhole));
    for (const event of events) if (!isWhole(event)) this.#perhapsCut.set(event.seq, digest(event));
    this.#acknowledge(events);
  }

  async #compare(events: readonly RunEvent[]): Promise<void> {
    for (const event of events) {
      const known = this.#digests.get(event.seq);
      const text = JSON.stringify(event);
      const found = digestOf(text);
      if (known !== undefined && known !== found) throw new SequenceConflictError(event.seq);
      this.#digests.set(event.seq, found);
      await afterStep(text.length);
    }
  }

  /** Whether another process stored less of the event than what the runner sends. */
  #isCut(event: RunEvent): boolean {
    const stored = this.#perhapsCut.get(event.seq);
    return stored !== undefined && stored !== digest(event);
  }

  #acknowledge(events: readonly RunEvent[]): void {
    for (const event of events) {
      // The runner counts without gaps: what is between was left out.
      if (event.seq > this.#ack + 1) this.#truncated = true;
      this.#ack = Math.max(this.#ack, event.seq);
      this.#hasOutput ||= event.type === 'output';
    }
  }

  #leaveOut(events: readonly RunEvent[]): void {
    for (const event of events) {
      // What is not stored is not compared either: a run may leave out any number of events.
      this.#digests.delete(event.seq);
      if (event.seq <= this.#ack) continue;
      this.#truncated = true;
      this.#ack = event.seq;
    }
  }
}

/** Whether no text of the event can have been cut: a cut text keeps at least half of the smallest limit of a text (cutJson). */
function isWhole(event: RunEvent): boolean {
  return Buffer.byteLength(JSON.stringify(event)) < LAST_WORDS_BYTES / 2;
}

function digest(event: RunEvent): string {
  return digestOf(JSON.stringify(event));
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 16);
}

type Selection = (events: readonly RunEvent[]) => RunEvent[];

const everything: Selection = (events) => [...events];
const speech: Selection = (events) => events.filter((event) => event.type !== 'tool' && event.type !== 'step');
const lastWords: Selection = (events) =>
  speech(events)
    .slice(-16)
    .map((event) => cutEvent(event, LAST_WORDS_BYTES));
const outputOnly: Selection = (events) =>
  speech(events)
    .slice(-1)
    .map((event) => cutEvent(event, LAST_WORDS_BYTES));
const nothing: Selection = () => [];

const CLOSING_SELECTIONS: readonly Selection[] = [everything, speech, lastWords, outputOnly, nothing];

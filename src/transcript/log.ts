/**
 * The transcript of one run while it is written: which events are stored, and what still fits. Idempotent by event
 * sequence; limits: 24 chunks and 4 MiB inflated per run, of which the last two chunks
 * and 1 MiB are kept for the closing messages and the output, so that a session always resumes. Without room old results of
 * tools make place for what is new (room.ts).
 * See docs/architecture.md#transcripts.
 */
import { createHash } from 'node:crypto';
import { MAX_CHUNKS, MAX_TRANSCRIPT_INFLATED_BYTES } from '../api/v1alpha1/agent-run-chunk.js';
import { isConflict, isForbidden, isNotFound } from '../kube/errors.js';
import type { RunEvent } from '../protocol/run.js';
import { afterStep } from '../runtime/event-loop.js';
import { DamagedChunkError, cutEvent, decodeChunk, splitEvents, type EncodedChunk } from './codec.js';
import { readFrom, writeChunk, type ChunkApi, type TranscriptOwner } from './chunk-store.js';
import { hasCutResult, inOrder } from './in-order.js';
import {
  asOneChunk,
  oldestThick,
  readPiece,
  rewriteChunk,
  smallestPair,
  withoutOldResults,
  withoutResult,
  type ChunkWriter,
  type Piece,
  type ReadPiece,
} from './room.js';
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
  /** Nothing but old results of tools was cut, with marks. */
  onlyResultsCut?: true;
  chunks: number;
  /** Before compression. */
  bytes: number;
  /** As stored: compressed, in base64. */
  storedBytes: number;
  /** The input of the run, and the texts of the agent in the chunks. */
  messages: number;
}

/** What one run may have no more of. */
type Lack = 'chunks' | 'bytes';

export type TranscriptApi = ChunkApi & ChunkWriter;

export class TranscriptLog {
  readonly #api: TranscriptApi;
  readonly #owner: TranscriptOwner;
  /** Sequence -> digest of the event as it was sent; absent for what another process stored and may have cut. */
  readonly #digests = new Map<number, string>();
  /** Sequence -> digest of the event as another process stored it, where that may be a cut one. */
  readonly #perhapsCut = new Map<number, string>();
  #ack = 0;
  #pieces: Piece[] = [];
  /** A chunk whose events stand in another one, too: it is written next. */
  #spare: Pick<ReadPiece, 'seq' | 'resourceVersion'> | undefined;
  #agentTexts = 0;
  /** Events are missing, or lost text. */
  #truncated = false;
  #resultsCut = false;
  #hasOutput = false;

  /** The log of a run that has no chunk yet. */
  constructor(api: TranscriptApi, owner: TranscriptOwner) {
    this.#api = api;
    this.#owner = owner;
  }

  /** The log of a run that another process wrote until now: reads all its chunks by name. */
  static async load(api: TranscriptApi, owner: TranscriptOwner, truncated: boolean): Promise<TranscriptLog> {
    const log = new TranscriptLog(api, owner);
    log.#truncated = truncated;
    await log.#read();
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
      state: this.#truncated || this.#resultsCut ? 'truncated' : 'full',
      ...(this.#resultsCut && !this.#truncated ? { onlyResultsCut: true } : {}),
      chunks: this.#pieces.length,
      bytes: this.#bytes,
      storedBytes: this.#pieces.reduce((sum, { stored }) => sum + stored, 0),
      messages: 1 + this.#agentTexts,
    };
  }

  get #bytes(): number {
    return this.#pieces.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /**
   * Stores what is new of a report, as one chunk where it fits. Without room left, which old results of tools make as long as
   * there are some, events are acknowledged but left out.
   * Rejects with {@link SequenceConflictError}, or with what the API server says; then it may be repeated.
   */
  async append(events: readonly RunEvent[]): Promise<void> {
    const { parts, cut } = await splitEvents(await this.#unseen(events));
    this.#truncated ||= cut;
    for (const part of parts) {
      const room = await this.#findRoom(() => this.#lackOf(part));
      if (room === 'none') this.#leaveOut(part.events);
      else if (room === 'moved' || !(await this.#store(part))) return this.append(events);
    }
  }

  /** Stores the last events of a run; may use what is kept for the end. What must go goes in this order: tool calls, old messages, long texts. */
  async close(events: readonly RunEvent[]): Promise<void> {
    const fresh = await this.#unseen(events);
    for (const select of CLOSING_SELECTIONS) {
      const { parts, cut } = await splitEvents(select(fresh));
      const room = await this.#findRoom(() => this.#lackOfEnd(parts));
      if (room === 'moved') return this.close(events);
      if (room === 'none') continue;
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

  /** What a part lacks before the end. */
  #lackOf(part: EncodedChunk): Lack | undefined {
    const { chunks, bytes } = this.#taken();
    if (chunks >= MAX_CHUNKS - CLOSING_CHUNKS) return 'chunks';
    return bytes + part.bytes > MAX_TRANSCRIPT_INFLATED_BYTES - CLOSING_BYTES ? 'bytes' : undefined;
  }

  /** What the end lacks. */
  #lackOfEnd(parts: readonly EncodedChunk[]): Lack | undefined {
    const { chunks, bytes } = this.#taken();
    if (chunks + parts.length > MAX_CHUNKS) return 'chunks';
    const wanted = parts.reduce((sum, part) => sum + part.bytes, bytes);
    return wanted > MAX_TRANSCRIPT_INFLATED_BYTES ? 'bytes' : undefined;
  }

  #taken(): { chunks: number; bytes: number } {
    const spare = this.#spare === undefined ? undefined : this.#pieces[this.#spare.seq];
    if (spare === undefined) return { chunks: this.#pieces.length, bytes: this.#bytes };
    return { chunks: this.#pieces.length - 1, bytes: this.#bytes - spare.bytes };
  }

  /** `moved`: another gateway pod wrote meanwhile, and what is to be stored must be looked at anew. */
  async #findRoom(lack: () => Lack | undefined): Promise<'found' | 'none' | 'moved'> {
    try {
      for (let wanted = lack(); wanted !== undefined; wanted = lack()) {
        const merged = wanted === 'chunks' && (await this.#merge());
        if (merged) continue;
        // Smaller chunks may fit into one; a second spare one is not to be had.
        const helps = wanted === 'bytes' || this.#spare === undefined;
        if (!helps || !(await this.#cutOldest())) return 'none';
      }
      return 'found';
    } catch (error) {
      if (isForbidden(error) || isNotFound(error)) return 'none';
      if (!isConflict(error)) throw error;
      await this.#read();
      return 'moved';
    }
  }

  /** Makes one chunk of two, so that the other is to spare; false when no two fit. */
  async #merge(): Promise<boolean> {
    const pair = this.#spare === undefined ? smallestPair(this.#pieces) : undefined;
    if (pair === undefined) return false;
    const [into, from] = pair;
    const older = await readPiece(this.#api, this.#owner, into);
    const newer = await readPiece(this.#api, this.#owner, from);
    if (older === undefined || newer === undefined) return false;
    const events = inOrder([...older.events, ...newer.events]);
    const content = await asOneChunk(events);
    if (content === undefined) return false;
    await rewriteChunk(this.#api, this.#owner, older, content);
    this.#pieces[into] = pieceOf(events, content);
    this.#spare = newer;
    return true;
  }

  /** Cuts the results of tools in the oldest chunk that has some; false without one. */
  async #cutOldest(): Promise<boolean> {
    const at = oldestThick(this.#pieces);
    const piece = this.#pieces[at];
    if (piece === undefined) return false;
    piece.isThin = true;
    const read = this.#spare?.seq === at ? undefined : await readPiece(this.#api, this.#owner, at);
    const events = withoutOldResults(read?.events ?? []);
    const content = await asOneChunk(events);
    if (read === undefined || content === undefined || content.bytes >= piece.bytes) return true;
    await rewriteChunk(this.#api, this.#owner, read, content);
    this.#pieces[at] = pieceOf(events, content);
    this.#resultsCut = true;
    return true;
  }

  /** False when another gateway pod had written this position: its events now count as stored, try the rest again. */
  async #store(part: EncodedChunk): Promise<boolean> {
    const seq = this.#spare?.seq ?? this.#pieces.length;
    const written = await this.#write(part, seq);
    if (written === 'refused') {
      this.#leaveOut(part.events);
      return true;
    }
    this.#spare = undefined;
    if (written === 'taken') {
      await this.#read();
      return false;
    }
    this.#pieces[seq] = pieceOf(part.events, part);
    this.#agentTexts += part.agentTexts;
    this.#acknowledge(part.events);
    return true;
  }

  /** `refused`: the namespace takes no more objects (it is being deleted, or a quota is full), and the run goes on. */
  async #write(part: EncodedChunk, seq: number): Promise<'stored' | 'taken' | 'refused'> {
    try {
      if (this.#spare === undefined) return await writeChunk(this.#api, this.#owner, seq, part);
      await rewriteChunk(this.#api, this.#owner, this.#spare, part);
      return 'stored';
    } catch (error) {
      if (isConflict(error)) return 'taken';
      if (isForbidden(error) || isNotFound(error)) return 'refused';
      throw error;
    }
  }

  /** What is stored, by whomever. */
  async #read(): Promise<void> {
    let { pieces, stored } = await this.#readChunks();
    // Events may have moved to a chunk that was read before, by a pod that does not know yet that it lost the run.
    if (stored.some(({ seq }, index) => seq !== index + 1)) ({ pieces, stored } = await this.#readChunks());
    this.#pieces = pieces;
    this.#spare = undefined;
    this.#agentTexts = agentTexts(stored);
    // What may have been cut to fit no longer equals what the runner sends again.
    await this.#compare(stored.filter(isWhole));
    for (const event of stored) if (!isWhole(event)) this.#perhapsCut.set(event.seq, digest(event));
    this.#resultsCut ||= stored.some(hasCutResult);
    this.#acknowledge(stored);
  }

  async #readChunks(): Promise<{ pieces: Piece[]; stored: RunEvent[] }> {
    const pieces: Piece[] = [];
    const events: RunEvent[] = [];
    for (const { spec } of await readFrom(this.#api, this.#owner, 0)) {
      const part = await this.#decode(spec);
      events.push(...part);
      pieces.push(pieceOf(part, { bytes: spec.bytes, data: spec.data }));
    }
    return { pieces, stored: inOrder(events) };
  }

  async #decode(spec: { data: string; sha256: string }): Promise<RunEvent[]> {
    try {
      return await decodeChunk(spec);
    } catch (error) {
      if (!(error instanceof DamagedChunkError)) throw error;
      this.#truncated = true;
      return [];
    }
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
    return stored !== undefined && stored !== digest(event) && stored !== digest(withoutResult(event));
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
  return !hasCutResult(event) && Buffer.byteLength(JSON.stringify(event)) < LAST_WORDS_BYTES / 2;
}

function pieceOf(events: readonly RunEvent[], { bytes, data }: Pick<EncodedChunk, 'bytes' | 'data'>): Piece {
  const firstSeq = events[0]?.seq ?? 0;
  return { bytes, stored: data.length, firstSeq, isThin: events.every((event) => withoutResult(event) === event) };
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

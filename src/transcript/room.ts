/**
 * How a transcript that is full makes room for what comes: chunks that are half empty become one, and results of tools are cut,
 * the oldest first. Every step rewrites one chunk under the version that was read, so that a crash between two steps, or another
 * process, loses nothing: until the second of two merged chunks is used again, its events stand in both.
 */
import { AgentRunChunks, MAX_CHUNK_INFLATED_BYTES, MAX_CHUNK_STORED_BYTES } from '../api/v1alpha1/agent-run-chunk.js';
import { chunkName } from '../api/names.js';
import type { KubeApi } from '../kube/types.js';
import type { RunEvent } from '../protocol/run.js';
import { clearedMark, clearedResult, isClearable, isClearableResult } from '../run/session/cleared-result.js';
import { readChunk, type ChunkReader, type TranscriptOwner } from './chunk-store.js';
import { DamagedChunkError, decodeChunk, encodeEvents, fitsChunk, type EncodedChunk } from './codec.js';

export type ChunkWriter = ChunkReader & Pick<KubeApi, 'patch'>;

/** What is known of a chunk without reading it. */
export interface Piece {
  bytes: number;
  /** Of its data, in base64. */
  stored: number;
  /** Of its events; chunks are not in this order once two of them became one. */
  firstSeq: number;
  /** Nothing of it can be cut. */
  isThin: boolean;
}

/** The event with the mark in the place of a long result of a tool. What a person said stands in no such result. */
export function withoutResult(event: RunEvent): RunEvent {
  if (event.type === 'tool') {
    if (!isClearableResult(event.tool, event.result)) return event;
    return { ...event, result: JSON.stringify(clearedMark(Buffer.byteLength(event.result))) };
  }
  if (event.type !== 'message' || !isClearable(event.message)) return event;
  return { ...event, message: clearedResult(event.message) };
}

/** What is cut at once: a run that goes on rewrites a chunk for several reports. */
const CUT_BYTES = 256 * 1024;

/** The events without the oldest of their results, about {@link CUT_BYTES} of them. */
export function withoutOldResults(events: readonly RunEvent[]): RunEvent[] {
  let saved = 0;
  return events.map((event) => {
    const shorter = saved < CUT_BYTES ? withoutResult(event) : event;
    if (shorter !== event) saved += sizeOf(event) - sizeOf(shorter);
    return shorter;
  });
}

function sizeOf(event: RunEvent): number {
  return Buffer.byteLength(JSON.stringify(event));
}

/** The oldest chunk with results to cut; -1 without one. */
export function oldestThick(pieces: readonly Piece[]): number {
  let found = -1;
  for (const [index, { isThin, firstSeq }] of pieces.entries()) {
    if (!isThin && firstSeq < (pieces[found]?.firstSeq ?? Number.POSITIVE_INFINITY)) found = index;
  }
  return found;
}

/** Of the neighbours that fit into one chunk the two that are smallest together, the older one first. */
export function smallestPair(pieces: readonly Piece[]): [number, number] | undefined {
  const order = [...pieces.keys()].sort((a, b) => firstOf(pieces, a) - firstOf(pieces, b));
  let best: [number, number] | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const [place, older] of order.entries()) {
    const newer = order[place + 1];
    const [a, b] = [pieces[older], pieces[newer ?? -1]];
    if (newer === undefined || a === undefined || b === undefined) continue;
    const stored = a.stored + b.stored;
    const fits = (stored * 3) / 4 <= MAX_CHUNK_STORED_BYTES && a.bytes + b.bytes <= MAX_CHUNK_INFLATED_BYTES;
    if (!fits || stored >= least) continue;
    best = [older, newer];
    least = stored;
  }
  return best;
}

function firstOf(pieces: readonly Piece[], index: number): number {
  return pieces[index]?.firstSeq ?? 0;
}

/** A chunk as it was read, to be rewritten under that version. */
export interface ReadPiece {
  seq: number;
  resourceVersion: string;
  events: RunEvent[];
}

/** Undefined for a chunk that is missing or damaged: it stays as it is. */
export async function readPiece(api: ChunkReader, owner: TranscriptOwner, seq: number): Promise<ReadPiece | undefined> {
  const chunk = await readChunk(api, owner, seq);
  if (chunk === undefined) return undefined;
  try {
    return { seq, resourceVersion: chunk.metadata.resourceVersion ?? '', events: await decodeChunk(chunk.spec) };
  } catch (error) {
    if (error instanceof DamagedChunkError) return undefined;
    throw error;
  }
}

/** Gives a chunk other content; 409 when it is not the one that was read. */
export async function rewriteChunk(
  api: ChunkWriter,
  owner: TranscriptOwner,
  { seq, resourceVersion }: Pick<ReadPiece, 'seq' | 'resourceVersion'>,
  content: EncodedChunk,
): Promise<void> {
  const { bytes, sha256, data } = content;
  const ref = { namespace: owner.namespace, name: chunkName(owner.name, seq) };
  const body = { metadata: { resourceVersion }, spec: { bytes, sha256, data } };
  await api.patch(AgentRunChunks, ref, body, { type: 'merge' });
}

/** The content of one chunk; undefined when it is too much. */
export async function asOneChunk(events: readonly RunEvent[]): Promise<EncodedChunk | undefined> {
  const content = await encodeEvents(events);
  return fitsChunk(content) ? content : undefined;
}

/** Chunks on the API server: written under a deterministic name, read on demand by name, never listed or cached. */
import { API_VERSION } from '../api/define-resource.js';
import { LABEL_MANAGED_BY, LABEL_RUN, MANAGED_BY } from '../api/labels.js';
import { chunkName } from '../api/names.js';
import type { Resource } from '../api/meta.js';
import { isTerminal } from '../run/status.js';
import { AgentRunChunks, MAX_CHUNKS, type AgentRunChunk } from '../api/v1alpha1/agent-run-chunk.js';
import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import { isAlreadyExists, orUndefined } from '../kube/errors.js';
import type { KubeApi } from '../kube/types.js';
import type { RunEvent } from '../protocol/run.js';
import { DamagedChunkError, decodeChunk, type EncodedChunk } from './codec.js';
import { inOrder } from './in-order.js';

/** A chunk as it is read: the kind has no status. */
export type StoredChunk = Resource<AgentRunChunk['spec'], unknown>;

/** The run that a transcript belongs to. */
export interface TranscriptOwner {
  namespace: string;
  name: string;
  uid: string;
}

export type ChunkApi = Pick<KubeApi, 'get' | 'create'>;
export type ChunkReader = Pick<KubeApi, 'get'>;

/** `stored`: the chunk is there with this content. `taken`: another content holds the position. */
export type WriteChunkResult = 'stored' | 'taken';

/**
 * Writes chunk number `seq` of a run. Repeating the same call is a success, also after an unclear answer. Rejects when
 * the API server does, and when the position belongs to an earlier run of the same name.
 */
export async function writeChunk(
  api: ChunkApi,
  owner: TranscriptOwner,
  seq: number,
  content: EncodedChunk,
): Promise<WriteChunkResult> {
  try {
    await api.create(AgentRunChunks, chunkObject(owner, seq, content));
    return 'stored';
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
  const chunk = await api.get(AgentRunChunks, { namespace: owner.namespace, name: chunkName(owner.name, seq) });
  if (chunk.spec.runUid !== owner.uid) {
    throw new Error(`chunk ${chunk.metadata.name} belongs to an earlier run of the same name that is being removed`);
  }
  return chunk.spec.sha256 === content.sha256 ? 'stored' : 'taken';
}

function chunkObject(owner: TranscriptOwner, seq: number, content: EncodedChunk): StoredChunk {
  return {
    apiVersion: API_VERSION,
    kind: AgentRunChunks.kind,
    metadata: {
      name: chunkName(owner.name, seq),
      namespace: owner.namespace,
      labels: { [LABEL_RUN]: owner.name, [LABEL_MANAGED_BY]: MANAGED_BY },
      // The backstop: retention deletes chunks before their run.
      ownerReferences: [
        { apiVersion: API_VERSION, kind: 'AgentRun', name: owner.name, uid: owner.uid, controller: true },
      ],
    },
    spec: {
      run: owner.name,
      runUid: owner.uid,
      seq,
      bytes: content.bytes,
      sha256: content.sha256,
      data: content.data,
    },
  };
}

/** Chunk number `seq`, or undefined when there is none of this run. */
export async function readChunk(
  api: ChunkReader,
  owner: TranscriptOwner,
  seq: number,
): Promise<StoredChunk | undefined> {
  const ref = { namespace: owner.namespace, name: chunkName(owner.name, seq) };
  const chunk = await orUndefined(api.get(AgentRunChunks, ref));
  return chunk?.spec.runUid === owner.uid ? chunk : undefined;
}

export type TranscriptState = NonNullable<NonNullable<AgentRun['status']>['transcript']>['state'];

export interface Transcript {
  /** In order of their sequence. */
  events: RunEvent[];
  /** `truncated` also when a chunk is missing or damaged. */
  state: TranscriptState;
}

/**
 * The events of a run, read by name: as many chunks as the status of a finished run names; for a run that works, all
 * there are, since its status lags behind. One GET a chunk, at most 24; none for a run without transcript.
 */
export async function readTranscript(
  api: ChunkReader,
  run: Pick<AgentRun, 'metadata' | 'status'>,
): Promise<Transcript> {
  const transcript = run.status?.transcript;
  const state = transcript?.state ?? 'full';
  if (state === 'expired' || state === 'archived') return { events: [], state };
  const chunks = isTerminal(run)
    ? await readFinished(api, run)
    : run.status?.claim === undefined
      ? []
      : await readFrom(api, ownerOf(run), 0);
  return collect(
    chunks.map((chunk) => chunk?.spec),
    state,
  );
}

/** The chunks that the status of a finished run names; undefined for one that is missing. */
export function readFinished(
  api: ChunkReader,
  run: Pick<AgentRun, 'metadata' | 'status'>,
): Promise<(StoredChunk | undefined)[]> {
  return readNumbered(api, ownerOf(run), run.status?.transcript?.chunks ?? 0);
}

/** The owner of a run's chunks. */
export function ownerOf(run: Pick<AgentRun, 'metadata'>): TranscriptOwner {
  const { namespace, name, uid } = run.metadata;
  if (namespace === undefined || uid === undefined) throw new Error(`run ${name} was not read from the API server`);
  return { namespace, name, uid };
}

function readNumbered(api: ChunkReader, owner: TranscriptOwner, count: number): Promise<(StoredChunk | undefined)[]> {
  return Promise.all(Array.from({ length: Math.min(count, MAX_CHUNKS) }, (_, seq) => readChunk(api, owner, seq)));
}

/** Chunks from position `first` up to the first gap. */
export async function readFrom(api: ChunkReader, owner: TranscriptOwner, first: number): Promise<StoredChunk[]> {
  const chunks: StoredChunk[] = [];
  for (let seq = first; seq < MAX_CHUNKS; seq++) {
    const chunk = await readChunk(api, owner, seq);
    if (chunk === undefined) break;
    chunks.push(chunk);
  }
  return chunks;
}

/** The events of chunks, in their order, each once; `stated` unless one of them is missing or damaged. */
export async function collect(
  chunks: readonly (Pick<AgentRunChunk['spec'], 'data' | 'sha256'> | undefined)[],
  stated: TranscriptState,
): Promise<Transcript> {
  const events: RunEvent[] = [];
  let state: TranscriptState = stated;
  for (const chunk of chunks) {
    const part = chunk === undefined ? undefined : await decodeOrUndefined(chunk);
    if (part === undefined) state = 'truncated';
    else events.push(...part);
  }
  return { events: inOrder(events), state };
}

async function decodeOrUndefined(
  chunk: Pick<AgentRunChunk['spec'], 'data' | 'sha256'>,
): Promise<RunEvent[] | undefined> {
  try {
    return await decodeChunk(chunk);
  } catch (error) {
    if (error instanceof DamagedChunkError) return undefined;
    throw error;
  }
}

/**
 * The writes of retention, which begins the removal of a finished run; src/controllers/agent-run/settlement/settle.ts ends it
 * and tells the whole sequence. Chunks and Job are deleted before their run: the garbage collector is slow and only the
 * backstop. The run itself goes through its finalizer, so that it is counted before it is gone.
 */
import { chunkName } from '../../api/names.js';
import { objectKey } from '../../api/meta.js';
import { AgentRunChunks } from '../../api/v1alpha1/agent-run-chunk.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { Jobs } from '../../kube/core-types.js';
import { isConflict, isNotFound, orUndefined } from '../../kube/errors.js';
import { ownedBy } from '../../kube/owner-references.js';
import type { Cache, KubeApi, ObjectRef } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import { refOf } from '../common/finalizer.js';
import { RunStatusWriter } from '../../run/status-writer.js';
import type { FileStore } from '../../files/file-store.js';
import { chunksOf } from './stored.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import type { ControllerJob } from '../../projections/job.js';

/** Where transcripts stay readable after they have left the cluster. */
export interface TranscriptArchive {
  /** Resolves when it has the finished run, or never needs it; rejects while it cannot be reached. */
  storeNow(run: ControllerRun, signal: AbortSignal): Promise<'stored' | 'needless'>;
}

export interface RemoverDependencies {
  api: Pick<KubeApi, 'get' | 'patch' | 'delete'>;
  jobs: Pick<Cache<ControllerJob>, 'get'>;
  log: Pick<Logger, 'warn'>;
  files: Pick<FileStore, 'remove'>;
  /** Absent when the installation has none. */
  archive?: TranscriptArchive | undefined;
}

export class Remover {
  readonly #status: RunStatusWriter;

  constructor(private readonly deps: RemoverDependencies) {
    this.#status = new RunStatusWriter(deps.api, 'retention', deps.log);
  }

  /** Deletes what belongs to the run, then requests the deletion of the run. Safe to repeat. */
  async remove(run: ControllerRun, signal: AbortSignal): Promise<void> {
    await this.deps.archive?.storeNow(run, signal);
    await this.#deleteChunks(run, signal);
    await this.#deleteFiles(run, signal);
    await this.#deleteJob(run, signal);
    const { uid } = run.metadata;
    const only = uid === undefined ? {} : { uid };
    const options = { ...only, propagationPolicy: 'Background', signal } as const;
    await ignoreGone(this.deps.api.delete(AgentRuns, refOf(run.metadata), options));
  }

  /** Removes input, transcript and files of a run that stays. After a crash the next pass starts over. */
  async expire(run: ControllerRun, signal: AbortSignal): Promise<void> {
    const archived = await this.deps.archive?.storeNow(run, signal);
    await this.#deleteChunks(run, signal);
    await this.#deleteFiles(run, signal);
    const ref = refOf(run.metadata);
    let { metadata } = run;
    try {
      if (run.inputDataBytes !== undefined) {
        const body = { metadata: { resourceVersion: metadata.resourceVersion }, spec: { input: { data: null } } };
        ({ metadata } = await this.deps.api.patch(AgentRuns, ref, body, { type: 'merge', signal }));
      }
      const transcript = transcriptWithout(run, archived);
      if (transcript === undefined && run.status?.files === undefined) return;
      await this.#status.apply({ ...run, metadata }, { type: 'stored-gone', transcript }, signal);
    } catch (error) {
      // The run was changed or removed meanwhile: the next pass takes it as it is then.
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  }

  /**
   * Deletes each chunk by UID: the cache may still show a run that is gone, and chunks of a new run of the same name have the
   * same names. Metadata is read by name to learn the UID; for a list the API server would go through the chunks of all runs.
   */
  async #deleteChunks(run: ControllerRun, signal: AbortSignal): Promise<void> {
    const { namespace = '', name } = run.metadata;
    const names = Array.from({ length: chunksOf(run) }, (_, seq) => chunkName(name, seq));
    await Promise.all(names.map((chunk) => this.#deleteChunk({ namespace, name: chunk }, run, signal)));
  }

  async #deleteChunk(ref: ObjectRef, run: ControllerRun, signal: AbortSignal): Promise<void> {
    const chunk = await orUndefined(this.deps.api.get(AgentRunChunks, ref, { metadataOnly: true, signal }));
    const { uid } = chunk?.metadata ?? {};
    if (chunk === undefined || uid === undefined || !ownedBy(chunk, run.metadata.uid ?? '')) return;
    await ignoreGone(this.deps.api.delete(AgentRunChunks, ref, { uid, signal }));
  }

  /** A run has files, or began to store some, only where its status says so. */
  async #deleteFiles({ metadata, status }: ControllerRun, signal: AbortSignal): Promise<void> {
    const { namespace = '', name, uid = '' } = metadata;
    if (status?.files !== undefined) await this.deps.files.remove({ namespace, name, uid }, signal);
  }

  async #deleteJob(run: ControllerRun, signal: AbortSignal): Promise<void> {
    const job = this.deps.jobs.get(objectKey(run.metadata));
    if (job === undefined || job.deleting || job.ownerUid !== run.metadata.uid) return;
    const options = { uid: job.uid, propagationPolicy: 'Background', signal } as const;
    await ignoreGone(this.deps.api.delete(Jobs, { namespace: job.namespace, name: job.name }, options));
  }
}

/** What the status says when the chunks are gone; undefined for a run that has none. */
function transcriptWithout(run: ControllerRun, archived: 'stored' | 'needless' | undefined) {
  const transcript = run.status?.transcript;
  if (transcript === undefined || chunksOf(run) === 0) return undefined;
  const state: 'archived' | 'expired' = archived === 'stored' ? 'archived' : 'expired';
  // Messages in the archive still count.
  const messages = archived === 'stored' ? transcript.messages : 0;
  return { ...transcript, state, chunks: 0, bytes: 0, storedBytes: 0, messages };
}

/** The object is gone, or has been replaced: nothing is left to do. */
async function ignoreGone(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}

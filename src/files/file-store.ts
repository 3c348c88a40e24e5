/** Where the content of published files is. What a run published stands in its status; a store keeps the bytes. */
import type { RunFile } from '../api/v1alpha1/agent-run.js';

/** The run that the files belong to. */
export interface FileOwner {
  namespace: string;
  name: string;
  uid: string;
}

/** Where a file lies among those of its run. */
export type FilePlace = Pick<RunFile, 'part' | 'parts'>;

/** The run has stored as much as it may. */
export class FilesFullError extends Error {
  override readonly name = 'FilesFullError';
}

export interface FileStore {
  /**
   * Stores the content, not before the place `from`. Repeating it is a success, also after an unclear answer or by another
   * process. Throws {@link FilesFullError}, or what the store says; then it may be repeated.
   */
  put(owner: FileOwner, content: Buffer, from: number): Promise<FilePlace>;
  /** The content; undefined when it is gone, or is not what was published. */
  read(owner: FileOwner, file: RunFile, signal: AbortSignal): Promise<Buffer | undefined>;
  /** Removes all files of the run, also what was being stored when a process was lost. Safe to repeat. */
  remove(owner: FileOwner, signal: AbortSignal): Promise<void>;
}

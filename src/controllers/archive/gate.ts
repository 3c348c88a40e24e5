/** What the run controller asks the archive. */
import type { RunView } from '../agent-run/views.js';

/** Holds a run that is being removed until the archive has it. */
export interface ArchiveGate {
  isStored(run: RunView): boolean;
  /** Calls back with the key of each run that may go now; returns unsubscribe. */
  onStored(listener: (key: string) => void): () => void;
}

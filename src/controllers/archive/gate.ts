/** What the run controller asks the archive. */
import type { ControllerRun } from '../../projections/agent-run.js';

/** Holds a run that is being removed until the archive has it. */
export interface ArchiveGate {
  isStored(run: ControllerRun): boolean;
  /** Calls back with the key of each run that may go now; returns unsubscribe. */
  onStored(listener: (key: string) => void): () => void;
}

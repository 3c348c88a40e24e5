/**
 * The order of a session: its runs follow each other as pods claimed them, and a run continues the one that was claimed last.
 * What it sees of them: history.ts.
 */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';

type Claimed = Pick<AgentRun, 'metadata' | 'status'>;

/** Orders claimed runs as strings. */
export function claimOrder(run: Claimed): string {
  return `${run.status?.claim?.at ?? ''} ${run.metadata.name}`;
}

/** The run that another one continues: of the claimed runs of its session the one that was claimed last. */
export function previousRunOf<T extends Claimed>({ metadata }: Claimed, session: readonly T[]): T | undefined {
  let latest: T | undefined;
  for (const other of session) {
    if (other.metadata.name === metadata.name || other.status?.claim === undefined) continue;
    if (latest === undefined || claimOrder(other) > claimOrder(latest)) latest = other;
  }
  return latest;
}

/**
 * Exact numbers: what an Agent, AgentTrigger, Box or Workspace has counted = the base in its status (`folded`) +
 * the live runs that are not in the base yet. One pure function, so that tools and kubectl never disagree.
 * See docs/architecture.md#exact-numbers.
 */
import { addToPeriods, amountOf } from './budget.js';
import { parseMicroUsd } from './money.js';
import { sumOf } from './saturating.js';
import { FINALIZER_ROLL_UP } from '../../api/labels.js';
import type { ObjectMeta } from '../../api/meta.js';
import type { RunUsage } from '../../api/v1alpha1/agent-run.js';
import type { FoldedTotals } from '../../api/v1alpha1/common.js';

/** A run that is still in the cluster. Give only runs of the owner that carry the roll-up finalizer (all but refused ones do). */
export interface CountedRun {
  uid: string;
  /** When it was accepted, RFC 3339. */
  createdAt: string;
  usage: RunUsage | undefined;
  /** When it was admitted, RFC 3339: its day and month. Absent for runs that used nothing. */
  countedAt?: string | undefined;
}

/** Whether the run will be counted in the totals of its owners; a run refused before it was taken on is not. */
export function isCounted({ metadata }: { metadata: ObjectMeta }): boolean {
  return metadata.finalizers?.includes(FINALIZER_ROLL_UP) === true;
}

/**
 * Whether the run is on its way out and no longer ours to hold: it is in the sums of all its owners, and lives only because
 * others hold it. No finalizer can be added to an object that is being deleted, so this is for good.
 */
export function isReleased(run: { metadata: ObjectMeta }): boolean {
  return run.metadata.deletionTimestamp !== undefined && !isCounted(run);
}

export interface Totals {
  /** Runs; for a trigger this is the spec's fireCount. */
  runs: number;
  inputTokens: number;
  outputTokens: number;
  /** Sum of the known costs in millionths of a US dollar; null when not one cost is known (an unknown cost is not 0). */
  costMicroUsd: number | null;
  /** Acceptance of the newest run, RFC 3339; null before the first one. For a trigger this is lastFiredAt. */
  lastRunAt: string | null;
}

/**
 * The totals of one owner. `folded` and `folding` are those of its status; a live run whose UID is in `folding` is in
 * `folded` already and is skipped, so a run that is being removed counts exactly once.
 */
export function totalsOf(
  folded: FoldedTotals | undefined,
  folding: readonly string[] | undefined,
  liveRuns: Iterable<CountedRun>,
): Totals {
  const skip = new Set(folding);
  const sum = { ...(folded ?? emptyTotals()) };
  for (const run of liveRuns) if (!skip.has(run.uid)) addRun(sum, run);
  // Sums of earlier versions do not say whether a cost of 0 is known.
  const costKnown = sum.costKnown === true || sum.costMicroUsd > 0;
  return {
    runs: sum.runs,
    inputTokens: sum.inputTokens,
    outputTokens: sum.outputTokens,
    costMicroUsd: costKnown ? sum.costMicroUsd : null,
    lastRunAt: sum.lastRunAt ?? null,
  };
}

/** The base with these runs added; the caller makes sure that none of them is in it. */
export function rollUp(folded: FoldedTotals | undefined, runs: readonly CountedRun[]): FoldedTotals {
  const sum = { ...(folded ?? emptyTotals()) };
  for (const run of runs) addRun(sum, run);
  return sum;
}

function emptyTotals(): FoldedTotals {
  return { runs: 0, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 };
}

function addRun(sum: FoldedTotals, run: CountedRun): void {
  sum.runs = sumOf(sum.runs, 1);
  sum.inputTokens = sumOf(sum.inputTokens, run.usage?.inputTokens ?? 0);
  sum.outputTokens = sumOf(sum.outputTokens, run.usage?.outputTokens ?? 0);
  sum.costMicroUsd = sumOf(sum.costMicroUsd, parseMicroUsd(run.usage?.costUsd) ?? 0);
  if (run.usage?.costUsd !== undefined) sum.costKnown = true;
  if (run.countedAt !== undefined && run.usage !== undefined) {
    sum.periods = addToPeriods(sum.periods, run.countedAt, amountOf(run.usage));
  }
  const newer = sum.lastRunAt === undefined || Date.parse(run.createdAt) > Date.parse(sum.lastRunAt);
  if (newer) sum.lastRunAt = run.createdAt;
}

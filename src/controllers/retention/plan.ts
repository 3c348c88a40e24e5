/**
 * Which finished runs go, and which lose their stored input and transcript. Pure: finished runs in, actions out. Whoever was
 * given the id of a run within the last hour can still find it, whatever the limits on numbers say.
 * See docs/architecture.md#limits-and-retention.
 */

/** A finished run that is not being deleted. */
export interface FinishedRun {
  /** namespace/name. */
  key: string;
  namespace: string;
  /** namespace/agent. */
  agent: string;
  /** Milliseconds since the epoch. */
  finishedAt: number;
  /** A run of its session waits or works, or its session waits for an answer: the transcript may still be needed. */
  sessionOpen: boolean;
  /** Stored input and transcript, as the API server keeps them; 0 while they cannot be removed yet. */
  storedBytes: number;
  /** What can only go with the run: a long message in the object. */
  fixedBytes: number;
}

export interface RetentionLimits {
  /** How many of the newest finished runs of an agent stay until `maxAgeMs`. */
  runsPerAgent: number;
  /** No run goes because of `runsPerAgent` before this age. */
  minAgeMs: number;
  /** Every run goes after this age. */
  maxAgeMs: number;
  /** Finished runs of the installation. */
  maxFinished: number;
  /** Stored messages, inputs and transcripts of a Box; open sessions may have the same amount on top. */
  boxBytes: number;
  /** Stored messages, inputs and transcripts of the installation. */
  installationBytes: number;
}

/** No run goes within this time, even if the installation holds too many: new calls are turned away instead. */
export const HELD_MS = 3_600_000;

export type ExpiryRule = 'box-bytes' | 'installation-bytes';
/** A rule of bytes removes a run only if its message cannot go without it. */
export type RemovalRule = 'per-agent' | 'age' | 'installation' | ExpiryRule;

export type RetentionAction =
  | { do: 'remove'; key: string; rule: RemovalRule }
  /** The run stays; its input and its transcript go. */
  | { do: 'expire'; key: string; rule: ExpiryRule };

export interface RetentionPlan {
  /** Oldest first within each rule. */
  actions: RetentionAction[];
  /** Runs above `maxFinished` that may not go yet. */
  held: number;
  /** Stored bytes of all runs, before the actions. */
  storedBytes: number;
}

export function planRetention(runs: readonly FinishedRun[], limits: RetentionLimits, now: number): RetentionPlan {
  const oldestFirst = [...runs].sort(byAge);
  const aged = removalsByAge(oldestFirst, limits, now);
  const kept = oldestFirst.filter((run) => !aged.has(run));
  const excess = Math.max(0, kept.length - limits.maxFinished);
  const capped = new Set(openLast(kept.filter((run) => now - run.finishedAt >= HELD_MS)).slice(0, excess));
  const left = kept.filter((run) => !capped.has(run));
  const ofBoxes = beyondBoxBytes(left, limits.boxBytes, now);
  const stored = openLast(left.map((run) => ofBoxes.get(run)?.left ?? run));
  const ofAll = beyond(stored, limits.installationBytes, now);
  return {
    actions: [
      ...[...aged].map(([{ key }, rule]) => ({ do: 'remove' as const, key, rule })),
      ...[...capped].map(({ key }) => ({ do: 'remove' as const, key, rule: 'installation' as const })),
      ...[...ofBoxes.values()].map(({ left: { key }, act }) => ({ do: act, key, rule: 'box-bytes' as const })),
      ...[...ofAll.values()].map(({ left: { key }, act }) => ({ do: act, key, rule: 'installation-bytes' as const })),
    ],
    held: excess - capped.size,
    storedBytes: bytesOf(runs),
  };
}

function byAge(a: FinishedRun, b: FinishedRun): number {
  return a.finishedAt - b.finishedAt || (a.key < b.key ? -1 : 1);
}

/** Runs of open sessions come after all others; the order within each part stays. */
function openLast(runs: readonly FinishedRun[]): FinishedRun[] {
  return [...runs.filter((run) => !run.sessionOpen), ...runs.filter((run) => run.sessionOpen)];
}

/** An open session keeps its runs; only the maximum of the installation overrides that. */
function removalsByAge(
  oldestFirst: readonly FinishedRun[],
  limits: RetentionLimits,
  now: number,
): Map<FinishedRun, RemovalRule> {
  const removals = new Map<FinishedRun, RemovalRule>();
  const left = new Map<string, number>();
  for (const { agent } of oldestFirst) left.set(agent, (left.get(agent) ?? 0) + 1);
  for (const run of oldestFirst) {
    const age = now - run.finishedAt;
    const newer = (left.get(run.agent) ?? 0) - 1;
    left.set(run.agent, newer);
    if (run.sessionOpen) continue;
    if (age > limits.maxAgeMs) removals.set(run, 'age');
    else if (newer >= limits.runsPerAgent && age > limits.minAgeMs) removals.set(run, 'per-agent');
  }
  return removals;
}

/** What happens to a run for its bytes, and the run as it is afterwards. */
interface Reduction {
  act: RetentionAction['do'];
  left: FinishedRun;
}

function beyondBoxBytes(
  oldestFirst: readonly FinishedRun[],
  limit: number,
  now: number,
): ReadonlyMap<FinishedRun, Reduction> {
  const boxes = Map.groupBy(oldestFirst, (run) => run.namespace);
  return new Map(
    [...boxes.values()].flatMap((runs) =>
      [false, true].flatMap((open) => [
        ...beyond(
          runs.filter((run) => run.sessionOpen === open),
          limit,
          now,
        ),
      ]),
    ),
  );
}

/**
 * What has to happen to the first runs of the list so that the rest fits. A run with a long message goes as a whole. While it
 * may not go, its message does not count: no other run loses its transcript for it.
 */
function beyond(runs: readonly FinishedRun[], limit: number, now: number): ReadonlyMap<FinishedRun, Reduction> {
  const fixed = (run: FinishedRun) => (!run.sessionOpen && now - run.finishedAt >= HELD_MS ? run.fixedBytes : 0);
  let total = runs.reduce((sum, run) => sum + run.storedBytes + fixed(run), 0);
  const out = new Map<FinishedRun, Reduction>();
  for (const run of runs) {
    if (total <= limit) break;
    const bytes = run.storedBytes + fixed(run);
    if (bytes === 0) continue;
    const goes = fixed(run) > 0;
    out.set(run, {
      act: goes ? 'remove' : 'expire',
      left: { ...run, storedBytes: 0, fixedBytes: goes ? 0 : run.fixedBytes },
    });
    total -= bytes;
  }
  return out;
}

function bytesOf(runs: readonly FinishedRun[]): number {
  return runs.reduce((sum, run) => sum + run.storedBytes + run.fixedBytes, 0);
}

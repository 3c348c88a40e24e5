/**
 * Runs that wait or work, and the bytes of their input, counted from the informer's events (DESIGN 8): reading a count
 * costs no pass over runs and no request. The limits stand in backlog-budget.ts.
 */
import type { CacheChange } from '../kube/types.js';
import type { BacklogCount, BacklogReader } from './backlog-budget.js';

/** What counts of a run. */
export interface CountedRun {
  namespace: string;
  name: string;
  box: string;
  agent: string;
  terminal: boolean;
  /** Input as stored. */
  inputBytes: number;
}

/** The runs of a cache and their changes. */
export interface RunSource {
  values(): Iterable<CountedRun>;
  onChange(listener: (change: Pick<CacheChange<CountedRun>, 'key' | 'current'>) => void): () => void;
}

/** Retention removes what is above its maximum; this far above it, it may not: those runs ended within the hour. */
const FINISHED_SLACK = 1.2;
const DEFAULT_MAX_FINISHED = 50_000;

const NOTHING: BacklogCount = { runs: 0, bytes: 0 };

/**
 * Counts the runs without an outcome in the cache from now on, and how many have one. A change that is told again counts
 * once: a controller hears of everything anew when it begins to lead.
 */
export function countLiveRuns(runs: RunSource, maxFinished = DEFAULT_MAX_FINISHED): BacklogReader {
  const finished = new Set<string>();
  const live = new Map<string, CountedRun>();
  const installation: BacklogCount = { runs: 0, bytes: 0 };
  const boxes = new Map<string, BacklogCount>();
  const agents = new Map<string, BacklogCount>();
  const add = (run: CountedRun, sign: 1 | -1) => {
    change(installation, run, sign);
    changeIn(boxes, run.box, run, sign);
    changeIn(agents, `${run.box}.${run.agent}`, run, sign);
  };
  const count = (key: string, run: CountedRun | undefined) => {
    const before = live.get(key);
    if (before !== undefined) add(before, -1);
    live.delete(key);
    finished.delete(key);
    if (run?.terminal === true) finished.add(key);
    else if (run !== undefined) {
      live.set(key, run);
      add(run, 1);
    }
  };
  for (const run of runs.values()) count(`${run.namespace}/${run.name}`, run);
  runs.onChange(({ key, current }) => count(key, current));
  return {
    installation: () => installation,
    box: (box) => boxes.get(box) ?? NOTHING,
    agent: (box, agent) => agents.get(`${box}.${agent}`) ?? NOTHING,
    isFinishedFull: () => finished.size >= maxFinished * FINISHED_SLACK,
  };
}

function change(count: BacklogCount, run: CountedRun, sign: 1 | -1): void {
  count.runs += sign;
  count.bytes += sign * run.inputBytes;
}

function changeIn(counts: Map<string, BacklogCount>, key: string, run: CountedRun, sign: 1 | -1): void {
  const count = counts.get(key) ?? { runs: 0, bytes: 0 };
  change(count, run, sign);
  if (count.runs === 0) counts.delete(key);
  else counts.set(key, count);
}

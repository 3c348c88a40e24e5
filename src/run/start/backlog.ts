/**
 * Runs that wait or work, and the bytes of their input, counted from the informer's events: reading a count
 * costs no pass over runs and no request. The limits stand in backlog-budget.ts.
 */
import type { CacheChange } from '../../kube/types.js';
import { BACKLOG_LIMITS } from './backlog-budget.js';
import type { BacklogCount, BacklogReader, BacklogScope } from './backlog-budget.js';

/** What counts of a run. */
export interface CountedRun {
  namespace: string;
  name: string;
  /** Empty for a run outside the namespaces of Boxes: it never starts, and counts nowhere. */
  box: string;
  agent: string;
  terminal: boolean;
  /** It is being deleted. When it has ended, it counts as gone, as for retention: others may hold it as long as they like. */
  leaving?: boolean;
  /** Input as stored. */
  inputBytes: number;
}

/** The runs of a cache and their changes. */
export interface RunSource {
  values(): Iterable<CountedRun>;
  onChange(listener: (change: Pick<CacheChange<CountedRun>, 'key' | 'current'>) => void): () => void;
}

/** The counts of a cache, and how near they come to a budget. */
export interface LiveRuns extends BacklogReader {
  /** The most runs and the most bytes that one agent, one Box or the installation has now. One pass over those that have any. */
  fullest(scope: BacklogScope): BacklogCount;
}

/** Retention removes what is above its maximum; this far above it, it may not: those runs ended within the hour. */
const FINISHED_SLACK = 1.2;
const DEFAULT_MAX_FINISHED = 50_000;
/** A Box with fewer finished runs is not turned away for those of others: what is older than an hour, retention removes. */
const FINISHED_GUARANTEED = 1_000;

const NOTHING: BacklogCount = { runs: 0, bytes: 0 };

/**
 * Counts the runs without an outcome in the cache from now on, and how many have one; only those in namespaces of Boxes. A change that is told again counts
 * once: a controller hears of everything anew when it begins to lead.
 */
export function countLiveRuns(runs: RunSource, maxFinished = DEFAULT_MAX_FINISHED): LiveRuns {
  const finished = new FinishedRuns();
  const live = new Map<string, CountedRun>();
  const counter = new BacklogCounter();
  const count = (key: string, run: CountedRun | undefined) => {
    const before = live.get(key);
    if (before !== undefined) counter.add(before, -1);
    live.delete(key);
    finished.delete(key);
    if (run === undefined || run.box === '') return;
    if (run.terminal) {
      if (run.leaving !== true) finished.add(key, run.box);
    } else {
      live.set(key, run);
      counter.add(run, 1);
    }
  };
  for (const run of runs.values()) count(`${run.namespace}/${run.name}`, run);
  runs.onChange(({ key, current }) => count(key, current));
  return {
    installation: () => counter.installation,
    box: (box) => counter.box(box),
    agent: (box, agent) => counter.agent(box, agent),
    fullest: (scope) => counter.fullest(scope),
    isFinishedFull: (box) =>
      finished.size >= maxFinished * FINISHED_SLACK && finished.of(box) >= Math.min(maxFinished, FINISHED_GUARANTEED),
  };
}

/** Finished runs by Box; a Box without any takes no memory. */
class FinishedRuns {
  readonly #boxes = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  get size(): number {
    return this.#boxes.size;
  }

  of(box: string): number {
    return this.#counts.get(box) ?? 0;
  }

  add(key: string, box: string): void {
    this.#boxes.set(key, box);
    this.#counts.set(box, this.of(box) + 1);
  }

  delete(key: string): void {
    const box = this.#boxes.get(key);
    if (box === undefined) return;
    this.#boxes.delete(key);
    const left = this.of(box) - 1;
    if (left === 0) this.#counts.delete(box);
    else this.#counts.set(box, left);
  }
}

type Weighed = Pick<CountedRun, 'box' | 'agent' | 'inputBytes'>;

/** Sums of runs by agent, Box and installation, where a Box counts no more than its limit; what has no run takes no memory. */
export class BacklogCounter {
  readonly installation: BacklogCount = { runs: 0, bytes: 0 };
  readonly #boxes = new Map<string, BacklogCount>();
  readonly #agents = new Map<string, BacklogCount>();

  add(run: Weighed, sign: 1 | -1): void {
    this.#addCapped(this.box(run.box), -1);
    changeIn(this.#boxes, run.box, run, sign);
    this.#addCapped(this.box(run.box), 1);
    changeIn(this.#agents, `${run.box}.${run.agent}`, run, sign);
  }

  #addCapped({ runs, bytes }: BacklogCount, sign: 1 | -1): void {
    this.installation.runs += sign * Math.min(runs, BACKLOG_LIMITS.box.runs);
    this.installation.bytes += sign * Math.min(bytes, BACKLOG_LIMITS.box.bytes);
  }

  box(box: string): BacklogCount {
    return this.#boxes.get(box) ?? NOTHING;
  }

  fullest(scope: BacklogScope): BacklogCount {
    if (scope === 'installation') return this.installation;
    const most: BacklogCount = { ...NOTHING };
    for (const { runs, bytes } of (scope === 'box' ? this.#boxes : this.#agents).values()) {
      most.runs = Math.max(most.runs, runs);
      most.bytes = Math.max(most.bytes, bytes);
    }
    return most;
  }

  agent(box: string, agent: string): BacklogCount {
    return this.#agents.get(`${box}.${agent}`) ?? NOTHING;
  }
}

function change(count: BacklogCount, run: Pick<CountedRun, 'inputBytes'>, sign: 1 | -1): void {
  count.runs += sign;
  count.bytes += sign * run.inputBytes;
}

function changeIn(counts: Map<string, BacklogCount>, key: string, run: Weighed, sign: 1 | -1): void {
  const count = counts.get(key) ?? { runs: 0, bytes: 0 };
  change(count, run, sign);
  if (count.runs === 0) counts.delete(key);
  else counts.set(key, count);
}

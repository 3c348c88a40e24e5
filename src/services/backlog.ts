/**
 * Runs that wait or work, and the bytes of their input, counted from the informer's events (DESIGN 8): reading a count
 * costs no pass over runs and no request. The limits stand with the trigger URL (src/webhook/backlog.ts).
 */
import type { Cache } from '../kube/types.js';
import type { RunView } from './views.js';

export interface LiveCount {
  runs: number;
  /** Input as stored. */
  bytes: number;
}

export interface LiveCounts {
  installation(): LiveCount;
  box(box: string): LiveCount;
  agent(box: string, agent: string): LiveCount;
  /** Whether more finished runs are stored than retention can be behind with. */
  isFinishedFull(): boolean;
}

/** Retention removes what is above its maximum; this far above it, it may not: those runs ended within the hour. */
const FINISHED_SLACK = 1.2;
const DEFAULT_MAX_FINISHED = 50_000;

const NOTHING: LiveCount = { runs: 0, bytes: 0 };

/** Counts the runs without an outcome in the cache from now on, and how many have one. */
export function countLiveRuns(
  runs: Pick<Cache<RunView>, 'onChange' | 'values'>,
  maxFinished = DEFAULT_MAX_FINISHED,
): LiveCounts {
  let finished = 0;
  const installation: LiveCount = { runs: 0, bytes: 0 };
  const boxes = new Map<string, LiveCount>();
  const agents = new Map<string, LiveCount>();
  const count = (run: RunView | undefined, sign: 1 | -1) => {
    if (run === undefined) return;
    if (run.terminal) {
      finished += sign;
      return;
    }
    add(installation, run, sign);
    addTo(boxes, run.box, run, sign);
    addTo(agents, `${run.box}.${run.agent}`, run, sign);
  };
  for (const run of runs.values()) count(run, 1);
  runs.onChange(({ previous, current }) => {
    count(previous, -1);
    count(current, 1);
  });
  return {
    installation: () => installation,
    box: (box) => boxes.get(box) ?? NOTHING,
    agent: (box, agent) => agents.get(`${box}.${agent}`) ?? NOTHING,
    isFinishedFull: () => finished >= maxFinished * FINISHED_SLACK,
  };
}

function add(load: LiveCount, run: RunView, sign: 1 | -1): void {
  load.runs += sign;
  load.bytes += sign * run.inputBytes;
}

function addTo(loads: Map<string, LiveCount>, key: string, run: RunView, sign: 1 | -1): void {
  const load = loads.get(key) ?? { runs: 0, bytes: 0 };
  add(load, run, sign);
  if (load.runs === 0) loads.delete(key);
  else loads.set(key, load);
}

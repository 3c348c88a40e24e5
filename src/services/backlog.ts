/**
 * Runs that wait or work, and the bytes of their input, kept up to date from the informer's events (DESIGN 8). This
 * budget protects the cluster: it is the only reason why a new run is turned away.
 */
import type { AgentRef } from '../api/names.js';
import type { Cache } from '../kube/types.js';
import type { RunView } from './views.js';

export interface BacklogLimits {
  boxRuns: number;
  boxBytes: number;
  installationRuns: number;
  installationBytes: number;
}

/** The defaults of DESIGN 8; one agent may use at most half of its Box. */
export const BACKLOG_LIMITS: BacklogLimits = {
  boxRuns: 10_000,
  boxBytes: 64 * 1024 * 1024,
  installationRuns: 20_000,
  installationBytes: 256 * 1024 * 1024,
};

/** Whose budget is used up. */
export type BacklogScope = 'agent' | 'box' | 'installation';

export interface Backlog {
  /** The budget that a further run of this agent would exceed; undefined when there is room. */
  exceeded(agent: AgentRef): BacklogScope | undefined;
}

interface Load {
  runs: number;
  bytes: number;
}

export function createBacklog(
  runs: Pick<Cache<RunView>, 'onChange' | 'values'>,
  limits: BacklogLimits = BACKLOG_LIMITS,
): Backlog {
  const installation: Load = { runs: 0, bytes: 0 };
  const boxes = new Map<string, Load>();
  const agents = new Map<string, Load>();
  const count = (run: RunView | undefined, sign: 1 | -1) => {
    if (run === undefined || run.terminal) return;
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
    exceeded({ box, agent }) {
      if (isFull(installation, limits.installationRuns, limits.installationBytes)) return 'installation';
      if (isFull(boxes.get(box), limits.boxRuns, limits.boxBytes)) return 'box';
      return isFull(agents.get(`${box}.${agent}`), limits.boxRuns / 2, limits.boxBytes / 2) ? 'agent' : undefined;
    },
  };
}

function isFull(load: Load | undefined, runs: number, bytes: number): boolean {
  return load !== undefined && (load.runs >= runs || load.bytes >= bytes);
}

function add(load: Load, run: RunView, sign: 1 | -1): void {
  load.runs += sign;
  load.bytes += sign * run.inputBytes;
}

function addTo(loads: Map<string, Load>, key: string, run: RunView, sign: 1 | -1): void {
  const load = loads.get(key) ?? { runs: 0, bytes: 0 };
  add(load, run, sign);
  if (load.runs === 0) loads.delete(key);
  else loads.set(key, load);
}

/**
 * The stated budget of waiting and running runs. It protects etcd and the API server from callers without a
 * rate limit (spec 8): only beyond it a call is turned away. Trigger URLs, tools and the ticks of schedules all ask here.
 * See docs/architecture.md#limits-and-retention.
 */
import type { AgentRef } from '../../api/names.js';
import { UserError } from '../../api/user-error.js';

/** Runs without an outcome, and the bytes of input that they store. */
export interface BacklogCount {
  runs: number;
  bytes: number;
}

/** Counts of live runs, kept by the caches: reading one costs no pass over runs and no request. */
export interface BacklogReader {
  /** Of each Box no more than its own limit counts, so that one Box cannot use up what is for all. */
  installation(): BacklogCount;
  box(box: string): BacklogCount;
  agent(box: string, agent: string): BacklogCount;
  /** Whether so many finished runs are stored, and more than a few of this Box, that no new one of it may come. */
  isFinishedFull(box: string): boolean;
}

/** Each limit is the count at which the next call is turned away. */
export interface BacklogLimits {
  installation: BacklogCount;
  box: BacklogCount;
  /** Below this a Box has room whatever other Boxes hold. */
  guaranteed: BacklogCount;
}

const MIB = 1024 * 1024;

export const BACKLOG_LIMITS: BacklogLimits = {
  installation: { runs: 20_000, bytes: 256 * MIB },
  box: { runs: 10_000, bytes: 64 * MIB },
  guaranteed: { runs: 1_000, bytes: 4 * MIB },
};

/** Which budget is used up. */
export const BACKLOG_SCOPES = ['agent', 'box', 'installation'] as const;
export type BacklogScope = (typeof BACKLOG_SCOPES)[number];

/** The limit of one budget. One agent takes at most half of its Box. */
export function backlogLimit(scope: BacklogScope, limits: BacklogLimits = BACKLOG_LIMITS): BacklogCount {
  if (scope !== 'agent') return limits[scope];
  return { runs: limits.box.runs / 2, bytes: limits.box.bytes / 2 };
}

/**
 * The widest budget that has no room for a run of this agent, or undefined. What others hold never turns away a Box that holds
 * less than it is guaranteed.
 */
export function exceededBacklog(
  reader: BacklogReader,
  ref: AgentRef,
  limits: BacklogLimits = BACKLOG_LIMITS,
): BacklogScope | undefined {
  const box = reader.box(ref.box);
  const isInstallationFull = isFull(box, limits.guaranteed) && isFull(reader.installation(), limits.installation);
  if (reader.isFinishedFull(ref.box) || isInstallationFull) return 'installation';
  if (isFull(box, limits.box)) return 'box';
  return isFull(reader.agent(ref.box, ref.agent), backlogLimit('agent', limits)) ? 'agent' : undefined;
}

/** What a caller without room is told first; what to do follows. */
export function backlogMessage(scope: BacklogScope): string {
  return `too many runs are waiting (limit of the ${scope})`;
}

/** The error of a tool whose run has no room. */
export function backlogError(scope: BacklogScope): UserError {
  return new UserError(`${backlogMessage(scope)}: try again when some have finished`);
}

function isFull(count: BacklogCount, limit: BacklogCount): boolean {
  return count.runs >= limit.runs || count.bytes >= limit.bytes;
}

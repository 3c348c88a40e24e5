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
  installation(): BacklogCount;
  box(box: string): BacklogCount;
  agent(box: string, agent: string): BacklogCount;
  /** Whether so many finished runs are stored that no new one may come, because none may be removed yet. */
  isFinishedFull(): boolean;
}

/** Each limit is the count at which the next call is turned away. */
export interface BacklogLimits {
  installation: BacklogCount;
  box: BacklogCount;
}

const MIB = 1024 * 1024;

export const BACKLOG_LIMITS: BacklogLimits = {
  installation: { runs: 20_000, bytes: 256 * MIB },
  box: { runs: 10_000, bytes: 64 * MIB },
};

/** Which budget is used up. */
export const BACKLOG_SCOPES = ['agent', 'box', 'installation'] as const;
export type BacklogScope = (typeof BACKLOG_SCOPES)[number];

/** The limit of one budget. One agent takes at most half of its Box. */
export function backlogLimit(scope: BacklogScope, limits: BacklogLimits = BACKLOG_LIMITS): BacklogCount {
  if (scope !== 'agent') return limits[scope];
  return { runs: limits.box.runs / 2, bytes: limits.box.bytes / 2 };
}

/** The widest budget that has no room for a run of this agent, or undefined. */
export function exceededBacklog(
  reader: BacklogReader,
  ref: AgentRef,
  limits: BacklogLimits = BACKLOG_LIMITS,
): BacklogScope | undefined {
  if (reader.isFinishedFull() || isFull(reader.installation(), limits.installation)) return 'installation';
  if (isFull(reader.box(ref.box), limits.box)) return 'box';
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

/** What a person sees first: all agents of a workspace with what they do and cost today, and all that waits for a person. */
import { isoTime } from '../../api/time.js';
import { parseMicroUsd } from '../../run/usage/money.js';
import { QUEUE_REASONS, RUN_REASONS } from '../../run/reasons.js';
import { BY_AGENT, agentKey } from '../../projections/indexes.js';
import { ASKING_BY_AGENT } from '../../projections/agent-run.js';
import type { ApiRun } from '../../projections/agent-run.js';
import type { ApiAgent } from '../../projections/agent.js';
import { compare } from '../../runtime/compare.js';
import { listAgents, listSpaces } from '../agents/agents.js';
import type { Caller } from '../keys/key-check.js';
import { byAcceptance, isShown } from '../runs/find-run.js';
import { memoizedLists } from '../memoized-lists.js';
import { pendingOfRun } from '../runs/pending.js';
import type { PendingRecord } from '../runs/pending.js';
import { agentsOf, boxesOf, idOf } from '../scope.js';
import type { ScopeDeps } from '../scope.js';

/** Failures that the inbox shows: the latest ones. */
export const MAX_FAILURES = 50;
/** Questions that the inbox shows: the oldest ones, which wait longest. */
export const MAX_QUESTIONS = 200;

/** Sums of the runs of an agent that were accepted since a time. */
interface Sums {
  runs: number;
  failed: number;
  /** Of those whose cost is known. */
  costUsd: number;
  totalTokens: number;
  lastRun: { runId: string; status: string; reason: string | null; at: string } | null;
}

/** Boxes and agents with their sums since a time (ISO 8601). No request. */
export function readBoard(deps: ScopeDeps, caller: Caller, since: string) {
  const make = () => {
    const agents = new Map(agentsIn(deps, caller).map((agent) => [idOf(agent), agent]));
    return listAgents(deps, caller, undefined).flatMap((record) => {
      const agent = agents.get(record.id);
      return agent === undefined ? [] : [{ ...record, ...sumsOf(runsOf(deps, agent), since) }];
    });
  };
  return { spaces: listSpaces(deps, caller), agents: boards(deps.caches, `${caller.workspace} ${since}`, make) };
}

type BoardAgent = ReturnType<typeof listAgents>[number] & Sums;

/** All tabs of a workspace share the work. */
const boards = memoizedLists<BoardAgent>(['Box', 'Agent', 'AgentRun']);

function agentsIn(deps: ScopeDeps, caller: Caller): ApiAgent[] {
  return boxesOf(deps, caller.workspace).flatMap(({ name }) => agentsOf(deps, name));
}

function runsOf(deps: ScopeDeps, agent: ApiAgent): ApiRun[] {
  const runs = deps.caches.AgentRun.byIndex(BY_AGENT, agentKey(agent.namespace, agent.name));
  return runs.filter((run) => isShown(deps, agent, run));
}

function sumsOf(runs: readonly ApiRun[], since: string): Sums {
  const sums: Sums = { runs: 0, failed: 0, costUsd: 0, totalTokens: 0, lastRun: null };
  let last: ApiRun | undefined;
  let microUsd = 0;
  for (const run of runs) {
    if (last === undefined || byAcceptance(last, run) < 0) last = run;
    if (run.createdAt < since) continue;
    sums.runs += 1;
    if (run.phase === 'error') sums.failed += 1;
    sums.totalTokens += run.usage?.totalTokens ?? 0;
    microUsd += parseMicroUsd(run.usage?.costUsd) ?? 0;
  }
  sums.costUsd = microUsd / 1_000_000;
  if (last !== undefined) {
    sums.lastRun = { runId: last.name, status: last.phase, reason: last.reason ?? null, at: last.createdAt };
  }
  return sums;
}

interface Question {
  agentId: string;
  agentName: string;
  runId: string;
  sessionId: string;
  askedAt: string;
  pending: PendingRecord;
}

interface Failure {
  agentId: string;
  agentName: string;
  runId: string;
  sessionId: string;
  endedAt: string;
  reason: string;
  message: string;
  cause: string;
  nextStep: string;
}

/** Questions and approvals that nobody has answered, and runs that failed since a time (ISO 8601). No request. */
export function readInbox(deps: ScopeDeps, caller: Caller, since: string) {
  const agents = agentsIn(deps, caller);
  const questions = agents.flatMap((agent) => questionsOf(deps, agent));
  const failures = agents.flatMap((agent) => failuresOf(deps, agent, since));
  return {
    questions: questions.sort((a, b) => compare(a.askedAt, b.askedAt)).slice(0, MAX_QUESTIONS),
    failures: failures.sort((a, b) => compare(b.endedAt, a.endedAt)).slice(0, MAX_FAILURES),
    /** How many there are, shown or not. */
    counts: { questions: questions.length, failures: failures.length },
  };
}

function questionsOf(deps: ScopeDeps, agent: ApiAgent): Question[] {
  const asking = deps.caches.AgentRun.byIndex(ASKING_BY_AGENT, agentKey(agent.namespace, agent.name));
  return asking.flatMap((run) => {
    const pending = isShown(deps, agent, run) ? pendingOfRun(deps.caches, run) : null;
    return pending === null ? [] : [{ ...placeOf(agent, run), askedAt: endOf(run), pending }];
  });
}

function failuresOf(deps: ScopeDeps, agent: ApiAgent, since: string): Failure[] {
  return runsOf(deps, agent)
    .filter((run) => run.phase === 'error' && endOf(run) >= since)
    .map((run) => {
      const reason = run.reason ?? 'Unknown';
      const known: Record<string, { cause: string; nextStep: string }> = { ...RUN_REASONS, ...QUEUE_REASONS };
      const { cause = '', nextStep = '' } = known[reason] ?? {};
      return { ...placeOf(agent, run), endedAt: endOf(run), reason, message: run.message ?? '', cause, nextStep };
    });
}

function placeOf(agent: ApiAgent, run: ApiRun) {
  return { agentId: idOf(agent), agentName: agent.displayName, runId: run.name, sessionId: run.sessionId };
}

function endOf(run: ApiRun): string {
  return run.finishedAt === undefined ? run.createdAt : isoTime(run.finishedAt);
}

/** What a session waits for: the question or approval of its latest run, until a message answers it. */
import type { ApiCaches } from '../caches.js';
import { sessionKey } from '../../run/session/key.js';
import { ASKING_BY_AGENT, BY_SESSION } from '../../projections/agent-run.js';
import type { ApiRun } from '../../projections/agent-run.js';
import type { ApiAgent } from '../../projections/agent.js';
import { agentKey } from '../../projections/indexes.js';
import { byAcceptance, isRunOf } from './find-run.js';

/** The `pending` record of the tools. */
export interface PendingRecord {
  kind: 'question' | 'approval';
  text: string;
  choices: readonly string[] | null;
  /** For approvals: the tool and its arguments. */
  tool: string | null;
  input: unknown;
}

/** The run of a session whose question is still open. A later run answers it, unless it ended before a pod took it. */
function waitingRun(runs: readonly ApiRun[]): ApiRun | undefined {
  const latest = runs.toSorted(byAcceptance).findLast((run) => !run.terminal || run.claimed);
  return latest?.terminal === true && latest.pending !== undefined ? latest : undefined;
}

/** What the session of these runs waits for; null when it waits for nothing. */
export function pendingOfSession(runs: readonly ApiRun[]): PendingRecord | null {
  const { pending } = waitingRun(runs) ?? {};
  if (pending === undefined) return null;
  const { kind, text, choices, tool, input } = pending;
  return {
    kind,
    text,
    choices: choices ?? null,
    tool: tool ?? null,
    input: input === undefined ? null : parsed(input),
  };
}

/** What this run waits for; null when it waits for nothing, or was answered. No request. */
export function pendingOfRun(caches: Pick<ApiCaches, 'AgentRun'>, run: ApiRun): PendingRecord | null {
  if (run.pending === undefined) return null;
  const session = caches.AgentRun.byIndex(BY_SESSION, sessionKey(run.namespace, run.sessionId));
  // The caller may have read the run later than the cache.
  const runs = [...session.filter(({ uid }) => uid !== run.uid), run];
  return waitingRun(runs) === run ? pendingOfSession(runs) : null;
}

/** Whether a session of the agent waits for an answer. No request. */
export function isAgentWaiting(caches: Pick<ApiCaches, 'AgentRun'>, agent: ApiAgent): boolean {
  const asked = caches.AgentRun.byIndex(ASKING_BY_AGENT, agentKey(agent.namespace, agent.name));
  return asked.some((run) => isRunOf(agent, run) && pendingOfRun(caches, run) !== null);
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

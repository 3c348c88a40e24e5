/** Starts a run of an eval, under the one name that every controller computes for it. */
import type { ConditionReason } from '../../api/condition-reasons.js';
import { boxOfNamespace } from '../../api/names.js';
import type { AgentRef } from '../../api/names.js';
import type { AgentEval } from '../../api/v1alpha1/agent-eval.js';
import type { RunModel } from '../../api/v1alpha1/agent-run.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { ControllerAgent } from '../../projections/agent.js';
import { agentKey } from '../../projections/indexes.js';
import { backlogMessage } from '../../run/start/backlog-budget.js';
import type { BacklogScope } from '../../run/start/backlog-budget.js';
import type { ReserveRun } from '../../run/start/own-runs.js';
import { ACKNOWLEDGE_MS, RunNameTakenError, StartRunError, startRun } from '../../run/start/start-run.js';
import type { Clock } from '../../runtime/clock.js';
import { withTimeout } from '../../runtime/with-timeout.js';
import { evalRunName } from './plan.js';
import type { EvalCell, RunRole } from './plan.js';

export interface StartDependencies {
  api: Pick<KubeApi, 'get' | 'create'>;
  clock: Clock;
  agents: Pick<Cache<ControllerAgent>, 'get'>;
  /** The budget that has no room for a run of this agent. */
  backlogExceeded(agent: AgentRef): BacklogScope | undefined;
  /** Counts a run in that budget from before its create until the cache shows it. */
  reserve: ReserveRun;
}

export interface EvalStart {
  cell: EvalCell;
  role: RunRole;
  /** The agent that executes the run. */
  agent: string;
  model: RunModel | undefined;
  message: string;
}

/** The start can be tried again as it is. */
export interface Obstacle {
  kind: 'again';
  reason: ConditionReason;
  message: string;
}

export type StartOutcome =
  | { kind: 'started'; run: string }
  | Obstacle
  /** No further try would go better. */
  | { kind: 'refused'; message: string };

/** Names of one run that may be taken by others before it is given up. */
const MAX_ATTEMPTS = 8;

/** Rejects only when nothing is known about the run: then it is tried again under the same name. */
export async function startEvalRun(
  deps: StartDependencies,
  of: AgentEval,
  start: EvalStart,
  signal: AbortSignal,
): Promise<StartOutcome> {
  const { namespace = '' } = of.metadata;
  const agent = deps.agents.get(agentKey(namespace, start.agent));
  const obstacle = obstacleOf(deps, of, start.agent);
  if (agent === undefined || obstacle !== undefined) return obstacle ?? missingAgent(start.agent);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const name = evalRunName(of, start.cell, { ...start, attempt });
    const outcome = await create(deps, of, { ...start, name, agentUid: agent.metadata.uid ?? '' }, signal);
    if (outcome !== undefined) return outcome;
  }
  return { kind: 'refused', message: 'every name for the run belongs to another run' };
}

/** Why a run of an agent has to wait. No request: evals that wait cost the API server nothing. */
export function obstacleOf(
  { agents, backlogExceeded }: Pick<StartDependencies, 'agents' | 'backlogExceeded'>,
  { metadata: { namespace = '' } }: AgentEval,
  agent: string,
): Obstacle | undefined {
  const found = agents.get(agentKey(namespace, agent));
  if (found === undefined || found.metadata.deletionTimestamp !== undefined) return missingAgent(agent);
  const scope = backlogExceeded({ box: boxOfNamespace(namespace) ?? '', agent });
  if (scope === undefined) return undefined;
  const message = `${backlogMessage(scope)}; cancel runs that nobody needs, or let less come in`;
  return { kind: 'again', reason: 'BacklogFull', message };
}

function missingAgent(agent: string): Obstacle {
  const message = `no Agent ${agent} is in this namespace; create it`;
  return { kind: 'again', reason: 'AgentNotFound', message };
}

/** Undefined when the name belongs to somebody else's run. */
async function create(
  { api, clock, reserve }: StartDependencies,
  { metadata }: AgentEval,
  start: EvalStart & { name: string; agentUid: string },
  signal: AbortSignal,
): Promise<StartOutcome | undefined> {
  const { cell, role, agent, agentUid, model, message, name } = start;
  const recording = role === 'case' ? cell.case.recording : undefined;
  const request = {
    name,
    agent: { box: boxOfNamespace(metadata.namespace ?? '') ?? '', agent },
    agentUid,
    message,
    trigger: { ...triggerOf(metadata), ...(role === 'case' ? { case: cell.case.name } : {}) },
    sessionTitle: `eval: ${metadata.name}, ${role === 'judge' ? 'judge of ' : ''}${cell.case.name}`,
    actor: 'eval',
    ...(model === undefined ? {} : { model }),
    ...(recording === undefined ? {} : { recording }),
  };
  const starter = { api, clock, reserve, lastOfSession: () => undefined };
  try {
    const started = await withTimeout(clock, ACKNOWLEDGE_MS, (abort) => startRun(starter, request, abort), signal);
    return { kind: 'started', run: started.runId };
  } catch (error) {
    if (error instanceof RunNameTakenError) return undefined;
    if (!(error instanceof StartRunError) || error.kind === 'unconfirmed') throw error;
    if (error.kind === 'too-large') return { kind: 'refused', message: error.message };
    return { kind: 'again', reason: 'Refused', message: causeOf(error) };
  }
}

function triggerOf({ name, uid = '' }: AgentEval['metadata']) {
  return { origin: 'eval' as const, name, uid };
}

/** What the API server says about a refused object names fields and policies, never the run's text. */
function causeOf(error: StartRunError): string {
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

/** Starts the run of one tick, under the one name that every controller computes for it. */
import type { ConditionReason } from '../../api/condition-reasons.js';
import type { Keyring } from '../../api/keyring.js';
import { boxOfNamespace, slugOfChildName } from '../../api/names.js';
import type { AgentRef } from '../../api/names.js';
import { AgentSchedules } from '../../api/v1alpha1/agent-schedule.js';
import type { AgentSchedule } from '../../api/v1alpha1/agent-schedule.js';
import { isNotFound } from '../../kube/errors.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import { tickRunName } from '../../schedule/run-name.js';
import { backlogMessage } from '../../run/start/backlog-budget.js';
import type { BacklogScope } from '../../run/start/backlog-budget.js';
import { withTimeout } from '../../runtime/with-timeout.js';
import type { ReserveRun } from '../../run/start/own-runs.js';
import { ACKNOWLEDGE_MS, RunNameTakenError, StartRunError, startRun } from '../../run/start/start-run.js';
import { refOf } from '../common/finalizer.js';
import type { ControllerAgent } from '../../projections/agent.js';
import { agentKey } from '../../projections/indexes.js';

/** The fields of a run that show whether it belongs to the tick. */
export interface TickRun {
  spec: { agent: string; trigger?: { uid?: string | undefined } | undefined };
}

export interface FireDependencies {
  api: Pick<KubeApi, 'get' | 'create'>;
  clock: Clock;
  agents: Pick<Cache<ControllerAgent>, 'get'>;
  runs: Pick<Cache<TickRun>, 'get'>;
  keyring: () => Keyring | undefined;
  /** The budget that has no room for a run of this agent. */
  backlogExceeded(agent: AgentRef): BacklogScope | undefined;
  /** Counts a run in that budget from before its create until the cache shows it. */
  reserve: ReserveRun;
  turnedAway(scope: BacklogScope): void;
}

export type TickOutcome =
  | { kind: 'fired'; runId: string }
  /** The tick is over without a run. */
  | { kind: 'skipped'; reason: ConditionReason; message: string }
  /** A retry within the starting deadline may succeed. */
  | { kind: 'again'; reason: ConditionReason; message: string }
  /** The schedule has changed meanwhile: reconcile the new one. */
  | { kind: 'changed' };

/** Names of one tick that may be taken by others before the tick is given up. */
const MAX_ATTEMPTS = 8;

/** Rejects only when nothing is known about the run: then the tick is tried again under the same name. */
export async function fireTick(
  deps: FireDependencies,
  schedule: AgentSchedule,
  tick: number,
  signal: AbortSignal,
): Promise<TickOutcome> {
  const agent = deps.agents.get(agentKey(schedule.metadata.namespace, schedule.spec.agent));
  const obstacle = obstacleOf(schedule, agent);
  if (agent === undefined || obstacle !== undefined) return obstacle ?? { kind: 'changed' };
  const key = deps.keyring()?.keys.get(schedule.spec.keyId ?? '');
  if (key === undefined) return { kind: 'again', reason: 'KeyNotFound', message: 'the keyring has no such key' };
  const { name: agentName, uid = '' } = agent.metadata;
  const scheduleUid = schedule.metadata.uid ?? '';
  const nameOf = (attempt: number) => tickRunName(key, { agent: agentName, scheduleUid, tick, attempt });
  const full = whyFull(deps, schedule, nameOf);
  if (full !== undefined) return full;
  // The cache of a controller that has just taken over may be old: whether the tick was handled is read live.
  if (!(await isCurrent(deps, schedule, signal))) return { kind: 'changed' };
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    // Other ticks may have used up the budget while this one was reading.
    const filled = whyFull(deps, schedule, nameOf);
    if (filled !== undefined) return filled;
    const outcome = await start(deps, schedule, { agentUid: uid, name: nameOf(attempt) }, signal);
    if (outcome !== undefined) return outcome;
  }
  return { kind: 'skipped', reason: 'Refused', message: 'every name for the run belongs to another run' };
}

function obstacleOf(schedule: AgentSchedule, agent: ControllerAgent | undefined): TickOutcome | undefined {
  if (agent === undefined || agent.metadata.deletionTimestamp !== undefined) {
    const message = `no Agent ${schedule.spec.agent} is in this namespace`;
    return { kind: 'skipped', reason: 'AgentNotFound', message };
  }
  if (agent.status?.active !== false) return undefined;
  const message = `the agent is inactive: ${agent.status.inactiveReason ?? 'the plan has no free agent slot'}`;
  return { kind: 'skipped', reason: 'AgentInactive', message };
}

/**
 * Undefined when the tick may go on: there is room, or its run was already started and only has to be recorded. No request:
 * waiting ticks cost a full installation nothing.
 */
function whyFull(
  deps: FireDependencies,
  { metadata, spec }: AgentSchedule,
  nameOf: (attempt: number) => string,
): TickOutcome | undefined {
  const { namespace = '', uid } = metadata;
  const scope = deps.backlogExceeded({ box: boxOfNamespace(namespace) ?? '', agent: spec.agent });
  if (scope === undefined) return undefined;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const run = deps.runs.get(`${namespace}/${nameOf(attempt)}`);
    if (run !== undefined && run.spec.trigger?.uid === uid) return undefined;
  }
  deps.turnedAway(scope);
  const message = `${backlogMessage(scope)}; cancel runs that nobody needs, or let less come in`;
  return { kind: 'again', reason: 'BacklogFull', message };
}

async function isCurrent(deps: FireDependencies, schedule: AgentSchedule, signal: AbortSignal): Promise<boolean> {
  try {
    const live = await deps.api.get(AgentSchedules, refOf(schedule.metadata), { signal });
    return live.metadata.resourceVersion === schedule.metadata.resourceVersion;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** Undefined when the name belongs to somebody else's run. */
async function start(
  deps: FireDependencies,
  { metadata, spec }: AgentSchedule,
  run: { name: string; agentUid: string },
  signal: AbortSignal,
): Promise<TickOutcome | undefined> {
  const slug = slugOfChildName(metadata.name) ?? '';
  const request = {
    ...run,
    agent: { box: boxOfNamespace(metadata.namespace ?? '') ?? '', agent: spec.agent },
    message: spec.body,
    trigger: { origin: 'schedule' as const, name: slug, uid: metadata.uid ?? '' },
    sessionTitle: `schedule: ${slug}`,
    actor: 'schedule',
  };
  const { api, clock, reserve } = deps;
  const starter = { api, clock, reserve, lastOfSession: () => undefined };
  try {
    const started = await withTimeout(deps.clock, ACKNOWLEDGE_MS, (abort) => startRun(starter, request, abort), signal);
    return { kind: 'fired', runId: started.runId };
  } catch (error) {
    if (error instanceof RunNameTakenError) return undefined;
    if (!(error instanceof StartRunError) || error.kind === 'unconfirmed') throw error;
    if (error.kind === 'too-large') return { kind: 'skipped', reason: 'MessageTooLarge', message: error.message };
    return { kind: 'again', reason: 'Refused', message: causeOf(error) };
  }
}

/** What the API server says about a refused object names fields and policies, never the run's text. */
function causeOf(error: StartRunError): string {
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

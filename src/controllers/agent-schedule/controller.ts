/**
 * AgentSchedule: fires its ticks, each exactly once whatever controllers do. The run's name is
 * derived from schedule and tick, so a second create finds the first; after the run is gone, `status.lastTick` remembers. Its
 * runs are counted by agent, Box and Workspace, so a schedule can go at any time and needs no finalizer.
 * See docs/architecture.md#schedules.
 */
import { setCondition } from '../../api/conditions.js';
import type { Keyring } from '../../api/keyring.js';
import { objectKey } from '../../api/meta.js';
import { AgentSchedules } from '../../api/v1alpha1/agent-schedule.js';
import type { AgentSchedule } from '../../api/v1alpha1/agent-schedule.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import { isoNow } from '../../runtime/clock.js';
import type { Clock } from '../../runtime/clock.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import { CONTINUE, DONE, continueAndRequeueAfter, requeueAfter, runSteps } from '../../runtime/steps.js';
import type { Step, StepResult } from '../../runtime/steps.js';
import { STARTING_DEADLINE_MS } from '../../schedule/timing.js';
import { all } from '../common/controller-part.js';
import type { ControllerPart } from '../common/controller-part.js';
import { refOf } from '../common/finalizer.js';
import { setReady } from '../common/ready.js';
import type { KnownCondition, NotReady } from '../common/ready.js';
import { patchStatus } from '../common/status-patch.js';
import { fireTick } from './fire.js';
import type { FireDependencies, TickOutcome, TickRun } from './fire.js';
import type { ScheduleMetrics } from './metrics.js';
import { isOver, planSchedule } from './plan.js';
import type { SchedulePlan, TickPlan } from './plan.js';
import { isGitOps } from '../../api/gitops.js';
import type { ControllerAgent } from '../../projections/agent.js';
import { BY_AGENT, agentKey } from '../../projections/indexes.js';

export interface AgentScheduleDependencies {
  api: Pick<KubeApi, 'get' | 'create' | 'patch'>;
  clock: Clock;
  log: Logger;
  /** `schedules` carries the index BY_AGENT. */
  caches: { schedules: Cache<AgentSchedule>; agents: Cache<ControllerAgent>; runs: Pick<Cache<TickRun>, 'get'> };
  /** Undefined until the keyring was read. */
  keyring: () => Keyring | undefined;
  /** The budget that has no room for a run of this agent. */
  backlogExceeded: FireDependencies['backlogExceeded'];
  reserve: FireDependencies['reserve'];
  metrics: ScheduleMetrics;
}

const KEYRING_RECHECK_MS = 1_000;
/** The watch usually delivers the new version, and so triggers a reconcile, earlier. */
const CHANGED_RECHECK_MS = 1_000;
const AGAIN_MS = 30_000;
/** Longest time until the next reconcile: the wall clock may jump, and timers follow the monotonic clock. */
const MAX_SLEEP_MS = 5 * 60 * 1000;
/** Whether the newest tick started a run, and why not. */
const FIRED = 'Fired';

type ScheduleStep = Step<AgentSchedule, undefined>;
type ScheduleStatus = NonNullable<AgentSchedule['status']>;

/** The controller of AgentSchedule. */
export function createAgentScheduleController(deps: AgentScheduleDependencies): ControllerPart {
  const { schedules, agents } = deps.caches;
  const steps: readonly ScheduleStep[] = [
    { name: 'key', run: (draft, _inputs, signal) => pinKey(deps, draft, signal) },
    { name: 'one-off', run: (draft, _inputs, signal) => disableWhenOver(deps, draft, signal) },
    { name: 'tick', run: (draft, _inputs, signal) => tick(deps, draft, signal) },
  ];
  return {
    name: 'agent-schedule',
    workers: 4,
    watch: (enqueue) =>
      all([
        schedules.onChange(({ key }) => enqueue(key)),
        agents.onChange(({ key, previous, current }) => {
          if (previous !== undefined && current !== undefined) return;
          for (const schedule of schedules.byIndex(BY_AGENT, key)) enqueue(objectKey(schedule.metadata));
        }),
      ]),
    async reconcile(key, signal): Promise<ReconcileResult | void> {
      const schedule = schedules.get(key);
      if (schedule === undefined || schedule.metadata.deletionTimestamp !== undefined) return;
      return await runSteps({
        object: schedule,
        inputs: undefined,
        steps,
        writeStatus: (draft, abort) => patchStatus(deps.api, { type: AgentSchedules, before: schedule, draft }, abort),
        signal,
      });
    },
  };
}

/** A recorded key is kept: with another one a tick would have another name. */
async function pinKey(deps: AgentScheduleDependencies, draft: AgentSchedule, signal: AbortSignal): Promise<StepResult> {
  const keyring = deps.keyring();
  if (keyring === undefined) return requeueAfter(KEYRING_RECHECK_MS);
  if (draft.spec.keyId === undefined) await patchSpec(deps, draft, { keyId: keyring.current }, signal);
  return CONTINUE;
}

/** A date that was handled never comes again. Under GitOps the spec stays as its source has it. */
async function disableWhenOver(
  deps: AgentScheduleDependencies,
  draft: AgentSchedule,
  signal: AbortSignal,
): Promise<StepResult> {
  if (draft.spec.enabled && isOver(draft) && !isGitOps(draft.metadata)) {
    await patchSpec(deps, draft, { enabled: false }, signal);
  }
  return CONTINUE;
}

async function patchSpec(
  deps: AgentScheduleDependencies,
  draft: AgentSchedule,
  spec: Partial<AgentSchedule['spec']>,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { resourceVersion: draft.metadata.resourceVersion }, spec };
  const written = await deps.api.patch(AgentSchedules, refOf(draft.metadata), body, { type: 'merge', signal });
  draft.metadata = written.metadata;
  draft.spec = { ...draft.spec, ...spec };
}

/** Fires what is due and records what happened, with a single write of the status. */
async function tick(deps: AgentScheduleDependencies, draft: AgentSchedule, signal: AbortSignal): Promise<StepResult> {
  const now = deps.clock.now();
  const plan = planSchedule(draft, now);
  if (plan.kind !== 'on') {
    draft.status = unarmed(draft.status);
    setReady(draft, whyNotReady(deps, draft, plan), deps.clock);
    return DONE;
  }
  const tried = plan.due === undefined ? undefined : await fireTick(fireDeps(deps), draft, plan.due, signal);
  const outcome = isLastTry(plan, now) ? givenUp(tried) : tried;
  if (outcome?.kind === 'changed') return requeueAfter(CHANGED_RECHECK_MS);
  draft.status = afterTick(deps, draft, plan, outcome);
  setReady(draft, whyNotReady(deps, draft, plan), deps.clock);
  if (outcome !== undefined) logOutcome(deps, draft, outcome);
  if (outcome?.kind === 'again') return requeueAfter(AGAIN_MS);
  return plan.next === undefined ? DONE : continueAndRequeueAfter(sleepUntil(plan.next, now));
}

/** Whether the next try would come after the starting deadline. */
function isLastTry({ due }: TickPlan, now: number): boolean {
  return due !== undefined && due + STARTING_DEADLINE_MS < now + AGAIN_MS;
}

/** The last obstacle to the tick is the reason why it is skipped. */
function givenUp(outcome: TickOutcome | undefined): TickOutcome | undefined {
  return outcome?.kind === 'again' ? { ...outcome, kind: 'skipped' } : outcome;
}

function fireDeps({
  api,
  clock,
  caches,
  keyring,
  backlogExceeded,
  reserve,
  metrics,
}: AgentScheduleDependencies): FireDependencies {
  const { agents, runs } = caches;
  const turnedAway: FireDependencies['turnedAway'] = (scope) => metrics.turnedAway(scope);
  return { api, clock, agents, runs, keyring, backlogExceeded, reserve, turnedAway };
}

function sleepUntil(next: number, now: number): number {
  return Math.min(Math.max(next - now, 1), MAX_SLEEP_MS);
}

/** A schedule that does not tick has no next run, and begins anew when it ticks again. */
function unarmed(status: ScheduleStatus | undefined): ScheduleStatus {
  const { armedFor: _for, armedAt: _at, nextRunAt: _next, ...kept } = status ?? {};
  return kept;
}

/** The status with the result of the tick. */
function afterTick(
  deps: AgentScheduleDependencies,
  draft: AgentSchedule,
  plan: TickPlan,
  outcome: TickOutcome | undefined,
): ScheduleStatus {
  const handled = handledTick(draft, plan, outcome);
  const status: ScheduleStatus = {
    ...unarmed(draft.status),
    ...(handled === undefined ? {} : { lastTick: iso(handled) }),
    ...(outcome?.kind === 'fired' && plan.due !== undefined
      ? { lastRunAt: iso(plan.due), lastRunId: outcome.runId }
      : {}),
    ...(plan.next === undefined ? {} : { nextRunAt: iso(plan.next) }),
  };
  const fired = firedCondition(draft, plan, outcome);
  const conditions =
    fired === undefined ? status.conditions : setCondition(status.conditions, fired, isoNow(deps.clock));
  const isLast = isOver({ ...draft, status });
  const armed = isLast ? {} : { armedFor: plan.armedFor, armedAt: iso(plan.armedAt) };
  return { ...status, conditions, ...armed };
}

/** The tick that is never to fire again; of a date that was missed, the date. */
function handledTick(draft: AgentSchedule, plan: TickPlan, outcome: TickOutcome | undefined): number | undefined {
  if (outcome?.kind === 'fired' || outcome?.kind === 'skipped') return plan.due;
  return outcome === undefined && draft.spec.runAt !== undefined ? plan.missed : undefined;
}

/** Undefined when nothing happened that would change it. */
function firedCondition(
  { metadata }: AgentSchedule,
  plan: TickPlan,
  outcome: TickOutcome | undefined,
): KnownCondition | undefined {
  const about = {
    type: FIRED,
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
  };
  const at = iso(plan.due ?? plan.missed ?? 0);
  switch (outcome?.kind) {
    case 'fired':
      return { ...about, status: 'True', reason: FIRED, message: `${at} started run ${outcome.runId}` };
    case 'skipped':
      return { ...about, status: 'False', reason: outcome.reason, message: `${at} was skipped: ${outcome.message}` };
    case 'again':
      return { ...about, status: 'False', reason: outcome.reason, message: `${at} has to wait: ${outcome.message}` };
    default: {
      if (plan.missed === undefined) return undefined;
      const message = `${at} was missed: a tick is caught up for 10 minutes only`;
      return { ...about, status: 'False', reason: 'Missed', message };
    }
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function whyNotReady(
  { caches, keyring }: AgentScheduleDependencies,
  { metadata, spec }: AgentSchedule,
  plan: SchedulePlan,
): NotReady | undefined {
  if (caches.agents.get(agentKey(metadata.namespace, spec.agent)) === undefined) {
    return { reason: 'AgentNotFound', message: `no Agent ${spec.agent} is in this namespace; create it` };
  }
  if (plan.kind === 'invalid') {
    return { reason: 'InvalidSchedule', message: `spec.${plan.problem.field} ${plan.problem.message}` };
  }
  if (keyring()?.keys.has(spec.keyId ?? '') === false) {
    const message = `the keyring has no key ${spec.keyId ?? ''}; put the key back, or remove spec.keyId to take the current one`;
    return { reason: 'KeyNotFound', message };
  }
  return undefined;
}

function logOutcome({ log }: AgentScheduleDependencies, { metadata }: AgentSchedule, outcome: TickOutcome): void {
  const { namespace, name: schedule } = metadata;
  if (outcome.kind === 'fired') log.info({ namespace, schedule, run: outcome.runId }, 'schedule fired');
  else if (outcome.kind !== 'changed')
    log.info({ namespace, schedule, reason: outcome.reason }, 'schedule did not fire');
}

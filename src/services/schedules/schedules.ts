/** Schedules as the tools show, write and run them. The controller fires their ticks. */
import { ANNOTATION_REQUESTED_BY } from '../../api/labels.js';
import { AgentSchedules } from '../../api/v1alpha1/agent-schedule.js';
import type { AgentSchedule } from '../../api/v1alpha1/agent-schedule.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { isNotFound } from '../../kube/errors.js';
import { parseRunAt } from '../../schedule/run-at.js';
import { nextTick, timingProblem } from '../../schedule/timing.js';
import type { Timing } from '../../schedule/timing.js';
import { createChild, deleteChild, newChild, newSlug, passBarrier, textsToCreate } from '../agents/agent-children.js';
import type { ChildDeps } from '../agents/agent-children.js';
import type { Caller } from '../keys/key-check.js';
import { acceptRun, refuseInactive } from '../runs/runs.js';
import type { StartDeps } from '../runs/runs.js';
import { findAgent } from '../scope.js';
import type { ScopeDeps } from '../scope.js';
import { UserError } from '../../api/user-error.js';
import { isoTime } from '../../api/time.js';
import { projectApiSchedule } from '../../projections/agent-schedule.js';
import type { ApiSchedule } from '../../projections/agent-schedule.js';
import type { ApiAgent } from '../../projections/agent.js';
import { kubeCall } from '../kube-call.js';
import { schedulesOf, findSchedule, slugNotFound } from '../agents/find-child.js';
import { refuseGitOps } from '../../api/gitops.js';

/** Longest instruction in bytes; a run takes twice as much. */
export const MAX_SCHEDULE_BODY_BYTES = 64 * 1024;

/** The schedules of an agent in get_agent. No request. */
export function listScheduleSummaries(deps: Pick<ScopeDeps, 'caches' | 'clock'>, agent: ApiAgent) {
  return schedulesOf(deps, agent).map((schedule) => {
    const { slug, name, cron, runAt, timezone, enabled, nextRunAt } = record(deps, schedule);
    return { slug, name, cron, runAt, timezone, enabled, nextRunAt };
  });
}

/** The result of list_schedules, by slug. No request. */
export async function listSchedules(deps: ScopeDeps, caller: Caller, id: string) {
  const agent = await findAgent(deps, caller, id);
  return { schedules: schedulesOf(deps, agent).map((schedule) => record(deps, schedule)) };
}

function record({ clock }: Pick<ScopeDeps, 'clock'>, schedule: ApiSchedule) {
  const { cron, runAt, timezone, lastRunAt } = schedule;
  const date = runAt === undefined ? undefined : parseRunAt(runAt, timezone);
  const next = nextRunOf(schedule, clock.now());
  return {
    slug: schedule.slug,
    name: schedule.displayName,
    description: schedule.description,
    body: schedule.body,
    cron: cron ?? null,
    runAt: date === undefined ? (runAt ?? null) : iso(date),
    timezone,
    enabled: schedule.enabled,
    lastRunAt: lastRunAt === undefined ? null : isoTime(lastRunAt),
    lastRunId: schedule.lastRunId ?? null,
    nextRunAt: next === undefined ? null : iso(next),
  };
}

/** Computed on read, so that it is right before the controller has seen a change. */
function nextRunOf(schedule: ApiSchedule, now: number): number | undefined {
  if (!schedule.enabled || timingProblem(schedule) !== undefined) return undefined;
  return nextTick(schedule, Math.max(now, Date.parse(schedule.lastTick ?? '') || 0));
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** Arguments of upsert_schedule after their check. */
export interface ScheduleInput {
  slug?: string | undefined;
  name?: string | undefined;
  description?: string | undefined;
  body?: string | undefined;
  cron?: string | undefined;
  runAt?: string | undefined;
  timezone?: string | undefined;
  enabled?: boolean | undefined;
}

/** Creates (no slug) or updates a schedule; at most one write. */
export async function upsertSchedule(deps: ChildDeps, caller: Caller, id: string, input: ScheduleInput) {
  if (input.body !== undefined && Buffer.byteLength(input.body) > MAX_SCHEDULE_BODY_BYTES) {
    throw new UserError(`argument "body" must have at most ${MAX_SCHEDULE_BODY_BYTES} bytes`);
  }
  if (input.cron !== undefined && input.runAt !== undefined) {
    throw new UserError('pass either cron (repeats) or runAt (once), not both');
  }
  if (input.slug === undefined) {
    const checked = toCreate(deps, input);
    return createSchedule(deps, caller, await findAgent(deps, caller, id), { ...input, ...checked });
  }
  refuseWrongTiming(input);
  return updateSchedule(deps, caller, await findAgent(deps, caller, id), { ...input, slug: input.slug });
}

/** Refuses a timing that is wrong for any schedule. Whether a date is in the past depends on its zone, and is checked later. */
function refuseWrongTiming({ cron, runAt, timezone = 'UTC' }: ScheduleInput): void {
  const problem = timingProblem(runAt === undefined ? { cron: cron ?? '* * * * *', timezone } : { runAt, timezone });
  if (problem !== undefined) throw new UserError(`argument "${problem.field}" ${problem.message}`);
}

/** What a new schedule must have; checked before the agent is looked up. */
function toCreate(deps: ChildDeps, input: ScheduleInput) {
  const texts = textsToCreate('schedule', ['name', 'body'], input);
  if (input.cron === undefined && input.runAt === undefined) {
    throw new UserError(
      'missing required argument: cron (five fields, repeats) or runAt (a date, once) is needed to create a schedule',
    );
  }
  const timing = storedTiming(deps, { cron: input.cron, runAt: input.runAt, timezone: input.timezone ?? 'UTC' });
  return { ...texts, timing };
}

async function createSchedule(
  deps: ChildDeps,
  caller: Caller,
  agent: ApiAgent,
  input: ScheduleInput & ReturnType<typeof toCreate>,
) {
  const { name, body, timing } = input;
  const slug = newSlug(deps, 'schedule', name);
  const schedule: AgentSchedule = {
    ...newChild(deps, AgentSchedules, caller, { agent, slug }),
    spec: {
      agent: agent.name,
      name,
      body,
      description: input.description ?? '',
      ...timing,
      enabled: input.enabled ?? true,
    },
  };
  const created = await createChild(deps, AgentSchedules, schedule, { kind: 'schedule', slug });
  return record(deps, projectApiSchedule(created));
}

/** The timing as it is stored, with a date in UTC; an error names the argument. A date in the past would never fire. */
function storedTiming({ clock }: Pick<ScopeDeps, 'clock'>, timing: Timing) {
  const problem = timingProblem(timing);
  if (problem !== undefined) throw new UserError(`argument "${problem.field}" ${problem.message}`);
  const { cron, runAt, timezone } = timing;
  const date = runAt === undefined ? undefined : parseRunAt(runAt, timezone);
  if (date !== undefined && date <= clock.now()) {
    throw new UserError(`argument "runAt" is in the past: it is ${iso(clock.now())} now; pass a later time`);
  }
  return {
    timezone,
    ...(cron === undefined ? {} : { cron: cron.trim() }),
    ...(date === undefined ? {} : { runAt: iso(date) }),
  };
}

async function updateSchedule(
  deps: ChildDeps,
  caller: Caller,
  agent: ApiAgent,
  input: ScheduleInput & { slug: string },
) {
  const known = await findSchedule(deps, agent, input.slug);
  if (input.name !== undefined && input.name !== known.displayName) {
    throw new UserError('cannot be renamed: delete and recreate the schedule');
  }
  refuseGitOps(known);
  const spec = changedFields(deps, known, input);
  if (Object.keys(spec).length === 0) return record(deps, known);
  // The UID makes it a 409 when the schedule was deleted and made again in between.
  const metadata = { uid: known.uid, annotations: { [ANNOTATION_REQUESTED_BY]: caller.keyPrefix } };
  const ref = { namespace: known.namespace, name: known.name };
  try {
    const patched = await kubeCall(deps, (signal) =>
      deps.api.patch(AgentSchedules, ref, { metadata, spec }, { type: 'merge', signal }),
    );
    await passBarrier(deps, AgentSchedules, patched);
    return record(deps, projectApiSchedule(patched));
  } catch (error) {
    if (isNotFound(error)) throw new UserError(slugNotFound('schedule', input.slug, schedulesOf(deps, agent)));
    throw error;
  }
}

/** Only what changes; null removes the other one of cron and runAt. */
function changedFields(deps: ChildDeps, known: ApiSchedule, input: ScheduleInput): Record<string, unknown> {
  const { body, description, enabled } = input;
  return {
    ...(body === undefined || body === known.body ? {} : { body }),
    ...(description === undefined || description === known.description ? {} : { description }),
    ...(enabled === undefined || enabled === known.enabled ? {} : { enabled }),
    ...changedTiming(deps, known, input),
  };
}

function changedTiming(deps: ChildDeps, known: ApiSchedule, input: ScheduleInput): Record<string, unknown> {
  const timezone = input.timezone ?? known.timezone;
  if (input.cron === undefined && input.runAt === undefined) {
    const isWoken = input.enabled === true && !known.enabled;
    if (timezone === known.timezone && !isWoken) return {};
    // A stored date is the same moment in any other zone.
    const stored = storedTiming(deps, { cron: known.cron, runAt: knownDate(known), timezone });
    return timezone === known.timezone ? {} : stored;
  }
  const timing = storedTiming(deps, { cron: input.cron, runAt: input.runAt, timezone });
  const wanted = { cron: timing.cron ?? null, runAt: timing.runAt ?? null, timezone };
  const before = { cron: known.cron ?? null, runAt: knownDate(known) ?? null, timezone: known.timezone };
  return Object.fromEntries(
    Object.entries(wanted).filter(([field, value]) => value !== before[field as keyof typeof before]),
  );
}

function knownDate({ runAt, timezone }: ApiSchedule): string | undefined {
  const date = runAt === undefined ? undefined : parseRunAt(runAt, timezone);
  return date === undefined ? runAt : iso(date);
}

/** The result of run_schedule_now: one write. Scheduled ticks are not affected. */
export async function runScheduleNow(deps: ChildDeps & StartDeps, caller: Caller, id: string, slug: string) {
  const agent = await findAgent(deps, caller, id);
  const schedule = await findSchedule(deps, agent, slug);
  refuseInactive(agent);
  const started = await acceptRun(deps, {
    agent: { box: agent.box, agent: agent.name },
    agentUid: agent.uid,
    message: schedule.body,
    trigger: { origin: 'schedule', name: schedule.slug, uid: schedule.uid },
    sessionTitle: `schedule: ${schedule.slug}`,
    actor: caller.keyPrefix,
  });
  await deps.barrier.passed({ kind: AgentRuns.kind, resourceVersion: started.resourceVersion });
  return { runId: started.runId, sessionId: started.sessionId };
}

/** Deletes a schedule; its runs stay. One write. */
export async function deleteSchedule(deps: ChildDeps, caller: Caller, id: string, slug: string) {
  const agent = await findAgent(deps, caller, id);
  const schedule = await findSchedule(deps, agent, slug);
  refuseGitOps(schedule);
  await deleteChild(deps, AgentSchedules, schedule);
  return { deleted: schedule.slug };
}

/**
 * Keeps a deleted run of a tick until its schedule has recorded the tick. Only the name of the run prevents the tick from
 * firing again when a controller died right after the create, before it could record anything.
 */
import { acceptedAt, childName } from '../../api/names.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { AgentSchedule } from '../../api/v1alpha1/agent-schedule.js';
import type { Cache } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import { STARTING_DEADLINE_MS } from '../../schedule/timing.js';
import { agentKey } from '../../projections/indexes.js';

type TickRun = Pick<AgentRun, 'metadata' | 'spec'>;

/** Says for how many milliseconds, at most, the run must stay: 0 when it may go. After the deadline no tick is fired. */
export type TickGate = (run: TickRun) => number;

export function createTickGate(schedules: Pick<Cache<AgentSchedule>, 'get'>, clock: Clock): TickGate {
  return (run) => {
    const { agent, actor, trigger } = run.spec;
    if (actor !== 'schedule' || trigger?.name === undefined) return 0;
    const schedule = schedules.get(agentKey(run.metadata.namespace, childName(agent, trigger.name)));
    if (schedule === undefined || schedule.metadata.uid !== trigger.uid || isNoted(schedule, run)) return 0;
    return Math.max(0, Date.parse(acceptedAt(run)) + STARTING_DEADLINE_MS - clock.now());
  };
}

function isNoted({ status }: AgentSchedule, run: TickRun): boolean {
  if (status?.lastRunId === run.metadata.name) return true;
  return Date.parse(status?.lastTick ?? '') >= Date.parse(acceptedAt(run));
}

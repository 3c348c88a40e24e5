/**
 * Gates: why none of the runs of an agent or Box may start, whatever the limits say. Read from the caches whenever the queue
 * makes reservations.
 */
import { isTrue } from '../../../api/conditions.js';
import { installMarkOf } from '../../../api/installing.js';
import { objectKey } from '../../../api/meta.js';
import { boxNamespace, boxOfNamespace } from '../../../api/names.js';
import type { Box } from '../../../api/v1alpha1/box.js';
import type { ControllerAgent } from '../../../projections/agent.js';
import { ANYWHERE, UNSCHEDULABLE, WITHOUT_ROOM } from '../../../projections/pod.js';
import { parseQuantity } from '../../common/quantity.js';
import { READY } from '../../common/ready.js';
import { mustWait, volumeOf } from '../../workspace-volume/plan.js';
import type { RunCaches, RunDependencies } from '../dependencies.js';
import type { Gate } from './limits-and-fairness.js';
import type { QueueFacts } from './run-queue.js';

/** Answers the queue's questions from the caches. */
export function queueFacts({ caches, budgets }: Pick<RunDependencies, 'caches' | 'budgets'>): QueueFacts {
  return {
    box(name) {
      const box = caches.boxes.get(name);
      if (box === undefined) return undefined;
      const { maxRunning, maxRunningPerAgent, weight = 1 } = box.spec;
      return { gate: boxGate(caches, box), maxRunning, maxRunningPerAgent, weight };
    },
    agentGate: (box, name) => {
      const key = `${boxNamespace(box)}/${name}`;
      const agent = caches.agents.get(key);
      return agentGate(agent) ?? volumeGate(caches, box, agent);
    },
    hasNoBudget: (box, agent) => budgets?.exhausted.of(box, agent) !== undefined,
    hasManyBoxes: () => caches.boxes.size > 1,
    boxesInNeed: (name) => boxesInNeed(caches, name),
  };
}

/**
 * A pod that asks for more than those of this Box says nothing about the room for them: a Box that asks for what no node has
 * holds up nobody.
 */
function boxesInNeed(caches: RunCaches, name: string): string[] {
  const pods = caches.pods.byIndex(WITHOUT_ROOM, ANYWHERE);
  const box = pods.length === 0 ? undefined : caches.boxes.get(name);
  if (box === undefined) return [];
  const names = new Set(pods.map(({ namespace }) => boxOfNamespace(namespace)));
  return [...names].filter((other) => {
    const inNeed = other === undefined || other === name ? undefined : caches.boxes.get(other);
    return inNeed !== undefined && asksNoMore(inNeed.spec, box.spec);
  }) as string[];
}

/** Whether pods of Box `a` fit wherever pods of Box `b` do. */
function asksNoMore(a: Box['spec'], b: Box['spec']): boolean {
  if (a.runtimeClassName !== b.runtimeClassName) return false;
  const amounts = ['memory', 'runnerMemory', 'cpu', 'ephemeralStorage'] as const;
  return amounts.every((what) => {
    const [asked, other] = [parseQuantity(a.resources[what]), parseQuantity(b.resources[what])];
    return asked !== undefined && other !== undefined && asked <= other;
  });
}

/** A volume that is missing, or out of reach of every node with room, holds back the runs of its agent and no others. */
function volumeGate(caches: RunCaches, boxName: string, agent: ControllerAgent | undefined): Gate | undefined {
  const box = caches.boxes.get(boxName);
  if (agent === undefined || box === undefined) return undefined;
  if (mustWait(volumeOf(caches, agent, box))) return 'WorkspaceNotReady';
  const stuck = caches.pods.byIndex(UNSCHEDULABLE, objectKey(agent.metadata)).length > 0;
  return stuck ? 'NoCapacity' : undefined;
}

function boxGate(caches: RunCaches, box: Box): Gate | undefined {
  if (box.metadata.deletionTimestamp !== undefined || !isTrue(box.status?.conditions, READY)) return 'BoxNotReady';
  if (box.spec.paused === true) return 'BoxPaused';
  if (caches.workspaces.get(box.spec.workspace)?.spec.paused === true) return 'WorkspacePaused';
  const full = caches.pods.byIndex(UNSCHEDULABLE, boxNamespace(box.metadata.name)).length > 0;
  return full ? 'NoCapacity' : undefined;
}

/** None of the runs of an agent that is gone is admitted; they are ended when they are reconciled. */
export function agentGate(agent: ControllerAgent | undefined): Gate | undefined {
  if (agent !== undefined && installMarkOf(agent.metadata) !== undefined) return 'AgentInstalling';
  if (agent?.status?.active !== true || agent.metadata.deletionTimestamp !== undefined) return 'AgentInactive';
  return agent.spec.paused ? 'AgentPaused' : undefined;
}

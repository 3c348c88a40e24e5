/** AgentRun: what makes the controller look at a run again, and when free places are handed out. */
import { boxNamespace, boxOfNamespace } from '../../api/names.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { isTrue } from '../../api/conditions.js';
import { isTerminal } from '../../run/status.js';
import { objectKey } from '../../api/meta.js';
import type { CacheChange } from '../../kube/types.js';
import { all } from '../common/controller-part.js';
import type { ControllerPart } from '../common/controller-part.js';
import type { BoxCounts } from '../box/dependencies.js';
import type { Mark } from '../budget/exhausted-budgets.js';
import { READY } from '../common/ready.js';
import type { RunCaches, RunDependencies } from './dependencies.js';
import { RunReconciler } from './reconcile.js';
import { RunQueue } from './admission/run-queue.js';
import { agentGate, queueFacts } from './admission/gates.js';
import { queuedRunOf } from './admission/queued-run.js';
import { watchOldestWaiting } from './admission/oldest-waiting.js';
import { LIVE_BY_AGENT, LIVE_BY_NAMESPACE } from '../../projections/agent-run.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import type { ControllerAgent } from '../../projections/agent.js';
import { BY_WORKSPACE, agentKey } from '../../projections/indexes.js';
import { BY_NODE } from '../../projections/pod.js';

export interface RunControllers {
  /** One key per run. */
  runs: ControllerPart;
  /** One key for the installation: hands out places as they become free. */
  admission: ControllerPart;
  /** For the Box controller, which publishes them. */
  counts: BoxCounts;
}

const WHOLE_INSTALLATION = 'installation';

export function createRunControllers(deps: RunDependencies): RunControllers {
  const queue = new RunQueue({ maxRunning: deps.maxRunning, facts: queueFacts(deps), clock: deps.clock });
  let wakeRun: (key: string) => void = () => undefined;
  const reportOldest = watchOldestWaiting(deps, queue);
  const reconciler = new RunReconciler(deps, queue, (key) => wakeRun(key));
  return {
    counts: boxCounts(queue),
    runs: {
      name: 'agent-run',
      workers: 32,
      watch(enqueue) {
        wakeRun = enqueue;
        return all([reconciler.watch(), watchRuns(deps, queue, enqueue), countEnds(deps)]);
      },
      reconcile: (key, signal) => reconciler.reconcile(key, signal),
    },
    admission: {
      name: 'run-admission',
      workers: 1,
      watch: (enqueue) => watchPlaces(deps, queue, () => enqueue(WHOLE_INSTALLATION)),
      reconcile() {
        deps.budgets?.exhausted.review();
        for (const key of queue.admitNext()) wakeRun(key);
        const budget = deps.budgets?.exhausted.nextFreeMs() ?? Infinity;
        const next = Math.min(queue.nextChangeMs() ?? Infinity, reportOldest(), budget);
        return Promise.resolve(next === Infinity ? {} : { requeueAfterMs: next });
      },
    },
  };
}

/** The queue follows the caches on every replica; keys are worked on by the leader alone. */
function watchRuns(
  { caches, archive, budgets }: RunDependencies,
  queue: RunQueue,
  enqueue: (key: string) => void,
): () => void {
  const look = (key: string) => {
    queue.update(key, queuedRunOf(caches, key));
    enqueue(key);
  };
  return all([
    caches.runs.onChange(({ key }) => look(key)),
    caches.nodes.onChange((change) => {
      if (change.previous?.ready === change.current?.ready) return;
      for (const pod of caches.pods.byIndex(BY_NODE, change.key)) enqueue(`${pod.namespace}/${pod.run}`);
    }),
    caches.namespaces.onChange(({ key, previous, current }) => {
      if (current?.metadata.deletionTimestamp === previous?.metadata.deletionTimestamp) return;
      enqueueAll(caches.runs.byIndex(LIVE_BY_NAMESPACE, key), enqueue);
    }),
    caches.jobs.onChange(({ key }) => look(key)),
    caches.pods.onChange(({ previous, current }) => {
      const pod = current ?? previous;
      if (pod !== undefined && pod.run !== '') look(`${pod.namespace}/${pod.run}`);
    }),
    // Waiting runs say why they wait: look again when their agent, Box or Workspace starts or stops accepting work, or goes.
    caches.agents.onChange((change) => {
      if (!agentChanged(change)) return;
      for (const run of caches.runs.byIndex(LIVE_BY_AGENT, change.key)) enqueue(objectKey(run.metadata));
    }),
    caches.boxes.onChange((change) => {
      if (pauseChanged(change)) enqueueAll(liveRunsOf(caches, change.key), enqueue);
    }),
    caches.volumeClaims.onChange(({ previous, current }) => {
      const claim = current ?? previous;
      if (claim === undefined) return;
      enqueueAll(caches.runs.byIndex(LIVE_BY_AGENT, agentKey(claim.namespace, claim.agent)), enqueue);
    }),
    caches.workspaces.onChange((change) => {
      if (!pauseChanged(change)) return;
      for (const box of caches.boxes.byIndex(BY_WORKSPACE, change.key)) {
        enqueueAll(liveRunsOf(caches, box.metadata.name), enqueue);
      }
    }),
    archive?.onStored(enqueue) ?? (() => undefined),
    budgets?.exhausted.onExhausted((mark) => enqueueAll(runsOfBudget(caches, mark), enqueue)) ?? (() => undefined),
  ]);
}

/** Counts outcomes in the cache, where the writes of every process are seen: most outcomes are the gateway's. */
function countEnds({ caches, metrics }: RunDependencies): () => void {
  return caches.runs.onChange(({ previous, current }) => {
    if (previous === undefined || current === undefined) return;
    if (!isTerminal(previous) && isTerminal(current)) metrics.ended(current.status?.reason);
  });
}

function liveRunsOf(caches: RunCaches, box: string): readonly ControllerRun[] {
  return caches.runs.byIndex(LIVE_BY_NAMESPACE, boxNamespace(box));
}

/** Live runs that an exhausted budget holds back, or is about to. */
function runsOfBudget(caches: RunCaches, { kind, name, where: { namespace, agent } }: Mark): readonly ControllerRun[] {
  if (kind === 'Agent') return caches.runs.byIndex(LIVE_BY_AGENT, agentKey(namespace, agent));
  if (kind === 'Box') return liveRunsOf(caches, name);
  return caches.boxes.byIndex(BY_WORKSPACE, name).flatMap((box) => liveRunsOf(caches, box.metadata.name));
}

function enqueueAll(runs: readonly ControllerRun[], enqueue: (key: string) => void): void {
  for (const run of runs) enqueue(objectKey(run.metadata));
}

/** Everything that may free a place, or allow runs to start that could not before. */
function watchPlaces({ caches, budgets }: RunDependencies, queue: RunQueue, poke: () => void): () => void {
  return all([
    queue.onChange(poke),
    budgets?.exhausted.onFreed(poke) ?? (() => undefined),
    caches.agents.onChange((change) => {
      if (agentChanged(change)) poke();
    }),
    caches.boxes.onChange((change) => {
      if (boxChanged(change)) poke();
    }),
    caches.workspaces.onChange((change) => {
      if (pauseChanged(change)) poke();
    }),
    caches.volumeClaims.onChange(poke),
    caches.storageClasses.onChange(poke),
    caches.pods.onChange(({ previous, current }) => {
      if (previous?.unschedulable !== undefined && current?.unschedulable === undefined) poke();
    }),
  ]);
}

function agentChanged({ previous, current }: CacheChange<ControllerAgent>): boolean {
  if (previous === undefined || current === undefined) return true;
  return agentGate(previous) !== agentGate(current) || previous.metadata.uid !== current.metadata.uid;
}

function boxChanged({ previous, current }: CacheChange<Box>): boolean {
  if (previous === undefined || current === undefined) return true;
  return (
    isTrue(previous.status?.conditions, READY) !== isTrue(current.status?.conditions, READY) ||
    previous.spec.maxRunning !== current.spec.maxRunning ||
    previous.spec.maxRunningPerAgent !== current.spec.maxRunningPerAgent ||
    previous.spec.weight !== current.spec.weight ||
    previous.spec.workspaceVolume.mode !== current.spec.workspaceVolume.mode ||
    previous.spec.workspaceVolume.storageClassName !== current.spec.workspaceVolume.storageClassName ||
    pauseChanged({ key: current.metadata.name, previous, current })
  );
}

function pauseChanged({ previous, current }: CacheChange<{ spec: { paused?: boolean | undefined } }>): boolean {
  return (previous?.spec.paused === true) !== (current?.spec.paused === true);
}

function boxCounts(queue: RunQueue): BoxCounts {
  const of = (namespace: string) => queue.counts(boxOfNamespace(namespace) ?? '');
  return {
    running: (namespace) => of(namespace).running,
    queued: (namespace) => of(namespace).queued,
    onChange: (listener) => queue.onChange((box) => listener(boxNamespace(box))),
  };
}

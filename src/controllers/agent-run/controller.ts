/** AgentRun: what wakes a run, and when free places are given out. */
import { boxNamespace, boxOfNamespace } from '../../api/names.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { isTrue } from '../../api/conditions.js';
import { objectKey } from '../../api/meta.js';
import type { CacheChange } from '../../kube/types.js';
import { all } from '../shared/controller-part.js';
import type { ControllerPart } from '../shared/controller-part.js';
import type { BoxCounts } from '../box/dependencies.js';
import type { AgentView } from '../shared/informers.js';
import { READY } from '../shared/ready.js';
import type { RunDependencies } from './dependencies.js';
import { RunReconciler } from './reconcile.js';
import { RunQueue } from './run-queue.js';
import { agentGate, queueFacts, queuedRunOf } from './run-state.js';
import { LIVE_BY_AGENT } from './views.js';

export interface RunControllers {
  /** One key per run. */
  runs: ControllerPart;
  /** One key for the installation: gives out places when one becomes free. */
  admission: ControllerPart;
  /** For the Box controller, which shows them. */
  counts: BoxCounts;
}

const WHOLE_INSTALLATION = 'installation';

export function createRunControllers(deps: RunDependencies): RunControllers {
  const { caches } = deps;
  const queue = new RunQueue({ maxRunning: deps.maxRunning, facts: queueFacts(caches), clock: deps.clock });
  let wakeRun: (key: string) => void = () => undefined;
  const reconciler = new RunReconciler(deps, queue, (key) => wakeRun(key));
  return {
    counts: boxCounts(queue),
    runs: {
      name: 'agent-run',
      workers: 32,
      watch(enqueue) {
        wakeRun = enqueue;
        return watchRuns(deps, queue, enqueue);
      },
      reconcile: (key, signal) => reconciler.reconcile(key, signal),
    },
    admission: {
      name: 'run-admission',
      workers: 1,
      watch: (enqueue) => watchPlaces(deps, queue, () => enqueue(WHOLE_INSTALLATION)),
      reconcile() {
        for (const key of queue.admitNext()) wakeRun(key);
        const next = queue.nextChangeMs();
        return Promise.resolve(next === undefined ? {} : { requeueAfterMs: next });
      },
    },
  };
}

/** The queue follows the caches on every replica; only the leader's engine works on the keys. */
function watchRuns({ caches, archive }: RunDependencies, queue: RunQueue, enqueue: (key: string) => void): () => void {
  const look = (key: string) => {
    queue.update(key, queuedRunOf(caches, key));
    enqueue(key);
  };
  return all([
    caches.runs.onChange(({ key }) => look(key)),
    caches.jobs.onChange(({ key }) => look(key)),
    caches.pods.onChange(({ previous, current }) => {
      const pod = current ?? previous;
      if (pod !== undefined && pod.run !== '') look(`${pod.namespace}/${pod.run}`);
    }),
    // Runs that wait say why: they look again when their agent starts or stops to accept work, or goes.
    caches.agents.onChange((change) => {
      if (!agentChanged(change)) return;
      for (const run of caches.runs.byIndex(LIVE_BY_AGENT, change.key)) enqueue(objectKey(run.metadata));
    }),
    archive?.onStored(enqueue) ?? (() => undefined),
  ]);
}

/** Whatever may free a place, or let runs in that could not start before. */
function watchPlaces({ caches }: RunDependencies, queue: RunQueue, poke: () => void): () => void {
  return all([
    queue.onChange(poke),
    caches.agents.onChange((change) => {
      if (agentChanged(change)) poke();
    }),
    caches.boxes.onChange((change) => {
      if (boxChanged(change)) poke();
    }),
    caches.pods.onChange(({ previous, current }) => {
      if (previous?.unschedulable !== undefined && current?.unschedulable === undefined) poke();
    }),
  ]);
}

function agentChanged({ previous, current }: CacheChange<AgentView>): boolean {
  if (previous === undefined || current === undefined) return true;
  return agentGate(previous) !== agentGate(current) || previous.metadata.uid !== current.metadata.uid;
}

function boxChanged({ previous, current }: CacheChange<Box>): boolean {
  if (previous === undefined || current === undefined) return true;
  return (
    isTrue(previous.status?.conditions, READY) !== isTrue(current.status?.conditions, READY) ||
    previous.spec.maxRunning !== current.spec.maxRunning ||
    previous.spec.maxRunningPerAgent !== current.spec.maxRunningPerAgent
  );
}

function boxCounts(queue: RunQueue): BoxCounts {
  const of = (namespace: string) => queue.counts(boxOfNamespace(namespace) ?? '');
  return {
    running: (namespace) => of(namespace).running,
    queued: (namespace) => of(namespace).queued,
    onChange: (listener) => queue.onChange((box) => listener(boxNamespace(box))),
  };
}

/**
 * Kubernetes Events, told by the leader alone: what changed is seen in the caches, whoever wrote it, so that no reconcile
 * knows of events or waits for one.
 */
import type { ObjectMeta } from '../../api/meta.js';
import { isTerminal } from '../../run/status.js';
import type { Cache, CacheChange } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import type { EventSink } from '../../runtime/event-recorder.js';
import type { ControllerJob } from '../../projections/job.js';
import { all } from '../common/controller-part.js';
import type { ControllerPart } from '../common/controller-part.js';
import { conditionEvents } from './condition-events.js';
import type { ConditionedFacts } from './condition-events.js';
import { LONG_WAIT_MS, endEvents, isOldWait, returnedEvent, waitingOf, warningEvents } from './run-events.js';
import type { RunFacts } from './run-events.js';

export interface EventDependencies {
  caches: {
    runs: Cache<RunFacts>;
    jobs: Cache<Pick<ControllerJob, 'suspended'>>;
    agents: Cache<ConditionedFacts>;
    triggers: Cache<ConditionedFacts>;
    boxes: Cache<ConditionedFacts>;
    workspaces: Cache<ConditionedFacts>;
    apiKeys: Cache<ConditionedFacts>;
  };
  clock: Clock;
  events: EventSink;
}

export interface EventController {
  /** One key per run that waits. */
  part: ControllerPart;
  /** A run lost its Job before anything was executed, and waits again: its status alone does not tell that. */
  returned(run: RunFacts, why: { reason: string; message: string }): void;
}

export function createEventController({ caches, clock, events }: EventDependencies): EventController {
  const told = new ToldReasons();
  return {
    part: {
      name: 'events',
      workers: 1,
      watch: (enqueue) =>
        all([
          caches.runs.onChange((change) => {
            const { previous, current } = sameObject(change);
            if (previous === undefined || current === undefined || isTerminal(current)) told.forget(change.previous);
            if (current === undefined) return;
            const seen = { previous, current };
            const now = clock.now();
            for (const event of [...warningEvents(seen, now), ...endEvents(seen, now)]) events.record(event);
            const waiting = waitingOf(current, clock.now());
            if (waiting === undefined) return;
            if (previous === undefined && isOldWait(waiting)) told.add(current, waiting.reason);
            enqueue(change.key);
          }),
          ...conditioned(caches).map(([kind, cache]) =>
            cache.onChange((change) => {
              const { previous, current } = sameObject(change);
              if (current === undefined) return;
              for (const event of conditionEvents({ kind, previous, current }, clock.now())) events.record(event);
            }),
          ),
        ]),
      reconcile(key) {
        const run = caches.runs.get(key);
        const waiting = run === undefined ? undefined : waitingOf(run, clock.now());
        if (run === undefined || waiting === undefined) return Promise.resolve();
        if (waiting.forMs < LONG_WAIT_MS) return Promise.resolve({ requeueAfterMs: LONG_WAIT_MS - waiting.forMs });
        // Its pod is starting; the status says so later, if ever.
        if (caches.jobs.get(key)?.suspended === false) return Promise.resolve();
        if (told.add(run, waiting.reason)) events.record(waiting.event);
        return Promise.resolve();
      },
    },
    returned(run, why) {
      told.add(run, why.reason);
      events.record(returnedEvent(run, why, clock.now()));
    },
  };
}

function conditioned(caches: EventDependencies['caches']): [kind: string, cache: Cache<ConditionedFacts>][] {
  return [
    ['Agent', caches.agents],
    ['AgentTrigger', caches.triggers],
    ['Box', caches.boxes],
    ['Workspace', caches.workspaces],
    ['APIKey', caches.apiKeys],
  ];
}

/** The change without a previous object that only had the same name. */
function sameObject<V extends { metadata: ObjectMeta }>({ previous, current }: CacheChange<V>) {
  const isSame = previous?.metadata.uid === current?.metadata.uid;
  return { current, previous: isSame ? previous : undefined };
}

/** For what each run was told to wait, so that it is told once for each reason. */
class ToldReasons {
  readonly #reasons = new Map<string, Set<string>>();

  /** False when it was told before. */
  add({ metadata: { uid = '' } }: RunFacts, reason: string): boolean {
    const reasons = this.#reasons.get(uid) ?? new Set();
    if (reasons.has(reason)) return false;
    this.#reasons.set(uid, reasons.add(reason));
    return true;
  }

  forget(run: RunFacts | undefined): void {
    this.#reasons.delete(run?.metadata.uid ?? '');
  }
}

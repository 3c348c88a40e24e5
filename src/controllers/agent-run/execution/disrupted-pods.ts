/**
 * Evicted pods that are gone: such a pod may disappear before anybody has looked at it, and only its condition
 * DisruptionTarget, set before the deletion, tells an eviction from a deletion by hand. In memory only: after a change of
 * leader such a pod counts as deleted.
 */
import type { CacheChange } from '../../../kube/types.js';
import type { Disruption } from '../../../run/disruption.js';
import type { ControllerPod } from '../../../projections/pod.js';

export type DisruptedPod = Disruption & Pick<ControllerPod, 'uid'>;

export class DisruptedPods {
  /** By key of the run; the latest. */
  readonly #gone = new Map<string, DisruptedPod>();

  /** To be told of every change of a pod. */
  noted({ previous, current }: Pick<CacheChange<ControllerPod>, 'previous' | 'current'>): void {
    if (current !== undefined || previous?.disruption === undefined) return;
    const { namespace, run, uid, reason, disruption, message } = previous;
    this.#gone.set(`${namespace}/${run}`, { uid, reason, disruption, message });
  }

  /** The pod that the run lost in this way; for a claimed run only the pod that claimed it. */
  of(runKey: string, claimedBy: string | undefined): DisruptedPod | undefined {
    const pod = this.#gone.get(runKey);
    return claimedBy === undefined || pod?.uid === claimedBy ? pod : undefined;
  }

  /** The run has ended or is gone. */
  forget(runKey: string): void {
    this.#gone.delete(runKey);
  }
}

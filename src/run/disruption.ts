/**
 * Why Kubernetes moved a pod away: classified once, for the end that its runner reports and for the end that the controller
 * finds. The condition DisruptionTarget of a pod (Kubernetes documentation, "Pod disruption conditions") is set before the
 * pod is deleted; its reason says who moves it.
 */
import type { Pod } from '../kube/core-types.js';
import { outcomeOf, sentence } from './outcome.js';
import type { RunOutcome } from './outcome.js';

/** What a pod says about being moved away; nothing when nobody moved it. */
export interface Disruption {
  /** Reason of the condition DisruptionTarget. */
  disruption: string | undefined;
  /** Reason and message of the pod itself, as the kubelet and the garbage collector of pods set them. */
  reason: string | undefined;
  message: string | undefined;
}

const WHAT_HAPPENED: Readonly<Record<string, string>> = {
  EvictionByEvictionAPI: 'The pod was evicted, as when its node is drained.',
  PreemptionByScheduler: 'The scheduler gave the place of the pod to one of a higher priority.',
  TerminationByKubelet: 'The node ended the pod: it is short of room, or shuts down.',
  DeletionByTaintManager: 'The pod was evicted: its node got a taint that it does not tolerate.',
};

/** Of a pod whose runner fell silent these mean that the node went away, not that somebody moved the pod. */
const NODE_GONE: ReadonlySet<string> = new Set(['DeletionByPodGC', 'DeletionByTaintManager']);

/** Reads it from a pod. */
export function disruptionOf({ status }: Pick<Pod, 'status'>): Disruption {
  const condition = status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
  return {
    disruption: condition?.status === 'True' ? (condition.reason ?? '') : undefined,
    reason: status?.reason,
    message: status?.message,
  };
}

/**
 * How the run of such a pod ended; undefined when nothing moved the pod away. A runner that told us its end had a node until
 * then.
 */
export function outcomeOfDisruption(
  pod: Disruption | undefined,
  runner: 'told us' | 'is silent',
): RunOutcome | undefined {
  if (pod === undefined) return undefined;
  const { reason, disruption, message } = pod;
  const isNodeGone = reason === 'NodeLost' || (disruption !== undefined && NODE_GONE.has(disruption));
  if (isNodeGone && runner === 'is silent') return outcomeOf('NodeLost');
  if (reason !== 'Evicted' && disruption === undefined) return undefined;
  return outcomeOf(
    'Evicted',
    message === undefined ? evictionBy(disruption) : `The pod was evicted: ${sentence(message)}`,
  );
}

/** One sentence; undefined for a reason that Kubernetes has not told us of. */
function evictionBy(reason: string | undefined): string | undefined {
  return reason !== undefined && Object.hasOwn(WHAT_HAPPENED, reason) ? WHAT_HAPPENED[reason] : undefined;
}

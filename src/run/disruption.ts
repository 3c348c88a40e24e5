/**
 * What the condition DisruptionTarget of a pod means to a person (Kubernetes documentation, "Pod disruption conditions"): its
 * reason says who moved the pod away.
 */
const WHAT_HAPPENED: Readonly<Record<string, string>> = {
  EvictionByEvictionAPI: 'The pod was evicted, as when its node is drained.',
  PreemptionByScheduler: 'The scheduler gave the place of the pod to one of a higher priority.',
  TerminationByKubelet: 'The node ended the pod: it is short of room, or shuts down.',
  DeletionByTaintManager: 'The pod was evicted: its node got a taint that it does not tolerate.',
};

/** One sentence; undefined for a reason that Kubernetes has not told us of. */
export function evictionBy(reason: string): string | undefined {
  return Object.hasOwn(WHAT_HAPPENED, reason) ? WHAT_HAPPENED[reason] : undefined;
}

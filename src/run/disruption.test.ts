import type { Pod } from '../kube/core-types.js';
import { disruptionOf, outcomeOfDisruption } from './disruption.js';

type Status = NonNullable<Pod['status']>;
const target = (reason: string, status: 'True' | 'False' = 'True'): Status => ({
  conditions: [{ type: 'DisruptionTarget', status, reason }],
});

test.each<[string, Status | undefined, string | undefined, string | undefined]>([
  ['nobody moved', {}, undefined, undefined],
  ['has no status', undefined, undefined, undefined],
  ['was to be moved and stays', target('EvictionByEvictionAPI', 'False'), undefined, undefined],
  ['was evicted', target('EvictionByEvictionAPI'), 'Evicted', 'Evicted'],
  ['made room', target('PreemptionByScheduler'), 'Evicted', 'Evicted'],
  ['the node ended', target('TerminationByKubelet'), 'Evicted', 'Evicted'],
  ['was moved for a reason of later versions', target('SomethingNew'), 'Evicted', 'Evicted'],
  ['did not tolerate a taint', target('DeletionByTaintManager'), 'NodeLost', 'Evicted'],
  ['was collected with its node', target('DeletionByPodGC'), 'NodeLost', 'Evicted'],
  ['the kubelet evicted', { reason: 'Evicted', message: 'The node was low on memory' }, 'Evicted', 'Evicted'],
  ['lost its node', { reason: 'NodeLost' }, 'NodeLost', undefined],
])('a pod that %s: its run, silent or not', (_what, status, silent, told) => {
  const pod = disruptionOf(status === undefined ? {} : { status });
  expect(outcomeOfDisruption(pod, 'is silent')?.reason).toBe(silent);
  expect(outcomeOfDisruption(pod, 'told us')?.reason).toBe(told);
});

test.each<[Status, string]>([
  [target('PreemptionByScheduler'), 'The scheduler gave the place of the pod to one of a higher priority.'],
  [{ reason: 'Evicted', message: 'low on  memory' }, 'The pod was evicted: low on memory.'],
])('the message says who moved the pod and what to do', (status, what) => {
  expect(outcomeOfDisruption(disruptionOf({ status }), 'is silent')?.message).toBe(
    `${what} Continue its session, or start a new run.`,
  );
});

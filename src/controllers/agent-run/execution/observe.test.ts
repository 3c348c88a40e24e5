import { claimOf, makeBox, makeJob, makePod, makeRun, scheduled } from '../../../../test/builders/run-objects.js';
import type { RunParts } from '../../../../test/builders/run-objects.js';
import type { Job, Pod } from '../../../kube/core-types.js';
import type { DisruptedPod } from './disrupted-pods.js';
import { nextDeadline, observe } from './observe.js';
import type { Decision, Observation } from './observe.js';
import { projectControllerJob } from '../../../projections/job.js';
import type { NodeProjection } from '../../../projections/node.js';
import { projectControllerPod } from '../../../projections/pod.js';

const START = Date.parse('2026-01-01T00:00:00.000Z');

interface Case {
  run?: RunParts;
  /** null = the Job is gone. */
  job?: Job['status'] | null;
  pod?: Pod;
  /** Seconds after 00:00:00, the time at which the Job was created. */
  at: number;
  /** The node of the pod; absent = ready, null = not in the cache. */
  node?: NodeProjection | null;
  jobSpec?: Partial<Job['spec']>;
  podRefusal?: string;
  disrupted?: DisruptedPod;
  terminating?: boolean;
  nodeGoneFor?: number;
  endedFor?: number;
  cancellingFor?: number;
}

const NODE: NodeProjection = { name: 'node-1', ready: true, since: START, message: '', userNamespaces: false };

function decide(given: Case): Decision {
  const { run: parts = {}, job = {}, pod, at, endedFor = 0, cancellingFor = 0, nodeGoneFor = 0 } = given;
  const run = makeRun('ada-1', parts);
  const seen: Observation = {
    run,
    box: makeBox(),
    job: job === null ? undefined : projectControllerJob(makeJob(run, job, given.jobSpec)),
    pod: pod === undefined ? undefined : projectControllerPod(pod),
    disrupted: given.disrupted,
    node: given.node === null ? undefined : (given.node ?? NODE),
    unboundClaim: undefined,
    podRefusal: given.podRefusal,
    terminating: given.terminating ?? false,
    elapsed: { ended: endedFor * 1000, cancelling: cancellingFor * 1000, nodeGone: nodeGoneFor * 1000 },
    now: START + at * 1000,
  };
  return observe(seen);
}

const gone = (disruption: string) => ({ uid: 'u', reason: undefined, disruption, message: undefined });
const FAILED_JOB: Job['status'] = {
  conditions: [{ type: 'Failed', status: 'True', reason: 'PodFailurePolicy' }],
};
const CLAIMED: RunParts = { status: { claim: claimOf() } };
const waiting = (reason: string, message = 'the kubelet says why') => ({
  name: 'runner',
  state: { waiting: { reason, message } },
});
const terminated = (exitCode: number, more: Record<string, unknown> = {}) => ({
  phase: exitCode === 0 ? ('Succeeded' as const) : ('Failed' as const),
  ...scheduled(),
  containerStatuses: [{ name: 'runner', state: { terminated: { exitCode, ...more } } }],
});
const running = (startedAt = '2026-01-01T00:00:04Z') => ({
  phase: 'Running' as const,
  ...scheduled(),
  containerStatuses: [{ name: 'runner', state: { running: { startedAt } } }],
});
const report = (reason: string, more: Record<string, unknown> = {}) =>
  JSON.stringify({ v: 1, reason, message: 'm', output: 'the answer', outputTruncated: false, steps: 2, ...more });

describe('a run that nothing was executed of goes back to the queue', () => {
  it.each<[string, Case, string]>([
    ['no pod within 120 s: the quota is used up', { at: 120 }, 'Kubernetes created no pod within 120 s'],
    [
      'no node within 900 s',
      {
        pod: makePod({
          conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes' }],
        }),
        at: 901,
      },
      '0/3 nodes.',
    ],
  ])('%s', (_name, given, message) => {
    expect(decide(given)).toEqual({ do: 'requeue', message: expect.stringContaining(message) });
  });
});

describe('a bound that was passed ends the run', () => {
  it.each<[string, Case, string, string]>([
    [
      'the image cannot be pulled for 300 s',
      { pod: makePod({ ...scheduled(), containerStatuses: [waiting('ImagePullBackOff')] }), at: 302 },
      'ImagePullFailed',
      'ImagePullBackOff: the kubelet says why.',
    ],
    [
      'the image of tools cannot be pulled for 300 s',
      {
        pod: makePod({
          ...scheduled(),
          initContainerStatuses: [{ name: 'tools', state: { waiting: { reason: 'ErrImagePull', message: 'x' } } }],
          containerStatuses: [waiting('PodInitializing', '')],
        }),
        at: 302,
      },
      'ImagePullFailed',
      'ErrImagePull: x.',
    ],
    [
      'the image name is no name: at once',
      { pod: makePod({ ...scheduled(), containerStatuses: [waiting('InvalidImageName')] }), at: 2 },
      'ImagePullFailed',
      'InvalidImageName',
    ],
    [
      'a container cannot be created for 120 s',
      { pod: makePod({ ...scheduled(), containerStatuses: [waiting('CreateContainerConfigError')] }), at: 122 },
      'ContainerCreateFailed',
      'CreateContainerConfigError',
    ],
    [
      'the node is silent for both bounds together',
      { pod: makePod({ ...scheduled(), containerStatuses: [waiting('ContainerCreating', '')] }), at: 422 },
      'ContainerCreateFailed',
      'the node has not started the containers',
    ],
    ['the runner does not claim within 120 s', { pod: makePod(running()), at: 124 }, 'ClaimTimeout', 'within 120 s'],
    [
      'the execution takes longer than 1800 s from the claim',
      { run: CLAIMED, pod: makePod(running()), at: 5 + 1800 + 10 },
      'DeadlineExceeded',
      'longer than 1800 s',
    ],
    [
      'the execution takes longer than the limit of the run itself',
      { run: { ...CLAIMED, spec: { limits: { executionSeconds: 60 } } }, pod: makePod(running()), at: 75 },
      'DeadlineExceeded',
      'longer than 60 s',
    ],
    [
      'the node does not confirm the deletion of the pod',
      { run: CLAIMED, pod: makePod(running(), { deletionTimestamp: '2026-01-01T00:01:00Z' }), at: 120 },
      'NodeLost',
      'did not confirm',
    ],
  ])('%s', (_name, given, reason, message) => {
    expect(decide(given)).toMatchObject({
      do: 'finish',
      outcome: { reason, message: expect.stringContaining(message) },
    });
    const early = decide({ ...given, at: given.at - 1 });
    if (!message.startsWith('InvalidImageName')) expect(early.do).toBe('wait');
  });
});

describe('a pod that ended without a finish', () => {
  it.each<[string, Case, string, string]>([
    [
      'exit code 1, after 15 s',
      { run: CLAIMED, pod: makePod(terminated(1)), at: 60, endedFor: 15 },
      'RunnerFailed',
      'exit code 1',
    ],
    [
      'exit code 0, after 60 s',
      { run: CLAIMED, pod: makePod(terminated(0)), at: 60, endedFor: 60 },
      'RunnerFailed',
      'exit code 0',
    ],
    [
      'killed for its memory',
      { run: CLAIMED, pod: makePod(terminated(137, { reason: 'OOMKilled' })), at: 60, endedFor: 15 },
      'OOMKilled',
      'out of memory',
    ],
    [
      'evicted by the kubelet',
      {
        run: CLAIMED,
        pod: makePod({ phase: 'Failed', reason: 'Evicted', message: 'low on disk' }),
        at: 60,
        endedFor: 15,
      },
      'Evicted',
      'low on disk',
    ],
    [
      'evicted by the API',
      {
        run: CLAIMED,
        pod: makePod({
          ...terminated(143),
          conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' }],
        }),
        at: 60,
        endedFor: 15,
      },
      'Evicted',
      'evicted',
    ],
    [
      'taken away with its node',
      {
        run: CLAIMED,
        pod: makePod({
          phase: 'Failed',
          conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' }],
        }),
        at: 60,
        endedFor: 15,
      },
      'NodeLost',
      'node',
    ],
    [
      'deleted by hand, object still there',
      {
        run: CLAIMED,
        pod: makePod(terminated(143), { deletionTimestamp: '2026-01-01T00:00:50Z' }),
        at: 60,
        endedFor: 15,
      },
      'PodDeleted',
      'was deleted',
    ],
    [
      'drained, object gone',
      { run: CLAIMED, disrupted: gone('EvictionByEvictionAPI'), at: 60, endedFor: 15 },
      'Evicted',
      'The pod was evicted, as when its node is drained. Continue its session',
    ],
    [
      'preempted, object gone',
      { run: CLAIMED, disrupted: gone('PreemptionByScheduler'), at: 60, endedFor: 15 },
      'Evicted',
      'one of a higher priority',
    ],
    [
      'moved for a reason that nobody has told us of, object gone',
      { disrupted: gone('toString'), job: FAILED_JOB, at: 60, endedFor: 15 },
      'Evicted',
      'The pod was evicted: its node was drained or short of room, or a pod of a higher priority took its place.',
    ],
    [
      'collected with its node, object gone',
      { run: CLAIMED, disrupted: gone('DeletionByPodGC'), at: 60, endedFor: 15 },
      'NodeLost',
      'node',
    ],
    ['deleted by hand, object gone', { run: CLAIMED, at: 60, endedFor: 15 }, 'PodDeleted', 'was deleted'],
    ['Job deleted by hand', { run: CLAIMED, job: null, at: 60, endedFor: 15 }, 'JobDeleted', 'Job'],
    [
      "the Job's outer deadline",
      {
        run: CLAIMED,
        job: { conditions: [{ type: 'Failed', status: 'True', reason: 'DeadlineExceeded' }] },
        at: 60,
        endedFor: 15,
      },
      'DeadlineExceeded',
      'longer',
    ],
    [
      'an unclaimed pod that failed',
      { pod: makePod(terminated(1)), at: 60, endedFor: 15 },
      'RunnerFailed',
      'exit code 1',
    ],
    [
      'an unclaimed pod that is gone, after the Job failed',
      {
        job: { conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded' }] },
        at: 60,
        endedFor: 15,
      },
      'PodDeleted',
      'was deleted',
    ],
  ])('%s', (_name, given, reason, message) => {
    expect(decide(given)).toMatchObject({
      do: 'finish',
      outcome: { reason, message: expect.stringContaining(message) },
    });
    expect(decide({ ...given, endedFor: (given.endedFor ?? 0) - 1 })).toEqual({ do: 'wait', ms: 1000 });
  });

  it('names what is missing, so that the API server can be asked', () => {
    expect(decide({ run: CLAIMED, at: 60, endedFor: 15 })).toMatchObject({ missing: 'pod' });
    expect(decide({ run: CLAIMED, job: null, at: 60, endedFor: 15 })).toMatchObject({ missing: 'job' });
    expect(decide({ run: CLAIMED, pod: makePod(terminated(1)), at: 60, endedFor: 15 })).not.toHaveProperty('missing');
  });
});

describe('the termination message of container runner', () => {
  const ended = (message: string, run: RunParts = CLAIMED) =>
    decide({ run, pod: makePod(terminated(0, { message })), at: 60 });

  it('is the outcome at once, with the output', () => {
    expect(ended(report('Completed'))).toEqual({
      do: 'finish',
      outcome: { reason: 'Completed', message: 'm', output: 'the answer', outputTruncated: false },
    });
    expect(ended(report('Cancelled', { output: null }))).toEqual({
      do: 'finish',
      outcome: { reason: 'Cancelled', message: 'm' },
    });
    expect(ended(report('ModelError'))).toMatchObject({ outcome: { reason: 'ModelError' } });
  });

  it.each([
    ['is not JSON', 'Killed'],
    ['has a reason that only the control plane may give', report('NodeLost')],
    ['has an unknown reason', report('Splendid')],
    ['has another version', report('Completed', { v: 2 })],
    ['is longer than 3 KiB', report('Completed', { output: 'x'.repeat(3072) })],
  ])('counts as absent when it %s', (_name, message) => {
    expect(ended(message)).toEqual({ do: 'wait', ms: 60_000 });
  });

  it('cannot claim success for a run that was never claimed, but can say why it failed', () => {
    expect(ended(report('Completed'), {}).do).toBe('wait');
    expect(ended(report('RunnerError'), {})).toMatchObject({ outcome: { reason: 'RunnerError' } });
  });

  it('that says no more than that it was told to stop is completed by what moved the pod away', () => {
    const conditions = [{ type: 'DisruptionTarget', status: 'True' as const, reason: 'EvictionByEvictionAPI' }];
    const pod = makePod({ ...terminated(0, { message: report('Interrupted') }), conditions });
    expect(decide({ run: CLAIMED, pod, at: 60 })).toMatchObject({
      outcome: { reason: 'Evicted', message: expect.stringContaining('drained'), output: 'the answer' },
    });
    expect(ended(report('Interrupted'))).toMatchObject({ outcome: { reason: 'Interrupted', message: 'm' } });
  });

  it('is never read from tools', () => {
    const pod = makePod({
      ...terminated(0),
      initContainerStatuses: [{ name: 'tools', state: { terminated: { exitCode: 0, message: report('Completed') } } }],
    });
    expect(decide({ run: CLAIMED, pod, at: 60 })).toEqual({ do: 'wait', ms: 60_000 });
  });
});

describe('cancellation', () => {
  const asked = { spec: { cancelRequested: true } };

  it('ends an unclaimed run at once, with or without a pod', () => {
    for (const pod of [undefined, makePod(), makePod(running())]) {
      expect(decide({ run: asked, ...(pod === undefined ? {} : { pod }), at: 3 })).toMatchObject({
        do: 'finish',
        outcome: { reason: 'Cancelled' },
      });
    }
  });

  it('gives a working run 60 s to stop by itself', () => {
    const given: Case = { run: { ...asked, ...CLAIMED }, pod: makePod(running()), at: 30 };
    expect(decide({ ...given, cancellingFor: 10 })).toEqual({ do: 'wait', ms: 50_000 });
    expect(decide({ ...given, cancellingFor: 60 })).toMatchObject({ outcome: { reason: 'Cancelled' } });
  });

  it('is the outcome when the pod of a run that was told to stop ends without a word', () => {
    const given: Case = { run: { ...asked, ...CLAIMED }, pod: makePod(terminated(137)), at: 30, endedFor: 15 };
    expect(decide(given)).toMatchObject({ outcome: { reason: 'Cancelled' } });
  });
});

describe('waiting', () => {
  it('lasts until the next bound', () => {
    expect(decide({ at: 100 })).toEqual({ do: 'wait', ms: 20_000 });
    expect(decide({ pod: makePod(running()), at: 114 })).toEqual({ do: 'wait', ms: 10_000 });
  });

  it('lasts at most a minute', () => {
    expect(decide({ run: CLAIMED, pod: makePod(running()), at: 10 })).toEqual({ do: 'wait', ms: 60_000 });
    expect(nextDeadline([], START)).toBe(60_000);
  });

  it('does not take a pod that is being deleted, but works on, for an end', () => {
    const pod = makePod(running(), { deletionTimestamp: '2026-01-01T00:01:00Z' });
    expect(decide({ run: CLAIMED, pod, at: 59 }).do).toBe('wait');
  });
});

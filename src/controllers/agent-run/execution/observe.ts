/**
 * What a run that has a Job needs now. Pure: everything known goes in, one decision comes out. Every way to hang has a deadline
 * here. Where Kubernetes records a time it is used, since that survives a change of leader; only short grace periods are
 * counted in memory.
 * See docs/architecture.md#bounds.
 */
import type { Box } from '../../../api/v1alpha1/box.js';
import { isClaimed } from '../../../run/status.js';
import { outcomeOf, sentence } from '../../../run/outcome.js';
import type { FoundOutcome, RunOutcome } from '../../../run/outcome.js';
import { executionSecondsOf } from './execution-limit.js';
import type { DisruptedPod } from './disrupted-pods.js';
import { outcomeOfLostPod, terminationOutcome } from './pod-outcome.js';
import { saysQuotaExceeded } from '../../../kube/kubernetes-messages.js';
import type { ControllerRun } from '../../../projections/agent-run.js';
import type { ControllerJob } from '../../../projections/job.js';
import type { NodeProjection } from '../../../projections/node.js';
import type { ControllerPod } from '../../../projections/pod.js';

/** After a pod ended well its finish may still be on the way; from a pod that was killed or vanished less is to be expected. */
export const FINISH_GRACE_MS = 60_000;
export const SHORT_GRACE_MS = 15_000;
/** The runner ends itself at its deadline; the controller steps in a little later. */
export const EXECUTION_SLACK_MS = 10_000;

/** How long something has been the case, in milliseconds, on this process's clock. */
export interface Elapsed {
  /** Cancellation was requested. */
  cancelling: number;
  /** The pod has ended, or its object is gone. */
  ended: number;
  /** The node of the pod is not there. */
  nodeGone: number;
}

export interface Observation {
  run: ControllerRun;
  box: Pick<Box, 'spec'>;
  /** The Job with our owner UID; undefined when there is none (any more). */
  job: ControllerJob | undefined;
  /** The pod that claimed the run; before a claim the newest one. */
  pod: ControllerPod | undefined;
  /** What evicted the pod, if its object is gone and the eviction was seen. */
  disrupted: DisruptedPod | undefined;
  /** The node of the pod. */
  node: NodeProjection | undefined;
  /** The volume claim of the agent, while it has no volume. */
  unboundClaim: string | undefined;
  /** What Kubernetes said when it created no pod for the Job; undefined when nobody asked, or nothing was said. */
  podRefusal: string | undefined;
  /** The namespace is being deleted. */
  terminating: boolean;
  elapsed: Elapsed;
  /** Milliseconds since the epoch. */
  now: number;
}

export type Decision =
  /** Look again after this time at the latest; events may come first. */
  | { do: 'wait'; ms: number }
  /** Nothing was executed: the Job goes, the run waits again. */
  | { do: 'requeue'; message: string }
  /** `missing`: the decision rests on an object that the cache does not have; ask the API server before it is final. */
  | { do: 'finish'; outcome: FoundOutcome; missing?: MissingKind; explain?: Explain };

/** What a decision rests on that is not in the cache. */
export type MissingKind = 'job' | 'pod' | 'node';
/** Whose latest warning tells a person more than the outcome does; or whether pull secrets are missing. */
export type Explain = 'pod' | 'pull secrets';

/** What happens when the time has come. */
interface Deadline {
  at: number;
  decision: Decision;
}

/** A Job without a pod for this long is worth a look at what Kubernetes says. */
export const NO_POD_LOOK_MS = 10_000;
/** A node that is not in the cache may have joined a moment ago. */
export const NODE_GONE_GRACE_MS = 30_000;

/** Nothing is expected, but a lost event must not freeze a run. */
const LOOK_AGAIN_MS = 60_000;

export function observe(seen: Observation): Decision {
  const { run } = seen;
  if (run.spec.cancelRequested === true && !isClaimed(run)) {
    return { do: 'finish', outcome: outcomeOf('Cancelled', 'Cancelled before a pod took the run.') };
  }
  if (isPodEnded(seen.pod) || seen.pod === undefined) return observeWithoutPod(seen);
  const deadlines = deadlinesOf(seen, seen.pod);
  const due = deadlines.find((deadline) => deadline.at <= seen.now);
  return due?.decision ?? { do: 'wait', ms: nextDeadline(deadlines, seen.now) };
}

/** Milliseconds until the first deadline that is still to come. */
export function nextDeadline(deadlines: readonly { at: number }[], now: number): number {
  const next = Math.min(...deadlines.map((deadline) => deadline.at).filter((at) => at > now));
  return Math.min(next - now, LOOK_AGAIN_MS);
}

/** Whether none of our containers runs or will run in the pod. */
export function isPodEnded(pod: ControllerPod | undefined): boolean {
  return (
    pod !== undefined && (pod.phase === 'Succeeded' || pod.phase === 'Failed' || pod.runner.terminated !== undefined)
  );
}

/** Whether the pod has ended or is gone, so that only a late finish is waited for. */
export function hasStopped(
  pod: ControllerPod | undefined,
  run: ControllerRun,
  job: ControllerJob | undefined,
): boolean {
  return isPodEnded(pod) || (pod === undefined && (isClaimed(run) || job?.ended !== undefined));
}

function observeWithoutPod(seen: Observation): Decision {
  const { run, job, pod, terminating } = seen;
  if (!hasStopped(pod, run, job)) return observePodless(seen);
  const reported = pod === undefined ? undefined : terminationOutcome(pod, isClaimed(run));
  if (reported !== undefined) return { do: 'finish', outcome: reported };
  const grace = pod?.runner.terminated?.exitCode === 0 ? FINISH_GRACE_MS : SHORT_GRACE_MS;
  if (seen.elapsed.ended < grace) return { do: 'wait', ms: grace - seen.elapsed.ended };
  if (run.spec.cancelRequested === true) return { do: 'finish', outcome: outcomeOf('Cancelled') };
  const outcome = terminating ? outcomeOf('NamespaceTerminating') : outcomeOfLostPod(seen);
  if (pod !== undefined) return { do: 'finish', outcome };
  return { do: 'finish', outcome, missing: job === undefined ? 'job' : 'pod' };
}

/** The Job is there, works, and has no pod yet. */
function observePodless({ box, job, podRefusal, terminating, now }: Observation): Decision {
  if (terminating) return { do: 'finish', outcome: outcomeOf('NamespaceTerminating') };
  // Kueue decides when the Job may have a pod; the clock starts then.
  if (job?.suspended === true) return { do: 'wait', ms: LOOK_AGAIN_MS };
  const seconds = box.spec.bounds.podCreatedSeconds;
  const since = job?.activeSince ?? now;
  if (podRefusal !== undefined && saysQuotaExceeded(podRefusal)) {
    return { do: 'requeue', message: `Kubernetes refused the pod: ${sentence(podRefusal)}` };
  }
  const left = since + seconds * 1000 - now;
  if (left > 0) {
    const look = since + NO_POD_LOOK_MS - now;
    return { do: 'wait', ms: look > 0 ? Math.min(look, left) : left };
  }
  const why = podRefusal === undefined ? 'Often the quota of the Box is used up.' : sentence(podRefusal);
  return { do: 'requeue', message: `Kubernetes created no pod within ${seconds} s. ${why}` };
}

function deadlinesOf(seen: Observation, pod: ControllerPod): Deadline[] {
  const deadlines = [...deletionDeadlines(seen, pod), ...nodeDeadlines(seen, pod), ...cancelDeadlines(seen)];
  if (isClaimed(seen.run)) return [...deadlines, ...executionDeadlines(seen)];
  if (pod.runner.startedAt !== undefined) return [...deadlines, ...claimDeadlines(seen, pod.runner.startedAt)];
  if (pod.scheduledAt !== undefined) return [...deadlines, ...startDeadlines(seen, pod, pod.scheduledAt)];
  return [...deadlines, ...schedulingDeadlines(seen, pod)];
}

/** A pod that is being deleted and does not go: its node does not answer. A node that is not ready gets no extra time. */
function deletionDeadlines({ box, node }: Observation, pod: ControllerPod): Deadline[] {
  if (pod.deletionAt === undefined) return [];
  const name = pod.node === undefined ? 'its node' : `node ${pod.node}`;
  if (node?.ready === false) {
    const outcome = outcomeOf('NodeLost', `The pod was deleted, and ${name} is not ready${saying(node)}.`);
    return [{ at: pod.deletionAt, decision: { do: 'finish', outcome } }];
  }
  const outcome = outcomeOf('NodeLost', `The pod was deleted, but ${name} did not confirm that it stopped.`);
  return [{ at: pod.deletionAt + box.spec.bounds.terminationSeconds * 1000, decision: { do: 'finish', outcome } }];
}

/**
 * A node that is gone takes its pods with it. One that is not ready may merely be cut off from the API server: a working run
 * is judged by its heartbeats, and only a run that has not begun ends here.
 */
function nodeDeadlines({ run, box, node, elapsed, now }: Observation, pod: ControllerPod): Deadline[] {
  if (pod.node === undefined || node?.ready === true) return [];
  if (node === undefined) {
    const outcome = outcomeOf('NodeLost', `Node ${pod.node} is not in the cluster any more.`);
    return [{ at: now + NODE_GONE_GRACE_MS - elapsed.nodeGone, decision: { do: 'finish', outcome, missing: 'node' } }];
  }
  if (isClaimed(run)) return [];
  const what = `Node ${node.name} is not ready${saying(node)}; the run had not begun.`;
  const at = node.since + box.spec.bounds.heartbeatSeconds * 1000;
  return [{ at, decision: { do: 'finish', outcome: outcomeOf('NodeLost', what) } }];
}

function saying({ message }: NodeProjection): string {
  return message === '' ? '' : ` (${message})`;
}

/** The gateway tells a working run, which gets time to stop. */
function cancelDeadlines({ run, box, elapsed, now }: Observation): Deadline[] {
  if (run.spec.cancelRequested !== true) return [];
  const seconds = box.spec.bounds.terminationSeconds;
  const outcome = outcomeOf('Cancelled', `Cancelled; the runner did not stop by itself within ${seconds} s.`);
  return [{ at: now + seconds * 1000 - elapsed.cancelling, decision: { do: 'finish', outcome } }];
}

function executionDeadlines({ run, box }: Observation): Deadline[] {
  const seconds = executionSecondsOf(run, box);
  const claimedAt = Date.parse(run.status?.claim?.at ?? '');
  const outcome = outcomeOf('DeadlineExceeded', `The run worked for longer than ${seconds} s.`);
  return [{ at: claimedAt + seconds * 1000 + EXECUTION_SLACK_MS, decision: { do: 'finish', outcome } }];
}

function claimDeadlines({ box }: Observation, startedAt: number): Deadline[] {
  const seconds = box.spec.bounds.claimSeconds;
  const outcome = outcomeOf('ClaimTimeout', `The runner started, but did not claim the run within ${seconds} s.`);
  return [{ at: startedAt + seconds * 1000, decision: { do: 'finish', outcome } }];
}

function schedulingDeadlines({ box, unboundClaim }: Observation, pod: ControllerPod): Deadline[] {
  const seconds = box.spec.bounds.unschedulableSeconds;
  const why = pod.unschedulable === undefined ? '' : ` ${sentence(pod.unschedulable)}`;
  const unbound =
    unboundClaim === undefined
      ? ''
      : ` Volume claim ${unboundClaim} has no volume: kubectl describe pvc ${unboundClaim} -n ${pod.namespace} tells why.`;
  const message = `No node took the pod within ${seconds} s.${why}${unbound}`;
  return [{ at: pod.createdAt + seconds * 1000, decision: { do: 'requeue', message } }];
}

const PULL_ERRORS: ReadonlySet<string> = new Set(['ErrImagePull', 'ImagePullBackOff', 'RegistryUnavailable']);
/** Errors that waiting does not cure. */
const HOPELESS_IMAGES: ReadonlySet<string> = new Set(['InvalidImageName', 'ErrImageNeverPull', 'ImageInspectError']);
const CREATE_ERRORS: ReadonlySet<string> = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'CrashLoopBackOff',
]);

/** The pod has a node and its runner does not run yet. */
function startDeadlines({ box, now }: Observation, pod: ControllerPod, scheduledAt: number): Deadline[] {
  const { imagePullSeconds, containerCreateSeconds } = box.spec.bounds;
  const waits = [pod.tools.waiting, pod.runner.waiting].filter((waiting) => waiting !== undefined);
  const hopeless = waits.find(({ reason }) => HOPELESS_IMAGES.has(reason));
  if (hopeless !== undefined) return [deadline(now, 'ImagePullFailed', hopeless)];
  const pulling = waits.find(({ reason }) => PULL_ERRORS.has(reason));
  if (pulling !== undefined) {
    return [explained(deadline(scheduledAt + imagePullSeconds * 1000, 'ImagePullFailed', pulling), 'pull secrets')];
  }
  const failing = waits.find(({ reason }) => CREATE_ERRORS.has(reason));
  if (failing !== undefined) {
    return [deadline(scheduledAt + containerCreateSeconds * 1000, 'ContainerCreateFailed', failing)];
  }
  if (pod.sandbox === false) {
    const stuck = {
      reason: 'no sandbox',
      message: 'the node could not prepare network, runtime or volumes of the pod',
    };
    return [explained(deadline(scheduledAt + containerCreateSeconds * 1000, 'ContainerCreateFailed', stuck))];
  }
  // The kubelet does not say whether it pulls or creates: both deadlines together.
  const silent = { reason: 'ContainerCreating', message: 'the node has not started the containers' };
  const both = (imagePullSeconds + containerCreateSeconds) * 1000;
  return [explained(deadline(scheduledAt + both, 'ContainerCreateFailed', silent))];
}

function explained({ at, decision }: Deadline, explain: Explain = 'pod'): Deadline {
  return { at, decision: decision.do === 'finish' ? { ...decision, explain } : decision };
}

function deadline(
  at: number,
  reason: 'ImagePullFailed' | 'ContainerCreateFailed',
  waiting: { reason: string; message: string },
): Deadline {
  const what = sentence(waiting.message === '' ? waiting.reason : `${waiting.reason}: ${waiting.message}`);
  const outcome: RunOutcome = outcomeOf(reason, what);
  return { at, decision: { do: 'finish', outcome } };
}

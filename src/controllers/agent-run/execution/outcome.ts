/**
 * How a run ended when no finish of its runner arrived: from the termination message of container `runner`, else from
 * what happened to pod and Job. Pure. `tools` has no say: its exit, its messages and its files are never read.
 */
import { evictionBy } from '../../../run/disruption.js';
import { RUN_REASONS, isReportedReason } from '../../../run/reasons.js';
import type { RunReason } from '../../../run/reasons.js';
import { phaseOf } from '../../../run/status.js';
import type { RunOutcome } from '../../../run/status.js';
import { MAX_TERMINATION_MESSAGE_BYTES, TerminationMessage } from '../../../protocol/run.js';
import type { DisruptedPod } from './disrupted-pods.js';
import type { JobView, PodView } from '../views.js';

/** An outcome with the last message of the agent, where it is known. */
export interface FoundOutcome extends RunOutcome {
  output?: string;
  outputTruncated?: boolean;
}

/** An outcome for a person: what happened, then the documented next step. */
export function outcomeOf(reason: RunReason, what: string = RUN_REASONS[reason].cause): RunOutcome {
  const { nextStep } = RUN_REASONS[reason];
  const message = nextStep === 'None.' ? what : `${what} ${nextStep}`;
  return { reason, message };
}

/** What the runner left behind for the case that it reached no gateway; undefined when it left nothing valid. */
export function reportedOutcome(pod: PodView, claimed: boolean): FoundOutcome | undefined {
  const text = pod.runner.terminated?.message ?? '';
  if (text === '' || Buffer.byteLength(text) > MAX_TERMINATION_MESSAGE_BYTES) return undefined;
  const parsed = TerminationMessage.safeParse(parseJson(text));
  if (!parsed.success || !isReportedReason(parsed.data.reason)) return undefined;
  const { reason, message, output, outputTruncated } = parsed.data;
  // Without a claim the runner never saw its input: it can tell why it failed, and nothing else.
  if (!claimed && phaseOf(reason) !== 'error') return undefined;
  // The runner does not know why it was told to stop.
  const ended = (reason === 'Interrupted' ? disruptionOf(pod) : undefined) ?? { reason, message };
  return { ...ended, ...(output === null ? {} : { output, outputTruncated }) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reasons of the condition DisruptionTarget that mean that the node went away, not that somebody moved the pod. */
const NODE_GONE: ReadonlySet<string> = new Set(['DeletionByPodGC', 'DeletionByTaintManager']);

/** What is known of a pod that did not end by itself. */
export interface LostPod {
  /** Absent when its object is gone. */
  pod: PodView | undefined;
  /** What moved it away, when its object is gone and that was seen. */
  disrupted: DisruptedPod | undefined;
  job: JobView | undefined;
}

/** Why a pod ended without a result. */
export function outcomeOfLostPod({ pod, disrupted, job }: LostPod): RunOutcome {
  if (job?.failedReason === 'DeadlineExceeded') return outcomeOf('DeadlineExceeded');
  if (job === undefined || job.deleting) return outcomeOf('JobDeleted');
  if (job.suspended) {
    return outcomeOf('Evicted', 'The Job was suspended while it worked: Kueue took its place for another workload.');
  }
  if (pod === undefined) return disruptionOf(disrupted) ?? outcomeOf('PodDeleted');
  const disruption = disruptionOf(pod);
  if (disruption !== undefined) return disruption;
  const ended = pod.runner.terminated;
  if (ended?.reason === 'OOMKilled') return outcomeOf('OOMKilled');
  if (pod.deletionAt !== undefined) return outcomeOf('PodDeleted');
  if (ended === undefined) return outcomeOf('RunnerFailed', 'The pod ended before the runner started.');
  return outcomeOf('RunnerFailed', `The runner ended without a result (exit code ${ended.exitCode}).`);
}

/** Undefined when nothing moved the pod away. */
function disruptionOf(pod: DisruptedPod | undefined): RunOutcome | undefined {
  if (pod === undefined) return undefined;
  const { reason, disruption, message } = pod;
  if (reason === 'NodeLost' || (disruption !== undefined && NODE_GONE.has(disruption))) return outcomeOf('NodeLost');
  if (reason !== 'Evicted' && disruption === undefined) return undefined;
  return outcomeOf(
    'Evicted',
    message === undefined ? evictionBy(disruption ?? '') : `The pod was evicted: ${sentence(message)}`,
  );
}

/** Text of the kubelet as one sentence. */
export function sentence(text: string): string {
  const clean = text.replace(/\s+/g, ' ').trim();
  return clean.endsWith('.') ? clean : `${clean}.`;
}

/**
 * How a run ended if no finish arrived from its runner: from the termination message of container `runner`, else from
 * what happened to pod and Job. Pure. `tools` has no say: its exit, its messages and its files are never read.
 */
import { outcomeOfDisruption } from '../../../run/disruption.js';
import { reportedOutcome } from '../../../run/reported-outcome.js';
import { outcomeOf, phaseOf } from '../../../run/outcome.js';
import type { FoundOutcome, RunOutcome } from '../../../run/outcome.js';
import { MAX_TERMINATION_MESSAGE_BYTES, TerminationMessage } from '../../../protocol/run.js';
import type { DisruptedPod } from './disrupted-pods.js';
import type { ControllerJob } from '../../../projections/job.js';
import type { ControllerPod } from '../../../projections/pod.js';

/** What the runner left behind in case it could not reach a gateway; undefined if it left nothing valid. */
export function terminationOutcome(pod: ControllerPod, claimed: boolean): FoundOutcome | undefined {
  const text = pod.runner.terminated?.message ?? '';
  if (text === '' || Buffer.byteLength(text) > MAX_TERMINATION_MESSAGE_BYTES) return undefined;
  const parsed = TerminationMessage.safeParse(parseJson(text));
  const reported = parsed.success ? reportedOutcome(parsed.data) : undefined;
  if (!parsed.success || reported === undefined) return undefined;
  const { output, outputTruncated } = parsed.data;
  // Without a claim the runner never saw its input: it can tell why it failed, and nothing else.
  if (!claimed && phaseOf(reported.reason) !== 'error') return undefined;
  // The runner does not know why it was told to stop.
  const why = reported.reason === 'Interrupted' ? outcomeOfDisruption(pod, 'told us') : undefined;
  return { ...(why ?? reported), ...(output === null ? {} : { output, outputTruncated }) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What is known of a pod that did not end by itself. */
export interface LostPod {
  /** Absent when its object is gone. */
  pod: ControllerPod | undefined;
  /** What evicted it, if its object is gone and the eviction was seen. */
  disrupted: DisruptedPod | undefined;
  job: ControllerJob | undefined;
}

/** Why a pod ended without a result. */
export function outcomeOfLostPod({ pod, disrupted, job }: LostPod): RunOutcome {
  if (job?.failedReason === 'DeadlineExceeded') return outcomeOf('DeadlineExceeded');
  if (job === undefined || job.deleting) return outcomeOf('JobDeleted');
  if (job.suspended) {
    return outcomeOf('Evicted', 'The Job was suspended while it worked: Kueue took its place for another workload.');
  }
  if (pod === undefined) return outcomeOfDisruption(disrupted, 'is silent') ?? outcomeOf('PodDeleted');
  const disruption = outcomeOfDisruption(pod, 'is silent');
  if (disruption !== undefined) return disruption;
  const ended = pod.runner.terminated;
  if (ended?.reason === 'OOMKilled') return outcomeOf('OOMKilled');
  if (pod.deletionAt !== undefined) return outcomeOf('PodDeleted');
  if (ended === undefined) return outcomeOf('RunnerFailed', 'The pod ended before the runner started.');
  return outcomeOf('RunnerFailed', `The runner ended without a result (exit code ${ended.exitCode}).`);
}

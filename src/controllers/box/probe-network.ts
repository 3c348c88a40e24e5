/**
 * The step of a Box that has a Job probe its network and maintains condition NetworkEnforced. The verdict
 * and what it is based on are in the status, so that another controller can continue where this one stopped.
 */
import { findCondition } from '../../api/conditions.js';
import { LABEL_NETWORK_PROBE } from '../../api/labels.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { Jobs, Pods } from '../../kube/core-types.js';
import type { Job, Pod } from '../../kube/core-types.js';
import { isAlreadyExists, orUndefined } from '../../kube/errors.js';
import { ownedBy } from '../../kube/owner-references.js';
import { isoNow } from '../../runtime/clock.js';
import { continueAndRequeueAfter } from '../../runtime/steps.js';
import type { StepResult } from '../../runtime/steps.js';
import { deleteObjects } from '../common/delete-objects.js';
import { showCondition } from '../common/ready.js';
import { missingPullSecrets } from '../common/warnings.js';
import type { BoxDependencies, BoxInputs } from './dependencies.js';
import {
  NETWORK_ENFORCED,
  conditionOf,
  keepsEarlierVerdict,
  planProbe,
  probeNameTaken,
  probing,
  requiresEnforcement,
  verdictOf,
} from './network-verdict.js';
import type { ProbePlan } from './network-verdict.js';
import { PROBE_JOB, buildProbeJob, probeDigest } from './probe-job.js';
import type { ProbeSettings } from './probe-job.js';
import type { ProbeJob } from '../../projections/job.js';

/** The Services of the installation are read again this often while they have no address. */
const NO_SETTINGS_RECHECK_MS = 15_000;
/** A Job that was made or deleted wakes the Box; this covers a lost event. */
const RECHECK_MS = 30_000;
const TRYING = 'a pod is trying what the network lets pass; this takes a minute at most';

/** One round: makes, awaits, reads or removes the Job. The Box continues with its next step in any case. */
export async function probeNetwork(
  deps: BoxDependencies,
  draft: Box,
  { namespace }: BoxInputs,
  signal: AbortSignal,
): Promise<StepResult> {
  const settings = await readSettings(deps, draft, signal);
  if (settings === undefined) return continueAndRequeueAfter(NO_SETTINGS_RECHECK_MS);
  const digest = probeDigest(draft, deps.network, settings);
  if (draft.status?.networkProbe?.digest !== digest) {
    // Findings about other policies are dropped: they must not count again when somebody changes the policies back.
    draft.status = { ...draft.status, networkProbe: undefined };
    showCondition(draft, probing(TRYING), deps.clock);
  }
  const job = deps.caches.probeJobs.get(`${namespace}/${PROBE_JOB}`);
  if (job !== undefined && job.owner !== draft.metadata.uid) {
    showCondition(draft, probeNameTaken(namespace), deps.clock);
    return continueAndRequeueAfter(RECHECK_MS);
  }
  const plan = planProbe({
    now: deps.clock.now(),
    digest,
    isRequired: requiresEnforcement(draft),
    latest: draft.status?.networkProbe,
    job,
  });
  return await follow(plan, { deps, draft, namespace, settings, digest }, signal);
}

interface Round {
  deps: BoxDependencies;
  draft: Box;
  namespace: string;
  settings: ProbeSettings;
  digest: string;
}

async function follow(plan: ProbePlan, round: Round, signal: AbortSignal): Promise<StepResult> {
  const { deps, draft, namespace } = round;
  switch (plan.do) {
    case 'wait':
      return continueAndRequeueAfter(plan.ms);
    case 'create':
      if (await createJob(round, signal)) {
        if (reasonOf(draft) === 'ProbeNameTaken') showCondition(draft, probing(TRYING), deps.clock);
      } else showCondition(draft, probeNameTaken(namespace), deps.clock);
      return continueAndRequeueAfter(RECHECK_MS);
    case 'delete':
      await deleteObjects(deps.api, Jobs, [{ metadata: { name: PROBE_JOB, namespace, uid: plan.job.uid } }], signal);
      return continueAndRequeueAfter(RECHECK_MS);
    case 'read':
      await readVerdict(plan.job, round, signal);
      return continueAndRequeueAfter(RECHECK_MS);
  }
}

/** Makes the Job; false when its name belongs to somebody else's. */
async function createJob({ deps, draft, namespace, settings, digest }: Round, signal: AbortSignal): Promise<boolean> {
  try {
    await deps.api.create(Jobs, buildProbeJob(draft, settings, digest), { signal });
    return true;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    // Either the cache does not show ours yet, or it never will.
    const there = await orUndefined(deps.api.get(Jobs, { namespace, name: PROBE_JOB }, { signal }));
    return there === undefined || (ownedBy(there, draft.metadata.uid ?? '') && isLabelled(there));
  }
}

/** Without the label the cache never shows it. */
function isLabelled({ metadata }: Job): boolean {
  return metadata.labels?.[LABEL_NETWORK_PROBE] !== undefined;
}

function reasonOf(box: Box): string | undefined {
  return findCondition(box.status?.conditions, NETWORK_ENFORCED)?.reason;
}

/** Undefined while the installation is not complete; an existing verdict is kept meanwhile. */
async function readSettings(
  deps: BoxDependencies,
  draft: Box,
  signal: AbortSignal,
): Promise<ProbeSettings | undefined> {
  try {
    return await deps.probeSettings(signal);
  } catch (error) {
    signal.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    deps.log.warn({ box: draft.metadata.name, err: error }, 'network probe cannot start');
    if (findCondition(draft.status?.conditions, NETWORK_ENFORCED) === undefined) {
      showCondition(draft, probing(`the probe of the network cannot start: ${why}`), deps.clock);
    }
    return undefined;
  }
}

async function readVerdict(
  job: ProbeJob,
  { deps, draft, namespace, digest }: Round,
  signal: AbortSignal,
): Promise<void> {
  const verdict = verdictOf(await podOf(deps, job, signal), namespace);
  if (verdict.result === 'ProbeFailed') {
    const pods = { namespace, namePrefix: `${PROBE_JOB}-`, since: job.createdAt };
    const missing = await missingPullSecrets(deps.api, pods, signal);
    if (missing !== undefined) verdict.message += `. Kubernetes says: ${missing}`;
  }
  if (!keepsEarlierVerdict(draft, digest, verdict)) showCondition(draft, conditionOf(verdict), deps.clock);
  const probedAt = isoNow(deps.clock);
  draft.status = { ...draft.status, networkProbe: { digest, jobUid: job.uid, probedAt, result: verdict.result } };
  deps.log.info({ box: draft.metadata.name, result: verdict.result }, 'network probed');
}

async function podOf(
  { api }: BoxDependencies,
  { namespace, uid }: ProbeJob,
  signal: AbortSignal,
): Promise<Pod | undefined> {
  const { items } = await api.list(Pods, { namespace, labelSelector: LABEL_NETWORK_PROBE, signal });
  return items.find((pod) => ownedBy(pod, uid));
}

/**
 * The end of a Box: its runs, triggers and agents first, so that every run is counted while
 * its owners exist; then the namespace if it is ours; then the Box is released. Nothing waits for the garbage collector.
 * See docs/architecture.md#removing-a-run.
 */
import { AgentEvals } from '../../api/v1alpha1/agent-eval.js';
import { AgentMemories } from '../../api/v1alpha1/agent-memory.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../../api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../../api/v1alpha1/agent-skill.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import type { Box } from '../../api/v1alpha1/box.js';
import type { KubeObject, ResourceType } from '../../api/meta.js';
import {
  Jobs,
  LimitRanges,
  Namespaces,
  NetworkPolicies,
  ResourceQuotas,
  ServiceAccounts,
  RoleBindings,
} from '../../kube/core-types.js';
import { DONE, requeueAfter } from '../../runtime/steps.js';
import type { StepResult } from '../../runtime/steps.js';
import { deleteObjects } from '../common/delete-objects.js';
import { releaseFinalizer } from '../common/finalizer.js';
import { ANNOTATION_ADOPTED_BY, namespaceClaim, readNamespace, removeNamespace } from '../common/namespace.js';
import { setReady } from '../common/ready.js';
import type { BoxDependencies, BoxInputs } from './dependencies.js';
import { LABELS_OF_ADOPTION, desiredObjects, ownerOf } from './desired.js';
import { INTERNET_POLICY } from './network-policies.js';
import { PROBE_JOB } from './probe-job.js';
import { BY_NAMESPACE } from '../../projections/indexes.js';

/** Cache events wake the Box earlier; this covers a lost event, and the next batch of deletes. */
const RECHECK_MS = 2_000;

/** One round of the deletion; called until the finalizer is gone. */
export async function finalizeBox(
  deps: BoxDependencies,
  draft: Box,
  { namespace }: BoxInputs,
  signal: AbortSignal,
): Promise<StepResult> {
  const live = await readNamespace(deps.api, namespace, signal);
  const claim = live === undefined ? 'foreign' : namespaceClaim(live, ownerOf(draft));
  const isOurs = claim === 'owned' || claim === 'adopted';
  if (isOurs && (await deleteChildren(deps, namespace, claim === 'adopted', signal))) {
    return waiting(deps, draft, 'its runs, triggers and agents are');
  }
  if (claim === 'adopted') await leaveNamespace(deps, draft, namespace, signal);
  if (!(await removeNamespace(deps.api, namespace, ownerOf(draft), signal))) {
    return waiting(deps, draft, `namespace ${namespace} is`);
  }
  await releaseFinalizer(deps.api, Boxes, draft, signal);
  deps.log.info({ box: draft.metadata.name }, 'box released');
  return DONE;
}

function waiting({ clock }: BoxDependencies, draft: Box, forWhat: string): StepResult {
  const message = `the Box is being deleted; it waits until ${forWhat} gone`;
  setReady(draft, { reason: 'Deleting', message }, clock);
  return requeueAfter(RECHECK_MS);
}

/** Requests deletion of what is left; true while anything is left. */
async function deleteChildren(
  { api, caches }: BoxDependencies,
  namespace: string,
  isAdopted: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  // Triggers, schedules, evals and agents first: nothing new starts while the runs go.
  const kinds: [ResourceType, readonly Pick<KubeObject, 'metadata'>[]][] = [
    [AgentTriggers, caches.triggers.byIndex(BY_NAMESPACE, namespace)],
    [AgentSchedules, caches.schedules.byIndex(BY_NAMESPACE, namespace)],
    [AgentEvals, caches.evals.byIndex(BY_NAMESPACE, namespace)],
    [Agents, caches.agents.byIndex(BY_NAMESPACE, namespace)],
    [AgentRuns, caches.runs.byIndex(BY_NAMESPACE, namespace)],
    [AgentSkills, caches.skills.byIndex(BY_NAMESPACE, namespace)],
    [AgentMemories, caches.memories.byIndex(BY_NAMESPACE, namespace)],
  ];
  for (const [type, objects] of kinds) await deleteObjects(api, type, objects, signal);
  if (kinds.some(([, objects]) => objects.length > 0)) return true;
  // The deletion of our own namespace includes latecomers. In an adopted one they would stay, so a live list is needed.
  if (!isAdopted) return false;
  for (const [type] of kinds) {
    const { items } = await api.list(type, { namespace, signal });
    if (items.length > 0) {
      await deleteObjects(api, type, items, signal);
      return true;
    }
  }
  return false;
}

/** Removes our objects and marks from an adopted namespace; everything else in it stays. */
async function leaveNamespace(deps: BoxDependencies, box: Box, namespace: string, signal: AbortSignal): Promise<void> {
  const { api } = deps;
  const desired = desiredObjects(box, deps);
  const internet = { metadata: { name: INTERNET_POLICY, namespace } };
  await deleteObjects(api, Jobs, [{ metadata: { name: PROBE_JOB, namespace } }], signal);
  await deleteObjects(api, ServiceAccounts, [desired.serviceAccount], signal);
  await deleteObjects(api, ResourceQuotas, [desired.resourceQuota], signal);
  await deleteObjects(api, LimitRanges, [desired.limitRange], signal);
  await deleteObjects(api, RoleBindings, [desired.credentialsBinding], signal);
  await deleteObjects(api, NetworkPolicies, [...desired.networkPolicies, internet], signal);
  const labels = Object.fromEntries(LABELS_OF_ADOPTION.map((label) => [label, null]));
  const body = { metadata: { labels, annotations: { [ANNOTATION_ADOPTED_BY]: null } } };
  await api.patch(Namespaces, { name: namespace }, body, { type: 'merge', signal });
}

/**
 * Completes or takes back an install (src/api/installing.ts): its agents are shown once it is committed, and deleted when it
 * is not committed in time. Such an agent is deleted in the usual way, with all that belongs to it.
 */
import { installMarkOf } from '../../api/installing.js';
import type { InstallMark } from '../../api/installing.js';
import { ANNOTATION_INSTALLING } from '../../api/labels.js';
import { objectKey } from '../../api/meta.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { isConflict, isNotFound, orUndefined } from '../../kube/errors.js';
import type { Cache, DeleteOptions, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import { CONTINUE, DONE, continueAndRequeueAfter } from '../../runtime/steps.js';
import type { StepResult } from '../../runtime/steps.js';
import { refOf } from '../common/finalizer.js';
import type { ControllerAgent } from '../../projections/agent.js';
import { BY_NAMESPACE, agentKey } from '../../projections/indexes.js';

export interface InstallDependencies {
  api: Pick<KubeApi, 'get' | 'patch' | 'delete'>;
  clock: Clock;
  log: Logger;
  caches: { agents: Cache<ControllerAgent> };
}

/** Reconciles an agent again when another one of the same install has changed. */
export function watchInstalls({ caches }: InstallDependencies, enqueue: (key: string) => void): () => void {
  return caches.agents.onChange(({ previous, current }) => {
    const agent = current ?? previous;
    if (agent !== undefined) for (const other of followersOf(caches.agents, agent)) enqueue(objectKey(other.metadata));
  });
}

/** The agents that ask this one whether their install is committed, those that are being deleted left out. */
export function followersOf(agents: Cache<ControllerAgent>, first: ControllerAgent): ControllerAgent[] {
  const { namespace = '', name, uid } = first.metadata;
  return agents.byIndex(BY_NAMESPACE, namespace).filter(({ metadata }) => {
    const leader = installMarkOf(metadata)?.first;
    return leader?.name === name && leader.uid === uid && metadata.deletionTimestamp === undefined;
  });
}

/** One round for an agent that is not being deleted. */
export async function settleInstall(
  deps: InstallDependencies,
  draft: ControllerAgent,
  signal: AbortSignal,
): Promise<StepResult> {
  const mark = installMarkOf(draft.metadata);
  if (mark === undefined) return CONTINUE;
  if (mark.first === undefined) return await settleFirst(deps, draft, mark, signal);
  const first = await findFirst(deps, draft, mark.first, signal);
  const isGone = first === undefined || first.metadata.uid !== mark.first.uid;
  const isMarked = first !== undefined && installMarkOf(first.metadata) !== undefined;
  if (isGone || (isMarked && first.metadata.deletionTimestamp !== undefined)) {
    return await takeBack(deps, draft, {}, signal);
  }
  return isMarked ? CONTINUE : await show(deps, draft, signal);
}

/** The version is part of the delete: a commit that came first wins. */
async function settleFirst(
  deps: InstallDependencies,
  draft: ControllerAgent,
  { until }: InstallMark,
  signal: AbortSignal,
) {
  const left = until - deps.clock.now();
  if (left > 0) return continueAndRequeueAfter(left);
  const { resourceVersion } = draft.metadata;
  return await takeBack(deps, draft, resourceVersion === undefined ? {} : { resourceVersion }, signal);
}

/** Its answer decides about deleting agents, so when the cache does not know the first one, a live read is needed. */
async function findFirst(
  { api, caches }: InstallDependencies,
  draft: ControllerAgent,
  first: { name: string; uid: string },
  signal: AbortSignal,
): Promise<Pick<ControllerAgent, 'metadata'> | undefined> {
  const known = caches.agents.get(agentKey(draft.metadata.namespace, first.name));
  if (known?.metadata.uid === first.uid) return known;
  return await orUndefined(api.get(Agents, refOf({ ...draft.metadata, name: first.name }), { signal }));
}

async function takeBack(
  { api, log }: InstallDependencies,
  { metadata }: ControllerAgent,
  options: DeleteOptions,
  signal: AbortSignal,
): Promise<StepResult> {
  const precondition = metadata.uid === undefined ? options : { ...options, uid: metadata.uid };
  try {
    await api.delete(Agents, refOf(metadata), { ...precondition, propagationPolicy: 'Background', signal });
    log.info({ namespace: metadata.namespace, agent: metadata.name }, 'an install was not committed: agent taken back');
  } catch (error) {
    // It has changed: the change triggers the next reconcile.
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
  return DONE;
}

async function show({ api }: InstallDependencies, draft: ControllerAgent, signal: AbortSignal): Promise<StepResult> {
  const { resourceVersion } = draft.metadata;
  const body = { metadata: { resourceVersion, annotations: { [ANNOTATION_INSTALLING]: null } } };
  const written = await api.patch(Agents, refOf(draft.metadata), body, { type: 'merge', signal });
  draft.metadata = written.metadata;
  return CONTINUE;
}

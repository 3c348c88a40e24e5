/** Agent: slot, handle, and an orderly end. Its totals are written by src/controllers/totals, never here. */
import { AgentMemories } from '../../api/v1alpha1/agent-memory.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../../api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../../api/v1alpha1/agent-skill.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { installMarkOf } from '../../api/installing.js';
import { objectKey } from '../../api/meta.js';
import type { ResourceType } from '../../api/meta.js';
import { keptText } from '../../run/outcome.js';
import type { Box } from '../../api/v1alpha1/box.js';
import type { Workspace } from '../../api/v1alpha1/workspace.js';
import { ArchiveUnavailableError } from '../../archive/types.js';
import type { ArchiveWriter } from '../../archive/types.js';
import type { Cache, CacheChange, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import { isoNow } from '../../runtime/clock.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import { CONTINUE, DONE, requeueAfter, runSteps } from '../../runtime/steps.js';
import type { Step, StepResult } from '../../runtime/steps.js';
import { all } from '../common/controller-part.js';
import type { ControllerPart } from '../common/controller-part.js';
import { deleteObjects } from '../common/delete-objects.js';
import { ensureFinalizer, releaseFinalizer } from '../common/finalizer.js';
import { setReady } from '../common/ready.js';
import { patchStatus } from '../common/status-patch.js';
import { AgentDirectory } from './directory.js';
import { removeClaim } from '../workspace-volume/claim.js';
import { countInstall } from './install-count.js';
import { followersOf, settleInstall, watchInstalls } from './install.js';
import { agentStatus, browserConditions, handleConditions, whyNotReady } from './status.js';
import type { RunClaim } from './status.js';
import { ensureWorkspace, watchWorkspaces } from './workspace.js';
import type { AgentChild } from '../../projections/agent-child.js';
import type { ControllerAgent } from '../../projections/agent.js';
import { BY_AGENT, agentKey } from '../../projections/indexes.js';
import type { StorageClassProjection } from '../../projections/storage-class.js';
import type { VolumeClaimProjection } from '../../projections/volume-claim.js';

/** A run, with its claim. */
interface RunOfAgent extends AgentChild {
  status?: { claim?: RunClaim | undefined } | undefined;
}

export interface AgentDependencies {
  api: Pick<KubeApi, 'get' | 'create' | 'patch' | 'delete'>;
  clock: Clock;
  log: Logger;
  /** Absent without an archive. */
  archive?: Pick<ArchiveWriter, 'purge'> | undefined;
  caches: {
    agents: Cache<ControllerAgent>;
    boxes: Cache<Box>;
    workspaces: Cache<Workspace>;
    triggers: Cache<AgentChild>;
    schedules: Cache<AgentChild>;
    skills: Cache<AgentChild>;
    memories: Cache<AgentChild>;
    runs: Cache<RunOfAgent>;
    volumeClaims: Cache<VolumeClaimProjection>;
    storageClasses: Cache<StorageClassProjection>;
  };
}

/** Cache events wake the agent earlier; this covers a lost event, and the next batch of deletes. */
const DELETION_RECHECK_MS = 2_000;

/** How long a deletion waits before it tries the archive again. */
const ARCHIVE_RETRY_MS = 10_000;

type AgentStep = Step<ControllerAgent, AgentDirectory>;

/** The controller of Agent. */
export function createAgentController(deps: AgentDependencies): ControllerPart {
  const directory = new AgentDirectory(deps.caches);
  const steps = agentSteps(deps);
  return {
    name: 'agent',
    workers: 4,
    watch: (enqueue) =>
      all([
        directory.watch(enqueue),
        watchChildren(deps, enqueue),
        watchRunClaims(deps, enqueue),
        watchWorkspaces(deps, enqueue),
        watchInstalls(deps, enqueue),
      ]),
    async reconcile(key, signal): Promise<ReconcileResult | void> {
      directory.refresh();
      const agent = deps.caches.agents.get(key);
      if (agent === undefined) return;
      return await runSteps({
        object: agent,
        inputs: directory,
        steps,
        writeStatus: (draft, abort) => patchStatus(deps.api, { type: Agents, before: agent, draft }, abort),
        signal,
      });
    },
  };
}

/** Children matter only when they disappear: an agent that is being deleted waits for the last one to go. */
function watchChildren({ caches }: AgentDependencies, enqueue: (key: string) => void): () => void {
  const onGone = ({ previous, current }: CacheChange<AgentChild>) => {
    if (current !== undefined || previous === undefined) return;
    const agent = caches.agents.get(agentKey(previous.metadata.namespace, previous.spec.agent));
    if (agent?.metadata.deletionTimestamp !== undefined) enqueue(objectKey(agent.metadata));
  };
  return all(childrenOf(caches).map(([, cache]) => cache.onChange(onGone)));
}

/** A claim tells what the pod of a run can do. */
function watchRunClaims({ caches }: AgentDependencies, enqueue: (key: string) => void): () => void {
  return caches.runs.onChange(({ previous, current }) => {
    if (current?.status?.claim === undefined || previous?.status?.claim !== undefined) return;
    enqueue(agentKey(current.metadata.namespace, current.spec.agent));
  });
}

/** What is deleted with an agent; whatever could start another run goes first. */
function childrenOf(caches: AgentDependencies['caches']): readonly [ResourceType, Cache<AgentChild>][] {
  return [
    [AgentTriggers, caches.triggers],
    [AgentSchedules, caches.schedules],
    [AgentRuns, caches.runs],
    [AgentSkills, caches.skills],
    [AgentMemories, caches.memories],
  ];
}

/** deleted? -> finalizer -> installed? -> counted? -> slot, handle and Ready -> volume of its workspace. */
function agentSteps(deps: AgentDependencies): readonly AgentStep[] {
  return [
    {
      name: 'finalize',
      run: (draft, _directory, signal) =>
        draft.metadata.deletionTimestamp === undefined ? CONTINUE : finalizeAgent(deps, draft, signal),
    },
    {
      name: 'finalizer',
      run: async (draft, _directory, signal) => {
        await ensureFinalizer(deps.api, Agents, draft, signal);
        return CONTINUE;
      },
    },
    { name: 'install', run: (draft, _directory, signal) => settleInstall(deps, draft, signal) },
    {
      name: 'count',
      run: async (draft, _directory, signal) => {
        await countInstall(deps.api, draft, signal);
        return CONTINUE;
      },
    },
    {
      name: 'standing',
      run: (draft, directory) => {
        const standing = directory.standing(draft);
        const now = isoNow(deps.clock);
        draft.status = { ...agentStatus(draft, standing), conditions: handleConditions(draft, standing, now) };
        const runs = deps.caches.runs.byIndex(BY_AGENT, objectKey(draft.metadata));
        const claims = runs.flatMap(({ status }) => (status?.claim === undefined ? [] : [status.claim]));
        draft.status.conditions = browserConditions(draft, claims, now);
        setReady(draft, whyNotReady(draft, standing), deps.clock);
        return CONTINUE;
      },
    },
    { name: 'workspace', run: (draft, _directory, signal) => ensureWorkspace(deps, draft, signal) },
  ];
}

/**
 * Its objects first, so that every run is counted while the agent exists; then its rows in the archive, and its files. A run
 * that is created in the last moment outlives the agent; the run controller ends it as AgentNotFound, and it counts for
 * Box and Workspace.
 */
async function finalizeAgent(
  deps: AgentDependencies,
  draft: ControllerAgent,
  signal: AbortSignal,
): Promise<StepResult> {
  const { api, caches } = deps;
  const key = objectKey(draft.metadata);
  // Installed and then deleted: it was installed.
  await countInstall(api, draft, signal);
  // Committed and then deleted: it can be asked until the last of the others has been shown.
  let left = installMarkOf(draft.metadata) === undefined ? followersOf(caches.agents, draft).length : 0;
  for (const [type, cache] of childrenOf(caches)) {
    const children = cache.byIndex(BY_AGENT, key);
    left += children.length;
    await deleteObjects(api, type, children, signal);
  }
  if (left > 0) {
    const message = 'the agent is being deleted; it waits until its runs and all else that belongs to it are gone';
    setReady(draft, { reason: 'Deleting', message }, deps.clock);
    return requeueAfter(DELETION_RECHECK_MS);
  }
  if (!(await purgeArchive(deps, draft, signal))) return requeueAfter(ARCHIVE_RETRY_MS);
  await removeClaim(api, draft, signal);
  await releaseFinalizer(api, Agents, draft, signal);
  deps.log.info({ namespace: draft.metadata.namespace, agent: draft.metadata.name }, 'agent released');
  return DONE;
}

/** All runs are gone by now, so nothing is archived any more. False while the archive is unavailable. */
async function purgeArchive({ archive, clock }: AgentDependencies, draft: ControllerAgent, signal: AbortSignal) {
  try {
    await archive?.purge(draft.metadata.uid ?? '', signal);
    return true;
  } catch (error) {
    if (!(error instanceof ArchiveUnavailableError)) throw error;
    setReady(draft, { reason: 'ArchiveUnavailable', message: keptText('ArchiveUnavailable') }, clock);
    return false;
  }
}

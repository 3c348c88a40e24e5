/**
 * Where /workspace of an agent is. No effects; the agent controller creates the volume claim
 * that the plan asks for, and the run controller starts no run while it says `wait` or `create`: a run that wrote into a volume
 * of its own would lose its files silently.
 * See docs/architecture.md#memory-and-files.
 */
import type { ConditionReason } from '../../api/condition-reasons.js';
import type { ObjectMeta } from '../../api/meta.js';
import type { Box } from '../../api/v1alpha1/box.js';
import type { Cache } from '../../kube/types.js';
import type { StorageClassProjection } from '../../projections/storage-class.js';
import type { VolumeClaimProjection } from '../../projections/volume-claim.js';

/** Name of the claim of an agent, like that of its Secret: an Agent's name is at most 36 characters. */
export function claimNameOf(agent: string): string {
  return `${agent}-workspace`;
}

export interface VolumeFacts {
  agent: { name: string; uid: string };
  settings: Box['spec']['workspaceVolume'];
  /** The claim of that name with our label, whoever owns it. */
  claim: VolumeClaimProjection | undefined;
  classes: Iterable<StorageClassProjection>;
}

/** What to do, and what condition WorkspacePersistent says about it. */
export type VolumePlan = { reason: ConditionReason; message: string } & (
  | { use: 'claim'; claimName: string; bound: boolean }
  | { use: 'ephemeral' }
  /** The claim has to be created; no run starts before it exists. */
  | { use: 'create'; storageClassName: string }
  /** No run starts. */
  | { use: 'wait' }
);

export interface VolumeCaches {
  volumeClaims: Pick<Cache<VolumeClaimProjection>, 'get'>;
  storageClasses: Pick<Cache<StorageClassProjection>, 'values'>;
}

/** The plan for an agent of the Box, from what the caches show; `made` is a claim that they may not show yet. */
export function volumeOf(
  caches: VolumeCaches,
  { metadata: { name, uid = '', namespace = '' } }: { metadata: ObjectMeta },
  box: Pick<Box, 'spec'>,
  made?: VolumeClaimProjection,
): VolumePlan {
  return planVolume({
    agent: { name, uid },
    settings: box.spec.workspaceVolume,
    claim: made ?? caches.volumeClaims.get(`${namespace}/${claimNameOf(name)}`),
    classes: caches.storageClasses.values(),
  });
}

export function planVolume(facts: VolumeFacts): VolumePlan {
  const { settings, claim, agent } = facts;
  if (settings.mode === 'ephemeral') return { use: 'ephemeral', reason: 'Ephemeral', message: ephemeral(claim) };
  if (claim === undefined) return withoutClaim(facts);
  if (claim.ownerUid !== agent.uid) {
    const next = claim.deleting
      ? 'it is being deleted; a new one is made after that'
      : `delete it (kubectl delete pvc ${claim.name} -n ${claim.namespace}), then a new one is made`;
    return wait('VolumeForeign', `volume claim ${claim.name} does not belong to this agent: ${next}`);
  }
  if (claim.deleting) {
    const message = `volume claim ${claim.name} is being deleted with all files; a new, empty one is made when no pod uses it any more`;
    return wait('VolumeDeleting', message);
  }
  if (claim.phase === 'Lost') {
    const message = `the volume behind claim ${claim.name} is gone, and the files with it: delete the claim (kubectl delete pvc ${claim.name} -n ${claim.namespace}), then a new, empty one is made`;
    return wait('VolumeLost', message);
  }
  const kept = `files in /workspace are kept between runs on volume claim ${claim.name}`;
  const bound = claim.phase === 'Bound';
  return bound
    ? { use: 'claim', claimName: claim.name, bound, reason: 'VolumeBound', message: kept }
    : {
        use: 'claim',
        claimName: claim.name,
        bound,
        reason: 'VolumePending',
        message: `${kept}; it has no volume yet, which is normal before the first run: kubectl describe pvc tells what it waits for`,
      };
}

/** Whether runs have to wait: a claim that has to be made is not there yet. */
export function mustWait({ use }: VolumePlan): boolean {
  return use === 'wait' || use === 'create';
}

function withoutClaim({ settings, classes }: VolumeFacts): VolumePlan {
  const all = [...classes];
  const wanted = settings.storageClassName;
  const found = wanted === undefined ? defaultClass(all) : all.find(({ name }) => name === wanted);
  if (found !== undefined) {
    const message = `a volume claim of ${settings.size} in StorageClass ${found.name} is being made`;
    return { use: 'create', storageClassName: found.name, reason: 'VolumeMissing', message };
  }
  const reason = wanted === undefined ? 'NoStorageClass' : 'StorageClassNotFound';
  const what =
    wanted === undefined
      ? 'the cluster has no default StorageClass'
      : `there is no StorageClass ${wanted} in the cluster`;
  if (settings.mode === 'persistent') {
    const next =
      'runs wait until there is one, or until spec.workspaceVolume of the Box names another one or mode ephemeral';
    return wait(reason, `${what}: ${next}`);
  }
  const next =
    'files in /workspace go with the pod of each run; install one, or name one in spec.workspaceVolume of the Box';
  return { use: 'ephemeral', reason, message: `${what}: ${next}` };
}

/** Like Kubernetes: the youngest of several defaults. */
function defaultClass(classes: readonly StorageClassProjection[]): StorageClassProjection | undefined {
  return classes
    .filter(({ isDefault }) => isDefault)
    .toSorted((a, b) => b.createdAt - a.createdAt || (a.name < b.name ? -1 : 1))[0];
}

function wait(reason: ConditionReason, message: string): VolumePlan {
  return { use: 'wait', reason, message };
}

function ephemeral(claim: VolumeClaimProjection | undefined): string {
  const text = 'files in /workspace go with the pod of each run: spec.workspaceVolume.mode of the Box is ephemeral';
  return claim === undefined
    ? text
    : `${text}; volume claim ${claim.name} of an earlier setting is kept until the agent is deleted`;
}

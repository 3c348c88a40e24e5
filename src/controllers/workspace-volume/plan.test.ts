import { BoxSpec } from '../../api/v1alpha1/box.js';
import { claimNameOf, mustWait, planVolume } from './plan.js';
import type { VolumeFacts } from './plan.js';
import type { StorageClassProjection } from '../../projections/storage-class.js';
import type { VolumeClaimProjection } from '../../projections/volume-claim.js';

const STANDARD: StorageClassProjection = { name: 'standard', isDefault: true, createdAt: 1 };
const FAST: StorageClassProjection = { name: 'fast', isDefault: false, createdAt: 2 };

function claim(changes: Partial<VolumeClaimProjection> = {}): VolumeClaimProjection {
  return {
    uid: 'uid-claim',
    name: 'ada-workspace',
    namespace: 'bw-dev',
    agent: 'ada',
    ownerUid: 'uid-ada',
    deleting: false,
    phase: 'Bound',
    ...changes,
  };
}

function plan(settings: object, facts: Partial<Omit<VolumeFacts, 'settings'>> = {}) {
  return planVolume({
    agent: { name: 'ada', uid: 'uid-ada' },
    settings: BoxSpec.parse({ workspace: 'acme', workspaceVolume: settings }).workspaceVolume,
    claim: undefined,
    classes: [],
    ...facts,
  });
}

test('the longest agent name makes a claim name that Kubernetes takes', () => {
  expect(claimNameOf('a'.repeat(36))).toHaveLength(46);
});

describe('an agent without a claim', () => {
  it.each([
    ['auto and a default class', {}, [FAST, STANDARD], 'standard'],
    ['auto and a class by name', { storageClassName: 'fast' }, [STANDARD, FAST], 'fast'],
    ['persistent and a default class', { mode: 'persistent' }, [STANDARD], 'standard'],
    ['of two default classes the younger', {}, [STANDARD, { name: 'new', isDefault: true, createdAt: 9 }, FAST], 'new'],
  ])('gets one: %s', (_name, settings, classes, storageClassName) => {
    const found = plan(settings, { classes });
    expect(found).toMatchObject({ use: 'create', storageClassName });
    expect(mustWait(found)).toBe(true);
  });

  it.each([
    [
      'no default class',
      {},
      [FAST],
      'NoStorageClass',
      'the cluster has no default StorageClass: files in /workspace go',
    ],
    [
      'the class that is named is not there',
      { storageClassName: 'gone' },
      [STANDARD],
      'StorageClassNotFound',
      'there is no StorageClass gone in the cluster: files in /workspace go',
    ],
  ])('keeps its files in the pod in mode auto, and says so: %s', (_name, settings, classes, reason, message) => {
    const found = plan(settings, { classes });
    expect(found).toMatchObject({ use: 'ephemeral', reason, message: expect.stringContaining(message) });
    expect(mustWait(found)).toBe(false);
  });

  it('waits in mode persistent rather than losing files', () => {
    const found = plan({ mode: 'persistent' }, { classes: [FAST] });
    expect(found).toMatchObject({
      use: 'wait',
      reason: 'NoStorageClass',
      message: expect.stringContaining('runs wait until there is one'),
    });
    expect(mustWait(found)).toBe(true);
  });
});

describe('an agent with a claim', () => {
  it.each(['auto', 'persistent'])('keeps it in mode %s, also when no class is left', (mode) => {
    expect(plan({ mode }, { claim: claim() })).toMatchObject({
      use: 'claim',
      claimName: 'ada-workspace',
      bound: true,
      reason: 'VolumeBound',
    });
  });

  it('uses it before it has a volume: many classes make one for the first pod', () => {
    expect(plan({}, { claim: claim({ phase: 'Pending' }) })).toMatchObject({
      use: 'claim',
      bound: false,
      reason: 'VolumePending',
    });
  });

  it('leaves it alone in mode ephemeral, and says that it is kept', () => {
    expect(plan({ mode: 'ephemeral' }, { claim: claim() })).toMatchObject({
      use: 'ephemeral',
      message: expect.stringContaining('volume claim ada-workspace of an earlier setting is kept'),
    });
  });

  it.each([
    [
      'of an agent of the same name that was deleted',
      { ownerUid: 'uid-old', deleting: true },
      'VolumeForeign',
      'is being deleted',
    ],
    ['of nobody', { ownerUid: undefined }, 'VolumeForeign', 'kubectl delete pvc ada-workspace -n bw-dev'],
    ['that is being deleted', { deleting: true }, 'VolumeDeleting', 'with all files'],
    ['whose volume is gone', { phase: 'Lost' as const }, 'VolumeLost', 'kubectl delete pvc ada-workspace -n bw-dev'],
  ])('waits for a good one: %s', (_name, changes, reason, message) => {
    const found = plan({}, { claim: claim(changes), classes: [STANDARD] });
    expect(found).toMatchObject({ use: 'wait', reason, message: expect.stringContaining(message) });
  });
});

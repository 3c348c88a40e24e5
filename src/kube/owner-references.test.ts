import { Jobs, Pods } from './core-types.js';
import { apiVersionOf, controllerOwner, controllerReference, ownedBy } from './owner-references.js';

const job = { metadata: { name: 'run', uid: 'u-1' } };

test('a child made with a controller reference is owned by that UID alone', () => {
  const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'u-2' };
  const pod = { metadata: { name: 'p', ownerReferences: [other, controllerReference(Jobs, job)] } };

  expect(controllerOwner(pod)).toEqual({
    apiVersion: 'batch/v1',
    kind: 'Job',
    name: 'run',
    uid: 'u-1',
    controller: true,
  });
  expect(ownedBy(pod, 'u-1')).toBe(true);
  expect(ownedBy(pod, 'u-2')).toBe(false);
  expect(ownedBy({ metadata: { name: 'p' } }, 'u-1')).toBe(false);
});

test('an owner without a UID is refused: a reference by name could mean its successor', () => {
  expect(() => controllerReference(Jobs, { metadata: { name: 'run' } })).toThrow('Job run has no uid');
});

test('the core group has no slash in its apiVersion', () => {
  expect(apiVersionOf(Pods)).toBe('v1');
  expect(apiVersionOf(Jobs)).toBe('batch/v1');
});

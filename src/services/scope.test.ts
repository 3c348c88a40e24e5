import { Boxes, BoxSpec } from '../api/v1alpha1/box.js';
import type { ApiCaches } from './caches.js';
import type { Caller } from './keys/key-check.js';
import { chooseBox } from './scope.js';

test('a workspace without a Box is told a command that makes one', () => {
  const caches = { Box: { byIndex: () => [] } } as unknown as ApiCaches;
  const choose = () => chooseBox({ caches }, { workspace: 'acme' } as Caller, undefined);
  expect(choose).toThrow(/^this workspace has no Box; .*: echo '.*' \| kubectl apply -f -$/);
  let manifest = '';
  try {
    choose();
  } catch (error) {
    manifest = /'(.*)'/.exec((error as Error).message)?.[1] ?? '';
  }
  const { apiVersion, kind, spec } = JSON.parse(manifest) as Record<string, unknown>;
  expect(apiVersion).toBe(`${Boxes.group}/${Boxes.version}`);
  expect(kind).toBe('Box');
  expect(BoxSpec.parse(spec).workspace).toBe('acme');
});

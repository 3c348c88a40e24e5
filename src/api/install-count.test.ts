import { uncountedInstall, uncountedInstallOf } from './install-count.js';

const TEMPLATE = { namespace: 'bw-ws-acme', name: 'team', uid: 'uid-team' };

const read = (value: string | undefined, uid = 'uid-lead') =>
  uncountedInstallOf({
    uid,
    ...(value === undefined ? {} : { annotations: { 'boxwright.dev/uncounted-install': value } }),
  });

test('names the template for the agent that it stands on', () => {
  const mark = uncountedInstall(TEMPLATE, 'uid-lead');
  expect(mark).toBe('bw-ws-acme/team uid-team uid-lead');
  expect(read(mark)).toEqual(TEMPLATE);
});

test.each([
  ['no mark', undefined],
  ['the mark of a copied agent', 'bw-ws-acme/team uid-team uid-other'],
  ['an empty mark', ''],
  ['a mark without agent', 'bw-ws-acme/team uid-team'],
  ['another namespace than that of a workspace', 'kube-system/team uid-team uid-lead'],
  ['a name that no template has', 'bw-ws-acme/../x uid-team uid-lead'],
])('%s counts for nothing', (_what, value) => {
  expect(read(value)).toBeUndefined();
});

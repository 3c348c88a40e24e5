import { hostUsersOf } from './host-users.js';

const able = { userNamespaces: true };
const unable = { userNamespaces: false };

test.each<[string, Parameters<typeof hostUsersOf>[0], Parameters<typeof hostUsersOf>[1], false | undefined]>([
  ['every node can', {}, [able, able], false],
  ['one node cannot', {}, [able, unable], undefined],
  ['no node is known', {}, [], undefined],
  ['another runtime stands between', { runtimeClassName: 'gvisor' }, [able], undefined],
  ['the Box wants it', { hostUsers: false, runtimeClassName: 'kata' }, [unable], false],
  ['the Box does not want it', { hostUsers: true }, [able], undefined],
])('user namespaces: %s', (_name, spec, nodes, expected) => {
  expect(hostUsersOf(spec, nodes)).toBe(expected);
});

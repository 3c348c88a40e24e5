import { readRunToken } from './run-token.js';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const GOOD = {
  aud: ['boxwright-run'],
  exp: NOW / 1000 + 600,
  iss: 'https://kubernetes.default.svc',
  sub: 'system:serviceaccount:bw-lab:boxwright-runner',
  'kubernetes.io': {
    namespace: 'bw-lab',
    pod: { name: 'helper-1-a', uid: 'uid-pod' },
    serviceaccount: { name: 'boxwright-runner', uid: 'uid-sa' },
  },
};

function jwt(claims: unknown): string {
  return `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`;
}

test('the claims of a run token are read', () => {
  expect(readRunToken(jwt(GOOD), NOW)).toEqual({
    claims: {
      namespace: 'bw-lab',
      podName: 'helper-1-a',
      podUid: 'uid-pod',
      username: 'system:serviceaccount:bw-lab:boxwright-runner',
      expiresAt: NOW + 600_000,
    },
  });
});

test.each([
  ['random text', 'abc', 'the token is not a service-account token'],
  ['three parts that are not JSON', 'a.b.c', 'the token is not a service-account token'],
  ['four parts', `${jwt(GOOD)}.x`, 'the token is not a service-account token'],
  ['a token of 8 KiB and more', `${jwt(GOOD)}${'x'.repeat(8192)}`, 'the token is not a service-account token'],
  [
    'a legacy token without a pod',
    jwt({ ...GOOD, 'kubernetes.io': { namespace: 'bw-lab' } }),
    'the token is not one of a pod',
  ],
  ['no issuer', jwt({ ...GOOD, iss: '' }), 'the token is not one of a pod'],
  ['an expired token', jwt({ ...GOOD, exp: NOW / 1000 }), 'the token has expired'],
  [
    'a token for the API server',
    jwt({ ...GOOD, aud: ['https://kubernetes.default.svc'] }),
    'the token is not for boxwright-run',
  ],
  [
    'another service account',
    jwt({ ...GOOD, sub: 'system:serviceaccount:bw-lab:default' }),
    'the token is not one of a run',
  ],
  [
    'the runner account of another namespace',
    jwt({ ...GOOD, sub: 'system:serviceaccount:bw-other:boxwright-runner' }),
    'the token is not one of a run',
  ],
])('%s is refused', (_name, token, refused) => {
  expect(readRunToken(token, NOW)).toEqual({ refused });
});

import { readApiToken, readRunToken } from './pod-token.js';

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
      audience: 'boxwright-run',
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

const OF_API = {
  ...GOOD,
  aud: ['boxwright-gateway'],
  sub: 'system:serviceaccount:boxwright:boxwright-api',
  'kubernetes.io': {
    namespace: 'boxwright',
    pod: { name: 'boxwright-api-1', uid: 'uid-api' },
    serviceaccount: { name: 'boxwright-api', uid: 'uid-sa' },
  },
};

test('the claims of the token of an API pod are read', () => {
  expect(readApiToken(jwt(OF_API), NOW, 'boxwright')).toEqual({
    claims: {
      audience: 'boxwright-gateway',
      namespace: 'boxwright',
      podName: 'boxwright-api-1',
      podUid: 'uid-api',
      username: 'system:serviceaccount:boxwright:boxwright-api',
      expiresAt: NOW + 600_000,
    },
  });
});

test.each([
  ['the token of a run', GOOD, 'the token is not for boxwright-gateway'],
  [
    'one of a run for the audience of API pods',
    { ...GOOD, aud: ['boxwright-gateway'] },
    'the token is not one of an API pod',
  ],
  [
    'one for the API server',
    { ...OF_API, aud: ['https://kubernetes.default.svc'] },
    'the token is not for boxwright-gateway',
  ],
])('%s is not taken for one of an API pod', (_name, claims, refused) => {
  expect(readApiToken(jwt(claims), NOW, 'boxwright')).toEqual({ refused });
});

test('the token of an API pod of another installation is refused', () => {
  expect(readApiToken(jwt(OF_API), NOW, 'elsewhere')).toEqual({ refused: 'the token is not one of this installation' });
});

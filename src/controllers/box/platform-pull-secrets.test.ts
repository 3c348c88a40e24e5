import { RecordingApi } from '../../../test/builders/recording-api.js';
import { ServiceAccounts } from '../../kube/core-types.js';
import type { ServiceAccount } from '../../kube/core-types.js';
import { serviceAccountInformer } from '../../projections/managed-objects.js';
import { ensureObject } from '../common/ensure-object.js';
import { withPlatformPullSecrets } from './platform-pull-secrets.js';

const ANNOTATION = 'openshift.io/internal-registry-pull-secret-ref';
const OURS = { name: 'registry' };
const THEIRS = { name: 'boxwright-runner-dockercfg-x7k2p' };

function account(pullSecrets: { name: string }[], annotations: Record<string, string> = {}): ServiceAccount {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: {
      name: 'boxwright-runner',
      namespace: 'bw-a',
      labels: { 'app.kubernetes.io/managed-by': 'boxwright' },
      annotations,
    },
    automountServiceAccountToken: false,
    imagePullSecrets: pullSecrets,
  };
}

/** What is there after two passes, and how often it was written. */
async function kept(there: ServiceAccount): Promise<{ writes: number; after: ServiceAccount | undefined }> {
  const api = new RecordingApi();
  const cache = api.informer(serviceAccountInformer);
  api.seed(ServiceAccounts, there);
  const ensured = { type: ServiceAccounts, cache, desired: account([OURS]), adjust: withPlatformPullSecrets };
  for (let i = 0; i < 2; i++) await ensureObject(api, ensured, new AbortController().signal);
  return { writes: api.writes.length, after: api.peek(ServiceAccounts, 'bw-a/boxwright-runner') };
}

test.each([
  ['after ours', [OURS, THEIRS]],
  ['before ours', [THEIRS, OURS]],
])('what OpenShift has put %s stays, and nothing is written', async (_where, pullSecrets) => {
  const { writes, after } = await kept(account(pullSecrets, { [ANNOTATION]: THEIRS.name }));
  expect(writes).toBe(0);
  expect(after?.imagePullSecrets).toEqual(pullSecrets);
});

test('a repair of something else keeps it', async () => {
  const forged = account([{ name: 'mine' }, THEIRS], {
    [ANNOTATION]: THEIRS.name,
    'iam.gke.io/gcp-service-account': 'x',
  });
  const { writes, after } = await kept(forged);
  expect(writes).toBe(1);
  expect(after?.imagePullSecrets).toEqual([THEIRS, OURS]);
  expect(after?.metadata.annotations).toEqual({ [ANNOTATION]: THEIRS.name });
});

test.each([
  ['a pull secret of another account', account([OURS, { name: 'default-dockercfg-x7k2p' }])],
  ['a name that only begins so', account([OURS, { name: 'boxwright-runner-dockercfg-my.secret' }])],
  ['an annotation with another value', account([OURS], { [ANNOTATION]: 'mine' })],
])('%s goes', async (_what, forged) => {
  const { writes, after } = await kept(forged);
  expect(writes).toBe(1);
  expect(after?.imagePullSecrets).toEqual([OURS]);
  expect(after?.metadata.annotations ?? {}).toEqual({});
});

test('a list without end is cut', async () => {
  const many = Array.from({ length: 40 }, (_, i) => ({ name: `boxwright-runner-dockercfg-${i}` }));
  const { after } = await kept(account(many));
  expect(after?.imagePullSecrets).toHaveLength(9);
});

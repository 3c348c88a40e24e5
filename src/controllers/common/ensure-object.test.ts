import { NetworkPolicies, ServiceAccounts } from '../../kube/core-types.js';
import type { LimitRange, NetworkPolicy, ResourceQuota, ServiceAccount } from '../../kube/core-types.js';
import { RecordingApi } from '../../../test/builders/recording-api.js';
import { ensureObject, isAsDesired } from './ensure-object.js';
import { networkPolicyInformer, serviceAccountInformer } from '../../projections/managed-objects.js';

const signal = new AbortController().signal;
const metadata = { name: 'x', namespace: 'bw-a', labels: { 'app.kubernetes.io/managed-by': 'boxwright' } };

const policy = (spec: Record<string, unknown>): NetworkPolicy => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata,
  spec,
});
const quota = (hard: Record<string, string>): ResourceQuota => ({
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata,
  spec: { hard },
});
const limits = (amounts: Record<string, string>): LimitRange => ({
  apiVersion: 'v1',
  kind: 'LimitRange',
  metadata,
  spec: { limits: [{ type: 'Container', default: amounts, defaultRequest: amounts }] },
});
const deny = { podSelector: {}, policyTypes: ['Ingress', 'Egress'] };

describe('an object is as desired', () => {
  test.each([
    ['when it is equal', policy(deny), policy(deny), true],
    [
      'not when its selector was narrowed',
      policy({ ...deny, podSelector: { matchLabels: { a: 'b' } } }),
      policy(deny),
      false,
    ],
    [
      'not when a label of its selector is another text of the same amount',
      policy({ ...deny, podSelector: { matchLabels: { shard: '1000m' } } }),
      policy({ ...deny, podSelector: { matchLabels: { shard: '1' } } }),
      false,
    ],
    ['not when a rule was added', policy({ ...deny, egress: [{}] }), policy(deny), false],
    ['not when a list is shorter', policy({ ...deny, policyTypes: ['Ingress'] }), policy(deny), false],
    [
      'when an amount is written differently',
      quota({ cpu: '1', memory: '1Gi' }),
      quota({ cpu: '1000m', memory: '1024Mi' }),
      true,
    ],
    [
      'when the default of a container is written differently',
      limits({ memory: '1Gi', 'ephemeral-storage': '1' }),
      limits({ memory: '1024Mi', 'ephemeral-storage': '1000m' }),
      true,
    ],
    ['not when an amount is another', quota({ memory: '2Gi' }), quota({ memory: '1Gi' }), false],
  ])('%s', (_name, actual, desired, same) => {
    expect(isAsDesired(actual, desired)).toBe(same);
  });
});

describe('ensureObject', () => {
  const account: ServiceAccount = {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata,
    automountServiceAccountToken: false,
  };

  it('creates what is missing, and writes nothing the second time', async () => {
    const api = new RecordingApi();
    const cache = api.informer(networkPolicyInformer);
    await ensureObject(api, { type: NetworkPolicies, cache, desired: policy(deny) }, signal);
    await ensureObject(api, { type: NetworkPolicies, cache, desired: policy(deny) }, signal);
    expect(api.writes.map(({ verb }) => verb)).toEqual(['create']);
    expect(api.reads).toEqual([]);
  });

  it('repairs an object that lost our label, and keeps what others put into it', async () => {
    const api = new RecordingApi();
    const cache = api.informer(serviceAccountInformer);
    const imagePullSecrets = [{ name: 'registry' }];
    const theirs = {
      ...account,
      metadata: { name: 'x', namespace: 'bw-a', labels: { theirs: 'y' } },
      imagePullSecrets,
    };
    api.seed(ServiceAccounts, { ...theirs, automountServiceAccountToken: true });
    await ensureObject(api, { type: ServiceAccounts, cache, desired: account }, signal);
    expect(api.writes.map(({ verb }) => verb)).toEqual(['create', 'replace']);
    expect(api.peek(ServiceAccounts, 'bw-a/x')).toMatchObject({
      metadata: { labels: { ...metadata.labels, theirs: 'y' } },
      automountServiceAccountToken: false,
      imagePullSecrets,
    });
  });

  it('takes out annotations and pull secrets when it says which there are, and then writes nothing', async () => {
    const api = new RecordingApi();
    const cache = api.informer(serviceAccountInformer);
    const exact = { ...account, metadata: { ...metadata, annotations: {} }, imagePullSecrets: [] };
    const annotations = { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/x' };
    for (const forged of [
      { ...account, metadata: { ...metadata, annotations } },
      { ...account, imagePullSecrets: [{ name: 'theirs' }] },
    ]) {
      api.seed(ServiceAccounts, forged);
      api.clearRecords();
      for (let i = 0; i < 2; i++) await ensureObject(api, { type: ServiceAccounts, cache, desired: exact }, signal);
      expect(api.writes.map(({ verb }) => verb)).toEqual(['replace']);
      const repaired = api.peek(ServiceAccounts, 'bw-a/x');
      expect(repaired?.metadata.annotations ?? {}).toEqual({});
      expect(repaired?.imagePullSecrets ?? []).toEqual([]);
    }
    // As the API server stores it.
    api.seed(ServiceAccounts, account);
    api.clearRecords();
    await ensureObject(api, { type: ServiceAccounts, cache, desired: exact }, signal);
    expect(api.writes).toEqual([]);
  });

  it('does not overwrite a version that it did not see', async () => {
    const api = new RecordingApi();
    const seen = api.seed(NetworkPolicies, policy({ podSelector: {} }));
    api.failNext({ verb: 'get', error: new Error('the cache is enough') });
    await api.patch(NetworkPolicies, { name: 'x', namespace: 'bw-a' }, { spec: { a: 1 } }, { type: 'merge' });
    const cache = { get: () => seen };
    const repair = ensureObject(api, { type: NetworkPolicies, cache, desired: policy(deny) }, signal);
    await expect(repair).rejects.toThrow('409');
  });
});

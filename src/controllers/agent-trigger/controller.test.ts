import { findCondition } from '../../api/conditions.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import type { AgentTrigger } from '../../api/v1alpha1/agent-trigger.js';
import { AgentSpec, Agents } from '../../api/v1alpha1/agent.js';
import { createLogger } from '../../observability/logger.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { RecordingApi } from '../../../test/builders/recording-api.js';
import { createAgentTriggerController, missingToken } from './controller.js';
import type { KeyIds } from './controller.js';
import { controllerTriggerInformer } from '../../projections/agent-trigger.js';
import { controllerAgentInformer } from '../../projections/agent.js';
import { controllerWebhookKeysInformer } from '../../projections/webhook-keys.js';
import { Secrets } from '../../kube/core-types.js';

const KEY = 'bw-dev/a.t';
const apiVersion = 'boxwright.dev/v1alpha1';
const signal = new AbortController().signal;
const KEYS: KeyIds = { current: 'k2', all: new Set(['k1', 'k2']) };
const TOKEN = 'ab'.repeat(16);

function setup(spec: Partial<AgentTrigger['spec']> = {}, hasAgent = true) {
  const clock = new FakeClock();
  const api = new RecordingApi({ clock });
  if (hasAgent) {
    api.seed(Agents, {
      apiVersion,
      kind: 'Agent',
      metadata: { name: 'a', namespace: 'bw-dev' },
      spec: AgentSpec.parse({ name: 'A' }),
    });
  }
  api.seed(AgentTriggers, {
    apiVersion,
    kind: 'AgentTrigger',
    metadata: { name: 'a.t', namespace: 'bw-dev' },
    spec: { agent: 'a', name: 'T', description: '', body: 'do it', methods: ['POST'], enabled: true, ...spec },
    status: { fireCount: 3 },
  });
  const caches = {
    triggers: api.informer(controllerTriggerInformer),
    agents: api.informer(controllerAgentInformer),
    webhookKeys: api.informer(controllerWebhookKeysInformer),
  };
  const log = createLogger('test', 'silent', { write: () => undefined });
  let keyIds: KeyIds | undefined = KEYS;
  const controller = createAgentTriggerController({
    api,
    clock,
    log,
    caches,
    keyIds: () => keyIds,
    random: (size) => Buffer.alloc(size, 0xab),
  });
  return {
    api,
    controller,
    reconcile: () => controller.reconcile(KEY, signal),
    trigger: () => api.peek(AgentTriggers, KEY),
    loseKeyring: () => (keyIds = undefined),
  };
}

const reason = (trigger: ReturnType<ReturnType<typeof setup>['trigger']>) =>
  findCondition(trigger?.status?.conditions, 'Ready')?.reason;

describe('a trigger', () => {
  it('gets token and key in one write that touches nothing else, and then nothing', async () => {
    const { api, reconcile, trigger } = setup();
    const { resourceVersion } = trigger()?.metadata ?? {};
    await reconcile();
    expect(api.writes.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual([
      'patch agenttriggers',
      'patch agenttriggers/status',
    ]);
    expect(api.writes[0]?.body).toEqual({ metadata: { resourceVersion }, spec: { tokenId: TOKEN, keyId: 'k2' } });
    expect(trigger()?.spec).toMatchObject({ body: 'do it', tokenId: TOKEN, keyId: 'k2' });
    expect(trigger()?.status?.fireCount).toBe(3);
    expect(reason(trigger())).toBe('Ready');
    api.clearRecords();
    await reconcile();
    expect([...api.writes, ...api.reads]).toEqual([]);
  });

  it('waits for the keyring', async () => {
    const { api, reconcile, loseKeyring } = setup();
    loseKeyring();
    expect(await reconcile()).toEqual({ requeueAfterMs: 1000 });
    expect(api.writes).toEqual([]);
  });

  test.each([
    ['AgentNotFound', { tokenId: TOKEN, keyId: 'k1' }, false],
    ['KeyNotFound', { tokenId: TOKEN, keyId: 'k0' }, true],
    ['Ready', { tokenId: TOKEN, keyId: 'k1' }, true],
  ])('says %s', async (expected, spec, hasAgent) => {
    const { api, reconcile, trigger } = setup(spec, hasAgent);
    await reconcile();
    expect(reason(trigger())).toBe(expected);
    expect(api.writes.map(({ resource }) => resource)).toEqual(['agenttriggers/status']);
  });
});

describe('a trigger with spec.verify', () => {
  const VERIFIED = { tokenId: TOKEN, keyId: 'k1', verify: { scheme: 'standard-webhooks', key: 'acme' } } as const;
  const LABELLED = { labels: { 'boxwright.dev/credential': 'true' } };

  const secret = (data: Record<string, string>, more: object = LABELLED) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'boxwright-webhook-keys', namespace: 'bw-dev', ...more },
    data: Object.fromEntries(Object.entries(data).map(([name, text]) => [name, Buffer.from(text).toString('base64')])),
  });

  test.each([
    ['there is no Secret', undefined, 'there is no Secret boxwright-webhook-keys in this namespace: create it with'],
    ['it has no label', secret({ acme: 'whsec_b3RoZXI=' }, {}), 'label it boxwright.dev/credential=true'],
    ['it lacks the entry', secret({ other: 'whsec_b3RoZXI=' }), 'there is no entry acme in Secret'],
    ['no key fits the scheme', secret({ acme: 'no base64' }), 'holds no key of the form of standard-webhooks'],
  ])('says what is missing when %s', async (_name, there, message) => {
    const { api, reconcile, trigger } = setup(VERIFIED);
    if (there !== undefined) api.seed(Secrets, there);
    await reconcile();
    const ready = findCondition(trigger()?.status?.conditions, 'Ready');
    expect(ready).toMatchObject({ status: 'False', reason: 'WebhookKeyNotFound' });
    expect(ready?.message).toContain(message);
    expect(ready?.message).toContain('until then every call of the URL answers 404');
    expect([...api.reads, ...api.writes.map(({ resource }) => resource)]).toEqual(['agenttriggers/status']);
  });

  test('is looked at again when the Secret changes, and keeps its spec; others are not', async () => {
    const { api, controller, reconcile, trigger } = setup(VERIFIED);
    const asked: string[] = [];
    controller.watch((key) => asked.push(key));
    api.seed(AgentTriggers, {
      apiVersion,
      kind: 'AgentTrigger',
      metadata: { name: 'a.plain', namespace: 'bw-dev' },
      spec: { agent: 'a', name: 'P', description: '', body: 'do it', methods: ['POST'], enabled: true },
    });
    await reconcile();
    asked.length = 0;
    api.seed(Secrets, secret({ acme: 'whsec_b3RoZXI=' }));
    expect(asked).toEqual([KEY]);
    await reconcile();
    expect(reason(trigger())).toBe('Ready');
    asked.length = 0;
    api.vanish(Secrets, 'bw-dev/boxwright-webhook-keys');
    expect(asked).toEqual([KEY]);
    await reconcile();
    expect(reason(trigger())).toBe('WebhookKeyNotFound');
    expect(trigger()?.spec.verify).toEqual(VERIFIED.verify);
  });

  test('is not moved by a Secret of another name or namespace', async () => {
    const { api, controller, reconcile, trigger } = setup(VERIFIED);
    const asked: string[] = [];
    controller.watch((key) => asked.push(key));
    api.seed(Secrets, secret({ acme: 'whsec_b3RoZXI=' }, { ...LABELLED, name: 'a-secrets' }));
    api.seed(Secrets, secret({ acme: 'whsec_b3RoZXI=' }, { ...LABELLED, namespace: 'bw-other' }));
    expect(asked).toEqual([]);
    await reconcile();
    expect(reason(trigger())).toBe('WebhookKeyNotFound');
  });
});

test.each([
  ['both for a new trigger', {}, { tokenId: TOKEN, keyId: 'k2' }],
  ['only the key for a restored one', { tokenId: 'cd'.repeat(16) }, { keyId: 'k2' }],
  ['only the token after a rotation by hand', { keyId: 'k1' }, { tokenId: TOKEN }],
  ['nothing when both are there', { tokenId: TOKEN, keyId: 'k1' }, undefined],
])('sets %s', (_name, spec, expected) => {
  expect(missingToken(spec, KEYS, (size) => Buffer.alloc(size, 0xab))).toEqual(expected);
});

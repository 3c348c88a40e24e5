/** spec.verify of a trigger on a real API server: Secret, its rotation and its loss, as the whole API process and the controller see them. */
import { createHmac } from 'node:crypto';
import { AgentTriggers } from '../../src/api/v1alpha1/agent-trigger.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { findCondition } from '../../src/api/conditions.js';
import { Namespaces, Secrets } from '../../src/kube/core-types.js';
import { startApiProcess } from '../builders/api-process.js';
import type { ApiProcess } from '../builders/api-process.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { findTools } from '../builders/kubectl.js';
import { RELEASE_NAMESPACE, startBaseControllers } from '../builders/base-controllers.js';
import type { RunningControllers } from '../builders/base-controllers.js';

const NAMESPACE = 'bw-signed';
const TRIGGER = { namespace: NAMESPACE, name: 'greeter.hook' };
const SECRET = { namespace: NAMESPACE, name: 'boxwright-webhook-keys' };
const LABEL = 'boxwright.dev/credential';

let cluster: TestApiServer;
let controllers: RunningControllers;
let api: ApiProcess;
let url: string;

beforeAll(async () => {
  cluster = await startApiServer({ own: true });
  await cluster.applyCrds();
  api = await startApiProcess(cluster, 'signed');
  controllers = await startBaseControllers(cluster);
  const made = await api.call('upsert_trigger', { agentId: 'signed.greeter', name: 'Hook', body: 'do it' });
  url = `${api.url}${new URL(made.payload['url'] as string).pathname}`;
  const spec = { verify: { scheme: 'github', key: 'repo' } };
  await cluster.api.patch(AgentTriggers, TRIGGER, { spec }, { type: 'merge' });
});

afterAll(async () => {
  await controllers.stop();
  await api.stop();
  await cluster.stop();
});

const BODY = '{"ref":"main"}';

async function deliver(key: string): Promise<number> {
  const signature = `sha256=${createHmac('sha256', key).update(BODY).digest('hex')}`;
  const headers = { 'content-type': 'application/json', 'x-hub-signature-256': signature };
  return (await fetch(url, { method: 'POST', body: BODY, headers })).status;
}

const until = (key: string, status: number) =>
  eventually(async () => (await deliver(key)) === status, `a call signed with ${key} never answered ${status}`);

const untilReady = (reason: string, text = '') =>
  eventually(async () => {
    const ready = findCondition((await cluster.api.get(AgentTriggers, TRIGGER)).status?.conditions, 'Ready');
    return ready?.reason === reason && ready.message.includes(text);
  }, `the trigger never said ${reason} ${text}`);

const patchSecret = (body: object) => cluster.api.patch(Secrets, SECRET, body, { type: 'merge' });
const entry = (text: string) => ({ data: { repo: Buffer.from(text).toString('base64') } });

test('by the roles of the chart, api and controller see Secrets of this name, and no other', async () => {
  const tools = await findTools();
  const values = [
    '--kube-version',
    '1.34.0',
    '--set',
    'publicUrl=http://localhost',
    '--show-only',
    'templates/rbac.yaml',
  ];
  const chart = await tools.helm(['template', 'boxwright', 'charts/boxwright', '-n', RELEASE_NAMESPACE, ...values]);
  await cluster.api.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: RELEASE_NAMESPACE } });
  const applied = await tools.kubectl(cluster.kubeconfig, ['apply', '-f', '-'], chart.stdout);
  expect(applied).toMatchObject({ ok: true, stderr: '' });
  // The request of the watch: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources
  const named = '/api/v1/secrets?limit=500&fieldSelector=metadata.name%3Dboxwright-webhook-keys';
  for (const process of ['api', 'controller']) {
    const as = `--as=system:serviceaccount:${RELEASE_NAMESPACE}:boxwright-${process}`;
    const run = (...args: string[]) => tools.kubectl(cluster.kubeconfig, [...args, as]);
    expect(await run('get', '--raw', named)).toMatchObject({ ok: true });
    for (const args of [
      ['get', '--raw', '/api/v1/secrets'],
      ['get', '--raw', named.replace('webhook-keys', 'ca')],
      ['get', 'secrets', '-n', NAMESPACE],
      ['get', 'secret', 'greeter-secrets', '-n', NAMESPACE],
      ['delete', 'secret', 'boxwright-webhook-keys', '-n', NAMESPACE],
    ]) {
      expect(await run(...args)).toMatchObject({ ok: false, stderr: expect.stringContaining('orbidden') });
    }
  }
});

test('without its Secret the trigger says what to create, and answers 404', async () => {
  await untilReady('WebhookKeyNotFound', `label ${LABEL}=true and the entry repo`);
  await until('first', 404);
  expect((await cluster.api.list(AgentRuns, { namespace: NAMESPACE })).items).toEqual([]);
});

test('a Secret without the label is not used', async () => {
  await cluster.api.create(Secrets, { apiVersion: 'v1', kind: 'Secret', metadata: SECRET, ...entry('first') });
  await untilReady('WebhookKeyNotFound', 'label it');
  expect(await deliver('first')).toBe(404);
});

test('a labelled one is, as soon as the watch shows it; two keys hold while one is replaced', async () => {
  await patchSecret({ metadata: { labels: { [LABEL]: 'true' } } });
  await until('first', 202);
  await untilReady('Ready');
  expect(await deliver('second')).toBe(404);
  await patchSecret(entry('second\nfirst\n'));
  await until('second', 202);
  expect(await deliver('first')).toBe(202);
  await patchSecret(entry('second\n'));
  await until('first', 404);
  expect(await deliver('second')).toBe(202);
});

test('an update by a tool keeps spec.verify; a scheme that nobody has is refused', async () => {
  await api.call('upsert_trigger', { agentId: 'signed.greeter', slug: 'hook', description: 'On push.' });
  const { spec } = await cluster.api.get(AgentTriggers, TRIGGER);
  expect(spec).toMatchObject({ description: 'On push.', verify: { scheme: 'github', key: 'repo' } });
  for (const verify of [{ scheme: 'none' }, { key: 'a/b' }, { key: null }]) {
    const patch = cluster.api.patch(AgentTriggers, TRIGGER, { spec: { verify } }, { type: 'merge' });
    await expect(patch).rejects.toThrow('spec.verify');
  }
});

test('a Secret that is deleted opens nothing', async () => {
  await cluster.api.delete(Secrets, SECRET);
  await until('second', 404);
  await untilReady('WebhookKeyNotFound', 'there is no Secret');
});

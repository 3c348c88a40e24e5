import { RecordingApi, apiError } from '../../../test/builders/recording-api.js';
import { Secrets } from '../../kube/core-types.js';
import { apiWebhookKeysInformer } from '../../projections/webhook-keys.js';
import { createWebhookKeyReader } from './webhook-keys.js';

const signal = new AbortController().signal;
const TRIGGER = { agent: { box: 'dev', agent: 'a' }, verify: { scheme: 'github', key: 'repo' } } as const;

function setup(labels: Record<string, string> = { 'boxwright.dev/credential': 'true' }) {
  const api = new RecordingApi();
  const cache = api.informer(apiWebhookKeysInformer);
  const store = (text: string) =>
    api.seed(Secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'boxwright-webhook-keys', namespace: 'bw-dev', labels },
      data: { repo: Buffer.from(text).toString('base64') },
    });
  const read = createWebhookKeyReader({ cache, api });
  const find = async () => (await read(TRIGGER, signal)).map(String);
  return { api, cache, store, find };
}

test('keys come from the cache without a request, also after they were replaced', async () => {
  const { api, store, find } = setup();
  expect(await find()).toEqual([]);
  store('old');
  expect(await find()).toEqual(['old']);
  store('new\nold\n');
  expect(await find()).toEqual(['new', 'old']);
  expect(api.reads).toEqual([]);
});

test('while the watch is behind they are read live', async () => {
  const { api, cache, store, find } = setup();
  Object.assign(cache, { isHealthy: () => false });
  expect(await find()).toEqual([]);
  store('key');
  expect(await find()).toEqual(['key']);
  expect(api.reads.map(({ key }) => key)).toEqual(Array(2).fill('bw-dev/boxwright-webhook-keys'));
  api.failNext({ verb: 'get', error: apiError(503, 'ServiceUnavailable') });
  await expect(find()).rejects.toThrow('injected');
});

test('an entry that only objects of JavaScript have is none', async () => {
  const { api, cache, store } = setup();
  store('key');
  const read = createWebhookKeyReader({ cache, api });
  const verify = { scheme: 'github', key: 'constructor' } as const;
  expect(await read({ ...TRIGGER, verify }, signal)).toEqual([]);
});

test('a Secret without the label has no keys, cached or read live', async () => {
  const { cache, store, find } = setup({});
  store('key');
  expect(await find()).toEqual([]);
  Object.assign(cache, { isHealthy: () => false });
  expect(await find()).toEqual([]);
});

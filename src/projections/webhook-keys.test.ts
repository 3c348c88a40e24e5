import { projectApiWebhookKeys, projectControllerWebhookKeys } from './webhook-keys.js';

const secret = (labels: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'boxwright-webhook-keys', namespace: 'bw-dev', labels },
  data: { hooks: Buffer.from('key-of-the-sender').toString('base64') },
});
const LABELLED = secret({ 'boxwright.dev/credential': 'true' });

test('api pods keep the entries of a labelled Secret, and none of another', () => {
  expect(projectApiWebhookKeys(LABELLED)).toEqual(new Map([['hooks', 'key-of-the-sender']]));
  expect(projectApiWebhookKeys(secret({}))).toEqual(new Map());
  expect(projectApiWebhookKeys(secret({ 'boxwright.dev/credential': 'yes' }))).toEqual(new Map());
});

test('the controller keeps which schemes an entry fits, and no value', () => {
  const kept = projectControllerWebhookKeys(LABELLED);
  expect(kept).toEqual({
    namespace: 'bw-dev',
    labelled: true,
    usable: new Map([['hooks', ['github', 'stripe', 'slack']]]),
  });
  expect(projectControllerWebhookKeys(secret({})).labelled).toBe(false);
});

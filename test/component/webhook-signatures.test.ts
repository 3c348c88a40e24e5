/** Triggers with spec.verify: what their URL does with signed, unsigned and repeated calls, over real connections. */
import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { KubeApiError } from '../../src/kube/errors.js';
import { parse, open, readToEnd, send } from './support/raw-http.js';
import { WebhookServer } from './support/webhook-server.js';
import type { TriggerChange } from './support/webhook-server.js';

const NOT_FOUND = '{"error":"no enabled trigger has this URL, or the call was turned away"}';
const KEY = 'key-of-the-sender';
const STANDARD_KEY = Buffer.alloc(24, 5);
/** Of the server's clock. */
const NOW = Date.parse('2026-03-04T05:06:07.089Z') / 1000;

let server: WebhookServer;
beforeEach(async () => {
  server = await new WebhookServer().start();
  server.webhookKeys = { hooks: KEY, standard: `whsec_${STANDARD_KEY.toString('base64')}` };
});
afterEach(() => server.stop());

const hex = (text: string, key: string) => createHmac('sha256', key).update(text).digest('hex');

/** The header fields with which each sender would sign. */
const SENDERS = {
  github: { key: 'hooks', sign: (body: string) => [`X-Hub-Signature-256: sha256=${hex(body, KEY)}`] },
  stripe: {
    key: 'hooks',
    sign: (body: string, time: number) => [`Stripe-Signature: t=${time},v1=${hex(`${time}.${body}`, KEY)},v0=00`],
  },
  slack: {
    key: 'hooks',
    sign: (body: string, time: number) => [
      `X-Slack-Request-Timestamp: ${time}`,
      `X-Slack-Signature: v0=${hex(`v0:${time}:${body}`, KEY)}`,
    ],
  },
  'standard-webhooks': {
    key: 'standard',
    sign: (body: string, time: number, id = 'msg_1') => [
      `Webhook-Id: ${id}`,
      `Webhook-Timestamp: ${time}`,
      `Webhook-Signature: v1,${createHmac('sha256', STANDARD_KEY).update(`${id}.${time}.${body}`).digest('base64')}`,
    ],
  },
} as const;
type Scheme = keyof typeof SENDERS;
const SCHEMES = Object.keys(SENDERS) as Scheme[];

const trigger = (scheme: Scheme, change: TriggerChange = {}) =>
  server.trigger({ verify: { scheme, key: SENDERS[scheme].key }, ...change });

const call = (method: string, path: string, body: string, fields: readonly string[] = []) =>
  send(
    server.port,
    [`${method} ${path} HTTP/1.1`, `Content-Length: ${Buffer.byteLength(body)}`, ...fields].join('\n'),
    body,
  );

const BODY = '{ "a":1,\r\n"b":"ä" }';

describe.each(SCHEMES)('a trigger that verifies %s', (scheme) => {
  const signed = (time = Math.floor(NOW)) => SENDERS[scheme].sign(BODY, time);

  it('takes a signed call with the bytes as they came: one create, no read', async () => {
    const answer = await call('POST', trigger(scheme), BODY, signed());
    expect(answer.status).toBe(202);
    expect(server.effects).toMatchObject({ gets: 0, hmacs: 1, outcomes: ['fired'] });
    expect(server.effects.creates).toHaveLength(1);
  });

  it('answers the same 404 to a call with a wrong signature, one of another body, and none at all', async () => {
    const path = trigger(scheme);
    const wrong = signed().map((field) => field.replaceAll(/[0-9a-f]{64}/g, '0'.repeat(64)));
    const answers = [
      await call('POST', path, BODY, scheme === 'standard-webhooks' ? signed().slice(0, 2) : wrong),
      await call('POST', path, `${BODY} `, signed()),
      await call('POST', path, BODY),
      await call('POST', path, ''),
    ];
    const unknown = await call('POST', `${path.slice(0, -1)}_`, BODY, signed());
    for (const { status, body, headers } of answers) {
      expect([status, body, Object.keys(headers)]).toEqual([404, NOT_FOUND, Object.keys(unknown.headers)]);
    }
    expect(server.effects.creates).toEqual([]);
    expect(server.effects.outcomes.slice(1, 4)).toEqual(['signature_wrong', 'signature_missing', 'signature_missing']);
  });

  it('refuses every call while the key is missing, and says so in the log', async () => {
    const path = trigger(scheme);
    for (const keys of [undefined, {}, { other: KEY }, { [SENDERS[scheme].key]: '\n' }]) {
      server.webhookKeys = keys;
      expect((await call('POST', path, BODY, signed())).body).toBe(NOT_FOUND);
    }
    expect(server.effects.outcomes).toEqual(Array(4).fill('signature_key_missing'));
    expect(server.effects.creates).toEqual([]);
    expect(server.effects.log.at(-1)).toContain('"trigger":"deploy"');
    expect(server.effects.log.at(-1)).toContain('"level":"warn"');
  });

  it('takes the old and the new key while one is replaced, and only the new one after that', async () => {
    const path = trigger(scheme);
    const { key } = SENDERS[scheme];
    const old = server.webhookKeys?.[key] ?? '';
    const next = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;
    server.webhookKeys = { [key]: `${next}\n${old}\n` };
    expect((await call('POST', path, BODY, signed())).status).toBe(202);
    server.webhookKeys = { [key]: next };
    expect((await call('POST', path, BODY, signed())).status).toBe(404);
  });
});

it.each(['stripe', 'slack', 'standard-webhooks'] as const)(
  'a call of %s that is older or newer than 5 minutes is stale',
  async (scheme) => {
    const path = trigger(scheme);
    const at = async (time: number) => (await call('POST', path, BODY, SENDERS[scheme].sign(BODY, time))).status;
    expect([await at(Math.ceil(NOW) - 300), await at(Math.floor(NOW) + 300)]).toEqual([202, 202]);
    expect([await at(Math.floor(NOW) - 301), await at(Math.ceil(NOW) + 301)]).toEqual([404, 404]);
    expect(server.effects.outcomes).toEqual(['fired', 'fired', 'signature_stale', 'signature_stale']);
  },
);

describe('a call that is sent again as it was', () => {
  /** Keeps runs by name, as the API server does. */
  function store(): Map<string, AgentRun> {
    const runs = new Map<string, AgentRun>();
    server.onCreate = (run) => {
      const { name } = run.metadata;
      if (runs.has(name)) {
        return Promise.reject(new KubeApiError({ status: 409, reason: 'AlreadyExists', message: '' }));
      }
      runs.set(name, run);
      return Promise.resolve(run);
    };
    server.onGet = (name) => Promise.resolve(runs.get(name));
    return runs;
  }

  it('is a run of its own within 5 minutes, as everywhere, and stale after that', async () => {
    const runs = store();
    const path = trigger('standard-webhooks');
    const fields = SENDERS['standard-webhooks'].sign(BODY, Math.floor(NOW));
    await call('POST', path, BODY, fields);
    await call('POST', path, BODY, fields);
    await server.clock.advance(300_000);
    expect((await call('POST', path, BODY, fields)).status).toBe(404);
    expect(runs.size).toBe(2);
  });

  it('is the same run with dedupeHeader webhook-id, whose value is signed', async () => {
    const runs = store();
    const path = trigger('standard-webhooks', { dedupeHeader: 'webhook-id' });
    const fields = SENDERS['standard-webhooks'].sign(BODY, Math.floor(NOW));
    const [first, second] = [await call('POST', path, BODY, fields), await call('POST', path, BODY, fields)];
    expect(second.body).toBe(first.body);
    const renamed = fields.map((field) => field.replace('msg_1', 'msg_2'));
    expect((await call('POST', path, BODY, renamed)).status).toBe(404);
    expect(runs.size).toBe(1);
  });

  it('is the same run of GitHub, whatever delivery id it has now, with its signature as dedupeHeader', async () => {
    const runs = store();
    const path = trigger('github', { dedupeHeader: 'X-Hub-Signature-256' });
    const fields = SENDERS.github.sign(BODY);
    await call('POST', path, BODY, ['X-GitHub-Delivery: 1', ...fields]);
    await call('POST', path, BODY, ['X-GitHub-Delivery: 2', ...fields]);
    expect(runs.size).toBe(1);
  });

  it('a stranger without the key cannot take a delivery id in advance', async () => {
    const runs = store();
    const path = trigger('github', { dedupeHeader: 'X-GitHub-Delivery' });
    const id = 'X-GitHub-Delivery: 72d3162e-cc78-11e3';
    expect((await call('POST', path, 'taken', [id])).status).toBe(404);
    expect((await call('POST', path, BODY, [id, ...SENDERS.github.sign(BODY)])).status).toBe(202);
    expect([...runs.values()].map(({ spec }) => spec.message?.includes('taken'))).toEqual([false]);
    server.backlog.box = { runs: 10_000, bytes: 0 };
    expect((await call('POST', path, 'taken', [id])).body).toBe(NOT_FOUND);
  });
});

describe('the method', () => {
  it('GET is refused even if it is signed and the trigger accepts it, before the body is read', async () => {
    const path = trigger('github', { methods: ['GET', 'POST'] });
    const answer = await call('GET', path, BODY, SENDERS.github.sign(BODY));
    expect([answer.status, answer.body]).toEqual([404, NOT_FOUND]);
    expect((await call('POST', path, BODY, SENDERS.github.sign(BODY))).status).toBe(202);
    expect(server.effects.outcomes).toEqual(['signature_missing', 'fired']);
  });

  it('that the trigger does not accept is 405, as everywhere', async () => {
    const answer = await call('PUT', trigger('github'), BODY, SENDERS.github.sign(BODY));
    expect([answer.status, answer.headers['allow']]).toEqual([405, 'POST']);
  });

  it.each(['PUT', 'PATCH', 'DELETE'] as const)('%s is verified like POST', async (method) => {
    const path = trigger('github', { methods: [method] });
    expect((await call(method, path, BODY)).status).toBe(404);
    expect((await call(method, path, BODY, SENDERS.github.sign(BODY))).status).toBe(202);
  });
});

it('a trigger that gets spec.verify while the body is on its way asks for the signature', async () => {
  const path = server.trigger();
  const socket = await open(server.port);
  const text = readToEnd(socket);
  const checked = server.checked();
  socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{`);
  await checked;
  trigger('github');
  socket.write('}');
  expect(parse(await text).status).toBe(404);
  expect(server.effects.outcomes).toEqual(['signature_missing']);
});

it('while the watch is behind, the key is read live; an error of the API server is a 404', async () => {
  const path = trigger('github');
  const fields = SENDERS.github.sign(BODY);
  server.healthy = false;
  const view = {
    agent: { metadata: { name: 'cleo', namespace: 'bw-team', uid: 'agent-uid' }, spec: {}, status: { active: true } },
    trigger: {
      metadata: { name: 'cleo.deploy', namespace: 'bw-team', uid: 'trigger-uid' },
      spec: {
        agent: 'cleo',
        name: 'Deploy',
        body: 'x',
        methods: ['POST'],
        enabled: true,
        tokenId: '0123456789abcdef0123456789abcdef',
        keyId: 'k1',
        verify: { scheme: 'github', key: 'hooks' },
      },
    },
    secret: {
      metadata: { name: 'boxwright-webhook-keys', labels: { 'boxwright.dev/credential': 'true' } },
      data: { hooks: Buffer.from(KEY).toString('base64') },
    },
  };
  let secret: () => Promise<unknown> = () => Promise.resolve(view.secret);
  server.onGet = (name) => {
    if (name === 'boxwright-webhook-keys') return secret();
    return Promise.resolve(name === 'cleo' ? view.agent : view.trigger);
  };
  expect((await call('POST', path, BODY, fields)).status).toBe(202);
  secret = () => Promise.reject(new KubeApiError({ status: 503, reason: 'ServiceUnavailable', message: '' }));
  expect((await call('POST', path, BODY, fields)).body).toBe(NOT_FOUND);
  expect(server.effects.outcomes).toEqual(['fired', 'lookup_failed']);
});

it('neither key nor signature is logged', async () => {
  const fields = SENDERS.github.sign(BODY);
  await call('POST', trigger('github'), BODY, fields);
  await call('POST', trigger('github'), `${BODY} `, fields);
  const log = server.effects.log.join('');
  for (const secret of [KEY, hex(BODY, KEY), hex(`${BODY} `, KEY)]) expect(log).not.toContain(secret);
});

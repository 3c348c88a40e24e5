/** Spec 4.3 and 8, row by row, over real connections. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { KubeApiError, KubeConnectionError } from '../../src/kube/errors.js';
import { chunked, open, parse, readToEnd, send } from './support/raw-http.js';
import type { RawAnswer } from './support/raw-http.js';
import { WebhookServer } from './support/webhook-server.js';

const MB = 1_048_576;
const NOT_FOUND = '{"error":"no enabled trigger has this URL, or the call was turned away"}';
const CURL = 'User-Agent: curl/8.5.0';

let server: WebhookServer;
beforeEach(async () => {
  server = await new WebhookServer().start();
});
afterEach(() => server.stop());

const call = (head: string, body: string | Buffer = '') => send(server.port, head, body);
const post = (path: string, body: string | Buffer = '', fields: string[] = []) =>
  call([`POST ${path} HTTP/1.1`, `Content-Length: ${Buffer.byteLength(body)}`, ...fields].join('\n'), body);

/** No run, no read, no check of a token. */
function expectUntouched(): void {
  expect(server.effects).toMatchObject({ creates: [], gets: 0, hmacs: 0 });
}

function messageOf(run: AgentRun | undefined): string {
  return run?.spec.message ?? gunzipSync(Buffer.from(run?.spec.input?.data ?? '', 'base64')).toString();
}

describe('a call that fires', () => {
  it('answers 202 with run, session and trigger after one create and no read', async () => {
    const answer = await post(server.trigger(), '{"ref":"main"}', ['Content-Type: application/json', CURL]);
    const [run] = server.effects.creates;
    const name = run?.metadata.name ?? '';
    expect(name).toMatch(/^cleo-[0-9a-hjkmnp-tv-z]{26}$/);
    expect(answer.status).toBe(202);
    expect(answer.body).toBe(`{"runId":"${name}","sessionId":"s-${name}","trigger":"deploy"}`);
    expect(Object.keys(answer.headers).sort()).toEqual([
      'cache-control',
      'connection',
      'content-length',
      'content-type',
      'date',
    ]);
    expect(answer.headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' });
    expect(server.effects).toMatchObject({ gets: 0, hmacs: 1, outcomes: ['fired'] });
    expect(server.effects.creates).toHaveLength(1);
  });

  it('makes a run of origin trigger in a session named after it, with the block behind the body', async () => {
    await post(server.trigger(), '{"ref":"main"}', ['Content-Type: application/json; charset=utf-8']);
    expect(server.effects.creates[0]).toMatchObject({
      metadata: { namespace: 'bw-team' },
      spec: {
        agent: 'cleo',
        agentUid: 'agent-uid',
        message:
          'Look at this.\n\n' +
          '<trigger_payload trigger=deploy method=POST received=2026-03-04T05:06:07.089Z content-type=application/json bytes=14>\n' +
          '{\n  "ref": "main"\n}\n' +
          '</trigger_payload>',
        trigger: { origin: 'trigger', name: 'deploy', uid: 'trigger-uid' },
        sessionTitle: 'trigger: deploy',
        createdAt: '2026-03-04T05:06:07.089Z',
        actor: 'trigger',
      },
    });
    expect(server.effects.creates[0]?.spec.sessionId).toBeUndefined();
  });

  it('starts two runs in two sessions for two equal calls', async () => {
    const path = server.trigger();
    const answers = [await post(path, 'x'), await post(path, 'x')].map(
      ({ body }) => JSON.parse(body) as Record<string, string>,
    );
    expect(server.effects.creates).toHaveLength(2);
    expect(answers[0]?.['runId']).not.toBe(answers[1]?.['runId']);
    expect(answers[0]?.['sessionId']).not.toBe(answers[1]?.['sessionId']);
  });

  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const)('may be a %s, with a body', async (method) => {
    const path = server.trigger({ methods: [method] });
    const answer = await call(`${method} ${path} HTTP/1.1\nContent-Length: 2\nContent-Type: text/plain`, 'hi');
    expect(answer.status).toBe(202);
    expect(messageOf(server.effects.creates[0])).toContain(` method=${method} `);
    expect(messageOf(server.effects.creates[0])).toContain('\nhi\n');
  });

  it('hands over the query', async () => {
    await call(`GET ${server.trigger({ methods: ['GET'] })}?a=1&b=%C3%A4 HTTP/1.1`);
    expect(messageOf(server.effects.creates[0])).toContain(
      ' bytes=0>\n{\n  "a": "1",\n  "b": "ä"\n}\n</trigger_payload>',
    );
  });

  it('forwards no header, and logs neither URL nor payload', async () => {
    const path = server.trigger();
    await post(`${path}?q=query-secret`, 'payload-secret', [
      'X-Hub-Signature-256: header-secret',
      'Cookie: header-secret',
    ]);
    expect(JSON.stringify(server.effects.creates)).not.toContain('header-secret');
    const log = server.effects.log.join('');
    expect(log).toContain('"route":"/api/t/:agent_id/:slug/:token"');
    expect(log).toContain(`"runId":"${server.effects.creates[0]?.metadata.name}"`);
    for (const secret of [path.split('/').at(-1), 'query-secret', 'payload-secret', 'header-secret']) {
      expect(log).not.toContain(secret);
    }
    expect(server.effects.http).toEqual([{ route: '/api/t/:agent_id/:slug/:token', method: 'POST', status: 202 }]);
  });

  it('works over one connection again and again', async () => {
    const path = server.trigger();
    const socket = await open(server.port);
    const text = readToEnd(socket);
    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n`;
    socket.write(`${head}\r\nx${head}\r\ny${head}Connection: close\r\n\r\nz`);
    expect((await text).match(/HTTP\/1\.1 202 Accepted/g)).toHaveLength(3);
    expect(server.effects.creates).toHaveLength(3);
  });
});

describe('a trigger with a dedupeHeader', () => {
  const deliver = (path: string, id?: string) => post(path, '{}', id === undefined ? [] : [`x-github-DELIVERY: ${id}`]);
  const path = () => server.trigger({ dedupeHeader: 'X-GitHub-Delivery' });

  /** Keeps runs by name, as the API server does. */
  function store(): Map<string, AgentRun> {
    const runs = new Map<string, AgentRun>();
    server.onCreate = (run) => {
      const { name } = run.metadata;
      if (runs.has(name))
        return Promise.reject(new KubeApiError({ status: 409, reason: 'AlreadyExists', message: '' }));
      runs.set(name, run);
      return Promise.resolve(run);
    };
    server.onGet = (name) => {
      const run = runs.get(name);
      const notFound = new KubeApiError({ status: 404, reason: 'NotFound', message: '' });
      return run === undefined ? Promise.reject(notFound) : Promise.resolve(run);
    };
    return runs;
  }

  it('answers the second call with the run of the first, and creates nothing', async () => {
    const runs = store();
    const first = await deliver(path(), '72d3162e-cc78-11e3');
    const second = await deliver(path(), '72d3162e-cc78-11e3');
    expect(first.status).toBe(202);
    expect(second.status).toBe(202);
    expect(second.body).toBe(first.body);
    expect(runs.size).toBe(1);
    expect([...runs.keys()][0]).toMatch(/^cleo-[0-9a-hjkmnp-tv-z]{26}$/);
    expect(server.effects.outcomes).toEqual(['fired', 'deduplicated']);
  });

  it('answers a repeated call with its run also while the backlog is full: one read, no create', async () => {
    store();
    const first = await deliver(path(), 'a');
    server.backlog.box = { runs: 10_000, bytes: 0 };
    const again = await deliver(path(), 'a');
    expect([again.status, again.body]).toEqual([202, first.body]);
    expect(server.effects).toMatchObject({ gets: 1, outcomes: ['fired', 'deduplicated'] });
    expect(server.effects.creates).toHaveLength(1);
    expect((await deliver(path(), 'b')).body).toBe(NOT_FOUND);
    expect((await deliver(path())).body).toBe(NOT_FOUND);
    expect(server.effects).toMatchObject({ gets: 2, outcomes: expect.arrayContaining(['backlog_box']) });
    expect(server.effects.creates).toHaveLength(1);
  });

  it('makes runs of their own for other values, for calls without the header, and for triggers without the field', async () => {
    const runs = store();
    await deliver(path(), 'a');
    await deliver(path(), 'b');
    await deliver(path());
    await deliver(path());
    await deliver(server.trigger({ slug: 'plain' }), 'a');
    expect(runs.size).toBe(5);
  });

  it('passes the header on to nobody', async () => {
    const runs = store();
    await deliver(path(), 'delivery-secret');
    expect(JSON.stringify([...runs.values()]) + server.effects.log.join()).not.toContain('delivery-secret');
  });
});

describe('while the watch stands still', () => {
  /** All but this much of the agent's 5,000 runs are there. */
  const leave = (runs: number) => (server.backlog.agent = { runs: 5_000 - runs, bytes: 0 });

  it('exactly as many calls are accepted as the budget has room for, with one write and no read each', async () => {
    const path = server.trigger();
    leave(3);
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(path, 'x')));
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(3);
    expect(answers.filter(({ body }) => body === NOT_FOUND)).toHaveLength(17);
    expect(server.effects.creates).toHaveLength(3);
    expect(server.effects.gets).toBe(0);
    expect(server.effects.outcomes.filter((outcome) => outcome === 'backlog_agent')).toHaveLength(17);
  });

  it('bytes count as they are stored', async () => {
    const path = server.trigger();
    server.backlog.agent = { runs: 0, bytes: 32 * MB - 100_000 };
    const body = randomBytes(48_000).toString('base64');
    const statuses: number[] = [];
    for (let hit = 0; hit < 5; hit++) statuses.push((await post(path, body)).status);
    expect(statuses).toEqual([202, 202, 404, 404, 404]);
  });

  it('a call that the API server refused leaves its place to the next one', async () => {
    const path = server.trigger();
    leave(1);
    server.onCreate = () => Promise.reject(new KubeApiError({ status: 403, reason: 'Forbidden', message: 'quota' }));
    await post(path, 'x');
    server.onCreate = (run) => Promise.resolve(run);
    expect((await post(path, 'x')).status).toBe(202);
    expect((await post(path, 'x')).status).toBe(404);
    expect(server.effects.outcomes).toEqual(['refused', 'fired', 'backlog_agent']);
  });
});

describe('a call that is not meant', () => {
  const paths = () => [server.trigger({ methods: ['GET', 'POST'] }), '/api/t/team.nobody/x/y', '/api/t/%ZZ', '/api/t'];

  it('HEAD answers 200 with nothing, on every URL', async () => {
    for (const path of paths()) {
      const answer = await call(`HEAD ${path} HTTP/1.1`);
      expect([answer.status, answer.body, answer.headers['content-length']]).toEqual([200, '', '0']);
    }
    expectUntouched();
  });

  it('OPTIONS answers 204 with nothing, on every URL', async () => {
    for (const path of paths()) {
      const answer = await call(`OPTIONS ${path} HTTP/1.1`);
      expect([answer.status, answer.body]).toEqual([204, '']);
    }
    expectUntouched();
  });

  it.each([
    ['GET', 'User-Agent: Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)'],
    ['GET', 'Purpose: prefetch'],
    ['POST', 'Sec-Purpose: prefetch;prerender'],
    ['PUT', 'X-Moz: prefetch'],
    ['DELETE', 'X-Purpose: preview'],
  ])('a passive visit (%s, %s) answers 204 before any look-up, on every URL', async (method, field) => {
    for (const path of paths()) {
      const answer = await call(`${method} ${path} HTTP/1.1\n${field}`);
      expect([answer.status, answer.body]).toEqual([204, '']);
    }
    expectUntouched();
  });

  it('the webhook sender of Slack is none', async () => {
    const path = server.trigger({ methods: ['GET'] });
    expect((await call(`GET ${path} HTTP/1.1\nUser-Agent: Slackbot 1.0 (+https://api.slack.com/robots)`)).status).toBe(
      202,
    );
  });

  it('CONNECT and an unknown method start nothing', async () => {
    server.trigger();
    await call('CONNECT agents.example.com:443 HTTP/1.1');
    expect((await call(`BREW ${server.trigger()} HTTP/1.1`)).status).toBe(400);
    expectUntouched();
  });
});

describe('the one 404', () => {
  const tokenOfAnother = () => {
    server.trigger();
    return server.trigger({ slug: 'other', tokenId: 'f'.repeat(32) }).replace('/other/', '/deploy/');
  };
  /** Calls of a URL that fires nothing; each has its own path and the same work. */
  const refused: [string, () => string][] = [
    ['an unknown Box', () => server.trigger().replace('team.', 'other.')],
    ['an unknown agent', () => server.trigger().replace('.cleo', '.nobody')],
    ['an unknown trigger', () => server.trigger().replace('/deploy/', '/nothing/')],
    ['a wrong token', () => `${server.trigger().slice(0, -1)}!`],
    ['no token', () => server.trigger().split('/').slice(0, -1).join('/')],
    ['an empty token', () => `${server.trigger().split('/').slice(0, -1).join('/')}/`],
    ['the token of another trigger', tokenOfAnother],
    ['a disabled trigger', () => server.trigger({ enabled: false })],
    ['a trigger that is being deleted', () => server.trigger({ deleting: true })],
    ['a trigger without a token yet', () => server.trigger({ tokenId: undefined })],
    ['a trigger of a key that is gone', () => server.trigger({ keyId: 'k0' })],
    ['a malformed slug', () => server.trigger().replace('/deploy/', '/De_ploy/')],
    ['a malformed agent id', () => server.trigger().replace('team.cleo', 'cleo')],
    ['a broken escape', () => server.trigger().replace('/deploy/', '/%ZZ/')],
    ['a NUL', () => server.trigger().replace('/deploy/', '/deploy%00/')],
    ['an extra segment', () => `${server.trigger()}/more`],
    ['a slash at the end', () => `${server.trigger()}/`],
    ['the bare prefix', () => '/api/t'],
  ];
  it.each(refused)('answers %s', async (_name, path) => {
    const answer = await post(path(), 'x', ['Content-Type: text/plain']);
    expect(answer.bytes).toBe(
      'HTTP/1.1 404 Not Found\r\ncache-control: no-store\r\ncontent-type: application/json\r\n' +
        `content-length: ${NOT_FOUND.length}\r\nConnection: close\r\n\r\n${NOT_FOUND}`,
    );
    expect(server.effects).toMatchObject({ creates: [], gets: 0, hmacs: 1 });
  });

  it('has the same bytes when a call is turned away', async () => {
    const unknown = await post('/api/t/team.cleo/nothing/token', 'x');
    const path = server.trigger();
    server.onCreate = () =>
      Promise.reject(new KubeApiError({ status: 403, reason: 'Forbidden', message: 'terminating' }));
    const refusedByApi = await post(path, 'x');
    server.backlog.box = { runs: 1_000, bytes: 0 };
    server.backlog.installation = { runs: 20_000, bytes: 0 };
    const overBudget = await post(path, 'x');
    expect([refusedByApi.bytes, overBudget.bytes]).toEqual([unknown.bytes, unknown.bytes]);
    expect(server.effects.outcomes).toEqual(['unknown', 'refused', 'backlog_installation']);
    expect(server.effects.creates).toHaveLength(1);
  });

  it('comes after 15 seconds without an answer, and one read that finds nothing', async () => {
    const path = server.trigger();
    server.onGet = () => Promise.reject(new KubeApiError({ status: 404, reason: 'NotFound', message: 'no' }));
    const asked = new Promise<void>((resolve) => {
      server.onCreate = (_run, signal) => {
        resolve();
        return new Promise((_resolve, reject) => {
          signal?.addEventListener('abort', () => reject(new KubeConnectionError('no answer', 'aborted')));
        });
      };
    });
    let answer: RawAnswer | undefined;
    const answered = post(path, 'x').then((got) => (answer = got));
    await asked;
    await server.clock.advance(14_999);
    expect(answer).toBeUndefined();
    await server.clock.advance(1);
    expect((await answered).status).toBe(404);
    expect(new Set(server.effects.creates.map((run) => run.metadata.name)).size).toBe(1);
    expect(server.effects).toMatchObject({ gets: 1, outcomes: ['no_answer'] });
  });

  it('does not come when the run was stored and only the answer got lost', async () => {
    const path = server.trigger();
    server.onGet = () => Promise.resolve(server.effects.creates[0] as never);
    const asked = new Promise<void>((resolve) => {
      server.onCreate = () => {
        resolve();
        return Promise.reject(new KubeConnectionError('reset', 'network'));
      };
    });
    const answered = post(path, 'x');
    await asked;
    await server.clock.advance(15_000);
    const answer = await answered;
    expect(answer.status).toBe(202);
    expect(answer.body).toContain(`"runId":"${server.effects.creates[0]?.metadata.name}"`);
    expect(server.effects).toMatchObject({ gets: 1, outcomes: ['fired'] });
  });

  it('ends the life of a rotated URL at once', async () => {
    const old = server.trigger();
    expect((await post(old)).status).toBe(202);
    const current = server.trigger({ tokenId: 'f'.repeat(32) });
    expect([(await post(old)).status, (await post(current)).status]).toEqual([404, 202]);
  });

  it('costs the same reads for every trigger while the watch is behind', async () => {
    const wrong = [server.trigger(), server.trigger({ enabled: false })].map((path) => `${path.slice(0, -1)}!`);
    server.healthy = false;
    server.onGet = () => Promise.reject(new KubeApiError({ status: 404, reason: 'NotFound', message: '' }));
    const answers: [number, number, string][] = [];
    for (const path of [...wrong, '/api/t/team.nobody/x/y', '/api/t/other.cleo/deploy/token']) {
      const { gets, hmacs } = server.effects;
      const { bytes } = await post(path, 'x');
      answers.push([server.effects.gets - gets, server.effects.hmacs - hmacs, bytes]);
    }
    expect(answers).toEqual(answers.map(() => [2, 1, answers[0]?.[2]]));
  });

  it('comes when the watch is behind and the live read fails', async () => {
    const path = server.trigger();
    server.healthy = false;
    server.onGet = () => Promise.reject(new KubeConnectionError('no route', 'network'));
    expect((await post(path, 'x')).body).toBe(NOT_FOUND);
    expect(server.effects).toMatchObject({ creates: [], hmacs: 1, outcomes: ['lookup_failed'] });
  });
});

describe('a trigger that changes while the body of a call is on its way: what counts is the trigger at the end', () => {
  it.each([
    ['rotated', { tokenId: 'f'.repeat(32) }, 404],
    ['disabled', { enabled: false }, 404],
    ['deleted', { deleting: true }, 404],
    ['made again under the same token', { uid: 'trigger-uid-2' }, 404],
    ['closed to the method', { methods: ['PUT'] }, 405],
    ['given another body', { body: 'Look again.' }, 202],
  ] as const)('%s', async (_what, change, status) => {
    const path = server.trigger();
    const socket = await open(server.port);
    const answer = readToEnd(socket);
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`);
    await server.checked();
    server.trigger(change);
    socket.write('0\r\n\r\n');
    expect(parse(await answer).status).toBe(status);
    expect(server.effects.creates.map((run) => messageOf(run).split('\n')[0])).toEqual(
      status === 202 ? ['Look again.'] : [],
    );
  });
});

describe('405', () => {
  it('names the methods of the trigger', async () => {
    const answer = await call(`GET ${server.trigger({ methods: ['POST', 'PUT'] })} HTTP/1.1\n${CURL}`);
    expect(answer.status).toBe(405);
    expect(answer.headers).toMatchObject({ allow: 'POST, PUT', 'content-type': 'application/json' });
    expect(answer.body).toBe('{"error":"this trigger does not accept GET; it accepts POST, PUT"}');
    expect(server.effects).toMatchObject({ creates: [], gets: 0, outcomes: ['method'] });
  });

  it('stands in front of 413', async () => {
    const answer = await call(`PUT ${server.trigger()} HTTP/1.1\nContent-Length: ${2 * MB}`, Buffer.alloc(2 * MB));
    expect([answer.status, answer.headers['allow']]).toEqual([405, 'POST']);
  });

  it('answers a method that no trigger accepts, dead or alive', async () => {
    const alive = await call(`PROPFIND ${server.trigger()} HTTP/1.1`);
    expect([alive.status, alive.headers['allow']]).toEqual([405, 'POST']);
    const dead = await call('PROPFIND /api/t/team.nobody/x/y HTTP/1.1');
    expect([dead.status, dead.headers['allow']]).toEqual([405, 'GET, POST, PUT, PATCH, DELETE']);
    expect(server.effects).toMatchObject({ creates: [], hmacs: 2 });
  });
});

describe('413', () => {
  const TOO_LARGE = '{"error":"the request body is over 1 MB (1048576 bytes)"}';

  it('begins one byte above 1,048,576', async () => {
    const path = server.trigger();
    expect((await post(path, Buffer.alloc(MB, 'x'))).status).toBe(202);
    const answer = await post(path, Buffer.alloc(MB + 1, 'x'));
    expect([answer.status, answer.body]).toEqual([413, TOO_LARGE]);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(server.effects.creates).toHaveLength(1);
    expect(messageOf(server.effects.creates[0])).toContain(` bytes=${MB}>\n`);
  });

  it('counts a body without a length', async () => {
    const head = `POST ${server.trigger()} HTTP/1.1\nTransfer-Encoding: chunked`;
    expect((await call(head, chunked(Buffer.alloc(MB, 'x')))).status).toBe(202);
    expect((await call(head, chunked(Buffer.alloc(MB + 1, 'x')))).status).toBe(413);
    expect(server.effects.creates).toHaveLength(1);
  });

  it('reaches a sender that reads only after it has written everything', async () => {
    const answer = await post(server.trigger(), Buffer.alloc(8 * MB));
    expect([answer.status, answer.body]).toEqual([413, TOO_LARGE]);
  });

  it('is no secret of a dead URL: the 404 reaches such a sender too', async () => {
    expect((await post('/api/t/team.nobody/x/y', Buffer.alloc(8 * MB))).body).toBe(NOT_FOUND);
  });

  it('leaves the connection usable', async () => {
    const path = server.trigger();
    const socket = await open(server.port);
    const text = readToEnd(socket);
    const head = (length: number, more = '') =>
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n${more}\r\n`;
    socket.write(head(MB + 1));
    socket.write(Buffer.alloc(MB + 1));
    socket.write(`${head(1, 'Connection: close\r\n')}x`);
    expect((await text).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 202']);
  });
});

describe('a body that does not arrive', () => {
  it('is waited for 30 seconds', async () => {
    const socket = await open(server.port);
    const text = readToEnd(socket);
    socket.write(`POST ${server.trigger()} HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf`);
    while (server.clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
    await server.clock.advance(29_999);
    expect(server.effects.outcomes).toEqual([]);
    await server.clock.advance(1);
    expect(parse(await text)).toMatchObject({ status: 404, headers: { connection: 'close' }, body: NOT_FOUND });
    expect(server.effects).toMatchObject({ creates: [], outcomes: ['body_stalled'] });
  });

  it('makes room for others: slow senders go first, and what they hold stays within the budget', async () => {
    const path = server.trigger();
    const answers: Promise<string>[] = [];
    for (let n = 0; n < 20; n++) {
      const socket = await open(server.port);
      answers.push(readToEnd(socket));
      socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${MB}\r\n\r\n`);
      socket.write(Buffer.alloc(MB - 1, 'x'));
      const before = server.bodies.bytes;
      while (server.bodies.bytes === before && server.effects.outcomes.length <= n - 8) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    while (server.effects.outcomes.length < 12) await new Promise((resolve) => setImmediate(resolve));
    expect(server.bodies.bytes).toBeLessThanOrEqual(8 * MB + MB / 4);
    expect((await post(path, 'y'.repeat(MB))).status).toBe(202);
    const cut = await Promise.all(answers.slice(0, 12));
    for (const text of cut) expect(parse(text)).toMatchObject({ status: 404, headers: { connection: 'close' } });
    const { outcomes } = server.effects;
    expect(outcomes.filter((outcome) => outcome === 'fired')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'body_stalled').length).toBeGreaterThanOrEqual(12);
    await server.clock.advance(30_000);
    await Promise.all(answers);
    expect(server.bodies.bytes).toBe(0);
  });

  it('starts nothing when the sender goes away', async () => {
    const socket = await open(server.port);
    socket.write(`POST ${server.trigger()} HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf`);
    while (server.clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
    socket.destroy();
    await once(socket, 'close');
    while (server.effects.outcomes.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(server.effects).toMatchObject({ creates: [], outcomes: ['body_aborted'] });
    expect(server.clock.pending).toBe(0);
  });
});

it('other paths belong to the rest of the app', async () => {
  for (const path of ['/', '/api/mcp/account', '/api/team', '/API/T/a/b/c']) {
    expect(await call(`POST ${path} HTTP/1.1\nContent-Length: 0`)).toMatchObject({
      status: 418,
      body: `other: ${path}`,
    });
  }
  expectUntouched();
});

/** What the app in the browser calls: sessions, the walls around them, the board, the inbox and events. */
import { createServer, get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import request from 'supertest';
import { APIKeys } from '../../src/api/v1alpha1/api-key.js';
import { DELAY_MS, FREE_TRIES } from '../../src/mcp/wrong-keys.js';
import { GATHER_MS, MAX_WATCHERS_OF_KEY, RECHECK_MS } from '../../src/web/watchers.js';
import { SESSION_MS, SessionCookie } from '../../src/web/session-cookie.js';
import { KEY, McpHarness, OTHER_KEY, PUBLIC_URL, READ_ONLY_KEY } from '../builders/mcp-harness.js';

const OURS = { origin: PUBLIC_URL, 'x-boxwright-app': '1', host: 'agents.example.com' };
const SINCE = '2026-05-01T00:00:00.000Z';

async function signIn(harness: McpHarness, key = KEY): Promise<string> {
  const response = await request(harness.app).post('/api/app/session').set(OURS).send({ key });
  expect(response.status).toBe(200);
  return cookieOf(response.headers['set-cookie']).split(';')[0] ?? '';
}

function cookieOf(header: unknown): string {
  return (header as string[])[0] ?? '';
}

function read(harness: McpHarness, path: string, cookie = '') {
  return request(harness.app).get(`/api/app/${path}`).set({ host: OURS.host, cookie });
}

async function callTool(harness: McpHarness, cookie: string, name: string, args: object = {}) {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
  const response = await request(harness.app)
    .post('/api/app/call')
    .set({ ...OURS, cookie })
    .send(message);
  const { result } = response.body as { result: { content: [{ text: string }]; isError?: boolean } };
  return { isError: result.isError === true, payload: JSON.parse(result.content[0].text) as Record<string, unknown> };
}

/** A browser that listens: what came so far, and whether the stream has ended. */
async function listen(harness: McpHarness, cookie: string) {
  const server = createServer(harness.app).listen(0);
  const { port } = server.address() as AddressInfo;
  const response = await new Promise<IncomingMessage>((resolve) =>
    get({ port, path: '/api/app/events', headers: { host: OURS.host, cookie } }, resolve),
  );
  const seen = { text: '', ended: false };
  response.on('data', (part: Buffer) => (seen.text += part.toString()));
  response.on('end', () => (seen.ended = true));
  const close = () => {
    response.destroy();
    server.close();
  };
  return { response, seen, close, changes: () => seen.text.split('event: change').length - 1 };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe('a session', () => {
  test('is a cookie that scripts cannot read, that no other site sends, and that does not hold the key', async () => {
    const harness = new McpHarness();
    const response = await request(harness.app)
      .post('/api/app/session')
      .set(OURS)
      .send({ key: ` ${KEY}\n` });
    expect(response.body).toEqual({
      workspace: 'acme',
      keyPrefix: KEY.slice(0, 11),
      readOnly: false,
      sessionHours: 12,
    });
    const cookie = cookieOf(response.headers['set-cookie']);
    expect(cookie).toMatch(
      /^__Secure-boxwright-session=[\w.-]+; Max-Age=43200; Path=\/api\/app; HttpOnly; SameSite=Strict; Secure$/,
    );
    expect(Buffer.from(cookie.split('.')[1] ?? '', 'base64url').toString()).not.toContain('hash');
    expect(harness.logLines.join('')).not.toContain(KEY);
    expect((await read(harness, 'session', cookie.split(';')[0])).body).toEqual(response.body);
  });

  test.each([
    ['http://127.0.0.1:30080', 'boxwright-session', 'Path=/api/app; HttpOnly; SameSite=Strict'],
    ['http://localhost/x/', 'boxwright-session', 'Path=/x/api/app; HttpOnly; SameSite=Strict'],
    ['http://agents.example.com', '__Secure-boxwright-session', 'Path=/api/app; HttpOnly; SameSite=Strict; Secure'],
    ['https://example.com/bw', '__Secure-boxwright-session', 'Path=/bw/api/app; HttpOnly; SameSite=Strict; Secure'],
  ])('at %s: %s', (publicUrl, name, attributes) => {
    const cookie = new SessionCookie(publicUrl);
    expect(cookie.name).toBe(name);
    expect(cookie.set('v')).toBe(`${name}=v; Max-Age=43200; ${attributes}`);
    expect(cookie.read(`a=b; ${name}=v; c=d`)).toBe('v');
  });

  test('ends when its key is revoked, at the very next call', async () => {
    const harness = new McpHarness();
    const cookie = await signIn(harness);
    expect((await read(harness, 'session', cookie)).status).toBe(200);
    const [key] = [...harness.caches.APIKey.values()].filter(({ prefix }) => prefix === KEY.slice(0, 11));
    const ref = { namespace: key?.namespace ?? '', name: key?.name ?? '' };
    await harness.api.patch(APIKeys, ref, { spec: { revoked: true } }, { type: 'merge' });
    expect((await read(harness, 'session', cookie)).status).toBe(401);
    expect((await read(harness, `board?since=${SINCE}`, cookie)).status).toBe(401);
  });

  test('ends after 12 hours, and cannot be forged or changed', async () => {
    const harness = new McpHarness();
    const cookie = await signIn(harness);
    const [name = '', value = ''] = cookie.split('=');
    for (const forged of [
      '',
      'x',
      `${value}A`,
      value.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A')),
      `x${value}`,
    ]) {
      expect((await read(harness, 'session', `${name}=${forged}`)).status).toBe(401);
    }
    await harness.clock.advance(SESSION_MS - 1);
    expect((await read(harness, 'session', cookie)).status).toBe(200);
    await harness.clock.advance(1);
    expect((await read(harness, 'session', cookie)).status).toBe(401);
  });

  test('ends with the cookie when the person signs out', async () => {
    const harness = new McpHarness();
    const response = await request(harness.app).delete('/api/app/session').set(OURS);
    expect(cookieOf(response.headers['set-cookie'])).toMatch(
      /^__Secure-boxwright-session=; Max-Age=0; Path=\/api\/app/,
    );
  });

  test('wrong keys are slowed down by address, a right one never', async () => {
    const harness = new McpHarness();
    const wrong = () => request(harness.app).post('/api/app/session').set(OURS).send({ key: 'bw_wrong' });
    for (let tries = 0; tries < FREE_TRIES; tries++) expect((await wrong()).status).toBe(401);
    let answered = false;
    const late = wrong().then((response) => {
      answered = true;
      return response;
    });
    await signIn(harness);
    expect(answered).toBe(false);
    await until(() => harness.clock.pending > 0);
    await harness.clock.advance(DELAY_MS);
    expect((await late).status).toBe(401);
  });

  test.each([['{nope'], ['[]'], ['{"key":""}'], ['{"key":1}'], [`{"key":"${'x'.repeat(5000)}"}`]])(
    'is not opened with a body that is none: %#',
    async (body) => {
      const call = request(new McpHarness().app)
        .post('/api/app/session')
        .set(OURS)
        .set('content-type', 'application/json');
      expect((await call.serialize((raw) => raw as unknown as string).send(body)).status).toBe(400);
    },
  );
});

describe('calls that are not those of our page', () => {
  const harness = new McpHarness();
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_agents' } };

  test.each([
    ['another origin', { ...OURS, origin: 'https://evil.example' }],
    ['no origin that a browser trusts', { ...OURS, origin: 'null' }],
    ['an origin of a desktop app', { ...OURS, origin: 'vscode-file://app' }],
    ['no origin', { 'x-boxwright-app': '1', host: OURS.host }],
    ['a form, which cannot send our header', { origin: OURS.origin, host: OURS.host }],
    ['a name that was made to point here', { ...OURS, origin: 'http://evil.example', host: 'evil.example' }],
  ])('are refused with the cookie of a person: %s', async (_name, headers) => {
    const cookie = await signIn(harness);
    harness.api.clearRecords();
    for (const [method, path] of [
      ['post', 'call'],
      ['post', 'session'],
      ['delete', 'session'],
    ] as const) {
      const response = await request(harness.app)[method](`/api/app/${path}`).set(headers).set({ cookie }).send(body);
      expect(response.status).toBe(403);
      expect(response.headers['set-cookie']).toBeUndefined();
    }
    expect(harness.requests()).toEqual([]);
  });

  test('a name of the Service works with its own origin, as through a port-forward', async () => {
    const headers = { ...OURS, host: 'localhost:8080', origin: 'http://localhost:8080' };
    const response = await request(harness.app).post('/api/app/session').set(headers).send({ key: KEY });
    expect(response.status).toBe(200);
  });

  test.each(['session', 'call', 'board', 'nothing', '__proto__', 'constructor'])(
    'every answer of %s is data that nobody may frame, sniff or keep',
    async (path) => {
      const { headers, body } = await read(harness, path);
      expect(headers['content-type']).toBe('application/json');
      expect(headers['content-security-policy']).toBe("default-src 'none'; frame-ancestors 'none'");
      expect(headers['x-frame-options']).toBe('DENY');
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['cache-control']).toBe('no-store');
      expect(body).toEqual({ error: expect.any(String) });
    },
  );
});

describe('tools', () => {
  test('answer as the MCP endpoint does, with the rights of the key', async () => {
    const harness = new McpHarness();
    const cookie = await signIn(harness);
    expect(await callTool(harness, cookie, 'list_agents')).toMatchObject(
      await harness.call('list_agents').then(({ isError, payload }) => ({ isError, payload })),
    );
    const other = await signIn(harness, OTHER_KEY);
    const foreign = await callTool(harness, other, 'get_agent', { agentId: 'acme-box.greeter' });
    const { isError, payload } = await harness.call('get_agent', { agentId: 'acme-box.greeter' }, OTHER_KEY);
    expect(foreign).toEqual({ isError, payload });
  });

  test('that change something are refused to a read-only key, in the same words', async () => {
    const harness = new McpHarness();
    const cookie = await signIn(harness, READ_ONLY_KEY);
    const refused = await callTool(harness, cookie, 'create_agent', { name: 'x' });
    const { isError, payload } = await harness.call('create_agent', { name: 'x' }, READ_ONLY_KEY);
    expect(refused).toEqual({ isError, payload });
    expect(isError).toBe(true);
  });

  test('a message of a person starts a run of origin chat', async () => {
    const harness = new McpHarness();
    const cookie = await signIn(harness);
    await callTool(harness, cookie, 'send_message', { agentId: 'acme-box.greeter', message: 'hi', waitSeconds: 0 });
    const [run] = [...harness.caches.AgentRun.values()];
    expect(run?.origin).toBe('chat');
  });

  test.each([
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    '</script><svg/onload=alert(1)>',
    '\u2028alert(1)',
  ])('give %s back as data', async (hostile) => {
    const harness = new McpHarness();
    harness.seedAgent('acme-box', 'hostile', { spec: { name: hostile, description: hostile } });
    const cookie = await signIn(harness);
    const board = await read(harness, `board?since=${SINCE}`, cookie);
    expect(board.headers['content-type']).toBe('application/json');
    expect(board.headers['x-content-type-options']).toBe('nosniff');
    const { agents } = board.body as { agents: { id: string; name: string }[] };
    expect(agents.find(({ id }) => id === 'acme-box.hostile')?.name).toBe(hostile);
  });
});

describe('the board', () => {
  test('has the agents of the workspace with what they did since a time, without a request', async () => {
    const harness = new McpHarness();
    const usage = { steps: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15, costUsd: '0.250000' };
    const ended = { phase: 'done', usage, finishedAt: '2026-05-01T09:30:00Z' } as never;
    harness.seedRun('acme-box', 'greeter-1', { spec: { createdAt: '2026-04-30T23:59:59.999Z' }, status: ended });
    harness.seedRun('acme-box', 'greeter-2', { spec: { createdAt: '2026-05-01T08:00:00.000Z' }, status: ended });
    harness.seedRun('acme-box', 'greeter-3', {
      spec: { createdAt: '2026-05-01T09:00:00.000Z' },
      status: { phase: 'error', reason: 'ModelError', finishedAt: '2026-05-01T09:30:00Z' } as never,
    });
    const cookie = await signIn(harness);
    harness.api.clearRecords();
    const { body } = await read(harness, `board?since=${SINCE}`, cookie);
    expect(body).toMatchObject({
      spaces: [{ id: 'acme-box', agentCount: 1 }],
      agents: [
        {
          id: 'acme-box.greeter',
          status: 'idle',
          runs: 2,
          failed: 1,
          costUsd: 0.25,
          totalTokens: 15,
          lastRun: { runId: 'greeter-3', status: 'error', reason: 'ModelError', at: '2026-05-01T09:00:00.000Z' },
        },
      ],
    });
    expect(harness.requests()).toEqual([]);
  });

  test.each(['', '?since=', '?since=yesterday', '?since=2026-05-01'])('needs a time: %s', async (query) => {
    const harness = new McpHarness();
    expect((await read(harness, `board${query}`, await signIn(harness))).status).toBe(400);
  });
});

describe('the inbox', () => {
  const ended = { finishedAt: '2026-05-01T09:30:00Z', claim: { podUid: 'p', podName: 'p', gatewayAddress: 'g:1' } };

  test('has open questions of all agents, and failures with cause and next step, of this workspace alone', async () => {
    const harness = new McpHarness();
    harness.seedAgent('acme-box', 'writer');
    const pending = { kind: 'question', text: 'Which one?', choices: ['red', 'blue'] };
    for (const box of ['acme-box', 'rival-box']) {
      harness.seedRun(box, 'asks', {
        spec: { agent: box === 'acme-box' ? 'greeter' : 'spy' },
        status: { phase: 'done', pending, ...ended } as never,
      });
    }
    harness.seedRun('acme-box', 'fails', {
      spec: { agent: 'writer', createdAt: '2026-05-01T09:00:00.000Z' },
      status: { phase: 'error', reason: 'HeartbeatLost', message: 'silent', ...ended } as never,
    });
    const { body } = await read(harness, `inbox?since=${SINCE}`, await signIn(harness));
    expect(body).toMatchObject({
      counts: { questions: 1, failures: 1 },
      questions: [
        { agentId: 'acme-box.greeter', runId: 'asks', pending: { kind: 'question', choices: ['red', 'blue'] } },
      ],
      failures: [{ agentId: 'acme-box.writer', runId: 'fails', reason: 'HeartbeatLost', message: 'silent' }],
    });
    const { failures } = body as { failures: { cause: string; nextStep: string }[] };
    expect(failures[0]?.cause).not.toBe('');
    expect(failures[0]?.nextStep).not.toBe('');
  });
});

describe('the timeline of a run', () => {
  test('has what its gateway pod knows beyond what is stored; of another workspace it is unknown', async () => {
    const harness = new McpHarness();
    const claim = { podUid: 'p', podName: 'p', gatewayAddress: 'g:1' };
    const { metadata } = harness.seedRun('acme-box', 'greeter-1', { status: { phase: 'running', claim } as never });
    const event = { type: 'warning', seq: 1, at: '2026-05-01T09:00:00.000Z', text: '<b>careful</b>' } as const;
    harness.told.set('bw-acme-box/greeter-1', {
      uid: metadata.uid ?? '',
      usage: { steps: 0, inputTokens: 0, outputTokens: 0, totalTokens: 0 },
      events: [event],
      incomplete: false,
    });
    const path = 'timeline?agentId=acme-box.greeter&runId=greeter-1';
    expect((await read(harness, path, await signIn(harness))).body).toEqual({ events: [event], transcript: 'full' });
    const foreign = await read(harness, path, await signIn(harness, OTHER_KEY));
    expect([foreign.status, foreign.body]).toEqual([404, { error: expect.stringMatching(/^agent not found/) }]);
    expect((await read(harness, 'timeline', await signIn(harness))).status).toBe(404);
  });
});

describe('events', () => {
  test('tell a page that something of its workspace has changed, many changes at once', async () => {
    const harness = new McpHarness();
    const page = await listen(harness, await signIn(harness));
    await until(() => page.changes() === 1);
    harness.seedRun('rival-box', 'spy-1', { spec: { agent: 'spy' } });
    await harness.clock.advance(GATHER_MS);
    harness.seedRun('acme-box', 'greeter-1');
    harness.seedRun('acme-box', 'greeter-2');
    harness.seedAgent('acme-box', 'writer');
    await harness.clock.advance(GATHER_MS);
    await until(() => page.changes() > 1);
    await harness.clock.advance(RECHECK_MS);
    await until(() => page.seen.text.endsWith(':\n\n'));
    expect(page.changes()).toBe(2);
    page.close();
    await until(() => harness.watchers.size === 0);
  });

  test('end within seconds when the key is revoked', async () => {
    const harness = new McpHarness();
    const page = await listen(harness, await signIn(harness));
    const [key] = [...harness.caches.APIKey.values()].filter(({ prefix }) => prefix === KEY.slice(0, 11));
    const ref = { namespace: key?.namespace ?? '', name: key?.name ?? '' };
    await harness.api.patch(APIKeys, ref, { spec: { revoked: true } }, { type: 'merge' });
    await harness.clock.advance(RECHECK_MS);
    await until(() => page.seen.ended);
    expect(page.seen.text).toContain('event: signed-out');
    page.close();
  });

  test('have a limit for each key, and need a session', async () => {
    const harness = new McpHarness();
    const cookie = await signIn(harness);
    const pages: Awaited<ReturnType<typeof listen>>[] = [];
    for (let open = 0; open < MAX_WATCHERS_OF_KEY; open++) pages.push(await listen(harness, cookie));
    const further = await read(harness, 'events', cookie);
    expect(further.status).toBe(503);
    expect(further.headers['retry-after']).toBe('10');
    expect((await read(harness, 'events')).status).toBe(401);
    harness.watchers.stop();
    await until(() => pages.every(({ seen }) => seen.ended));
    for (const page of pages) page.close();
  });
});

describe('files', () => {
  const asset = { type: 'text/javascript; charset=utf-8', bytes: Buffer.from('1;'), gzipped: Buffer.from('zipped') };
  const files = { page: Buffer.from('<!doctype html>'), assets: new Map([['/assets/main-AAAA.js', asset]]) };
  const harness = new McpHarness(undefined, undefined, files);

  test('the page is for browsers, may not be framed, and loads and runs nothing but its own files', async () => {
    const { headers, text } = await request(harness.app).get('/?x=1').set('accept', 'text/html,*/*');
    expect(text).toBe('<!doctype html>');
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*|data:/);
    expect(headers['cache-control']).toBe('no-cache');
    expect((await request(harness.app).get('/').set('accept', 'application/json')).body).toEqual({
      error: 'not found',
    });
  });

  test('assets may be kept for ever; nothing else of the image can be read', async () => {
    const { headers } = await request(harness.app).get('/assets/main-AAAA.js').set('accept-encoding', 'identity');
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect(headers['content-type']).toBe('text/javascript; charset=utf-8');
    for (const path of [
      '/assets/',
      '/assets/../boxwright.mjs',
      '/assets/%2e%2e/boxwright.mjs',
      '/register',
      '/.well-known/x',
    ]) {
      const response = await request(harness.app).get(path).set('accept', 'text/html');
      expect([response.status, response.body]).toEqual([404, { error: 'not found' }]);
    }
  });
});

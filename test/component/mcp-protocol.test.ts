/** The endpoint without its tools: authentication, JSON-RPC, HTTP (spec 4.1, 5, 7, 9). Literals are those of the spec. */
import { createServer, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import request from 'supertest';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { FREE_TRIES } from '../../src/mcp/wrong-keys.js';
import { KEY, McpHarness, OTHER_KEY, READ_ONLY_KEY } from '../builders/mcp-harness.js';

const PATH = '/api/mcp/account';
const bearer = `Bearer ${KEY}`;

describe('the key is checked first', () => {
  const harness = new McpHarness();
  harness.seedKey('acme', 'bw_revoked', { revoked: true });
  harness.seedKey('acme', 'bw_expired', { expiresAt: '2026-05-01T09:59:59Z' });
  harness.seedKey('acme', 'bw_misspelt', { expiresAt: 'soon' });

  test.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['another scheme', 'Basic abc'],
    ['no key', 'Bearer'],
    ['an unknown key', 'Bearer bad'],
    ['two words', 'Bearer a b'],
    ['a revoked key', 'Bearer bw_revoked'],
    ['an expired key', 'Bearer bw_expired'],
    ['a key whose expiry cannot be read', 'Bearer bw_misspelt'],
    ['the key without a scheme', KEY],
  ])('%s: 401 with a plain text', async (_name, header) => {
    for (const body of ['{"jsonrpc":"2.0","id":1,"method":"ping"}', '{nope']) {
      const call = request(harness.app).post(PATH).set('content-type', 'application/json');
      if (header !== undefined) call.set('authorization', header);
      const response = await call.send(body);
      expect(response.status).toBe(401);
      expect(response.headers['content-type']).toBe('text/plain; charset=utf-8');
      expect(response.headers['www-authenticate']).toBe('Bearer');
      expect(response.text).toMatch(/^Unauthorized: [^\n]+\n$/);
    }
    expect(harness.requests()).toEqual([]);
  });

  test('a web page of another origin gets 403 with the right key, and 401 with a wrong one', async () => {
    const post = (origin: string, key: string) =>
      request(harness.app)
        .post(PATH)
        .set({ 'content-type': 'application/json', origin, authorization: key })
        .send('{"jsonrpc":"2.0","id":1,"method":"ping"}');
    const foreign = await post('https://evil.example', bearer);
    expect(foreign.status).toBe(403);
    expect(foreign.body).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32600, message: expect.stringMatching(/^Forbidden: /) },
    });
    expect((await post('null', bearer)).status).toBe(403);
    expect((await post('https://evil.example', 'Bearer bad')).status).toBe(401);
    expect((await post('https://agents.example.com', bearer)).body).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
  });

  test('called by a name that is not ours it answers 403 with the right key', async () => {
    const post = (host: string) =>
      request(harness.app)
        .post(PATH)
        .set({ 'content-type': 'application/json', host, authorization: bearer })
        .send('{"jsonrpc":"2.0","id":1,"method":"ping"}');
    const rebound = await post('evil.example:8080');
    expect(rebound.status).toBe(403);
    expect(rebound.body).toMatchObject({
      id: null,
      error: { code: -32600, message: expect.stringMatching(/api\.allowedHosts/) },
    });
    for (const host of ['agents.example.com', 'localhost:18080', '10.0.0.1', 'api.bw.svc:80']) {
      expect({ host, body: (await post(host)).body as unknown }).toEqual({
        host,
        body: { jsonrpc: '2.0', id: 1, result: {} },
      });
    }
  });

  test('a client of HTTP/1.0 that names no host is no web page', async () => {
    const server = createServer(harness.app).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    const answer = await new Promise<string>((resolve, reject) => {
      let text = '';
      const socket = connect(port, '127.0.0.1', () =>
        socket.write(
          `POST ${PATH} HTTP/1.0\r\nauthorization: ${bearer}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        ),
      );
      socket
        .on('data', (part) => (text += String(part)))
        .on('end', () => resolve(text))
        .on('error', reject);
    });
    server.close();
    expect(answer).toMatch(/^HTTP\/1\.1 200 [^]*"result":{}}$/);
  });

  test.each(['get', 'put', 'patch', 'delete', 'options', 'head'] as const)('%s without a key: 401', async (method) => {
    expect((await request(harness.app)[method](PATH)).status).toBe(401);
  });

  test('the answer comes before the body has been sent', async () => {
    const server = createServer(harness.app).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { authorization: 'Bearer bad', 'content-length': String(8 * 1024 * 1024) };
      const call = httpRequest({ port, host: '127.0.0.1', path: PATH, method: 'POST', headers }, (response) => {
        resolve(response.statusCode);
        call.destroy();
      });
      call.on('error', reject);
      // Eight megabytes are announced, one byte is sent.
      call.write('{');
    });
    server.closeAllConnections();
    server.close();
    expect(status).toBe(401);
  });

  test.each(['bearer', 'BEARER', 'Bearer'])('the scheme %s is accepted', async (scheme) => {
    const response = await request(harness.app).post(PATH).set('authorization', `${scheme} ${KEY}`).send('{}');
    expect(response.status).toBe(200);
  });

  test('the key of a workspace that is being deleted stops working', async () => {
    const own = new McpHarness();
    const workspace = own.api.peek(Workspaces, 'rival');
    if (workspace === undefined) throw new Error('seeded');
    const metadata = { ...workspace.metadata, deletionTimestamp: '2026-05-01T10:00:00Z' };
    own.api.seed(Workspaces, { ...workspace, metadata });
    expect((await own.post('{}', OTHER_KEY)).status).toBe(401);
  });

  test('every use of a valid key is noted, a refused one is not', async () => {
    const own = new McpHarness();
    await own.post('{}');
    await own.post('{}', 'bad');
    expect(own.usedKeys.map(({ name }) => name)).toEqual(['key-kkk']);
  });

  test('a key that another replica revoked is refused live while the watch is behind', async () => {
    const own = new McpHarness();
    Object.assign(own.caches.APIKey, { isHealthy: () => false });
    expect((await own.post('{}')).status).toBe(200);
    expect(own.requests()).toEqual(['get apikeys']);
    own.api.vanish(
      { group: 'boxwright.dev', version: 'v1alpha1', kind: 'APIKey', plural: 'apikeys', namespaced: true },
      'bw-ws-acme/key-kkk',
    );
    expect((await own.post('{}')).status).toBe(401);
  });
});

describe('HTTP', () => {
  const harness = new McpHarness();
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

  test.each(['get', 'put', 'patch', 'delete', 'options', 'head'] as const)('%s with a key: 405', async (method) => {
    const response = await request(harness.app)[method](PATH).set('authorization', bearer);
    expect(response.status).toBe(405);
    expect(response.headers['allow']).toBe('POST');
    if (method !== 'head') {
      expect(response.body).toEqual({
        jsonrpc: '2.0',
        id: null,
        error: { code: -32600, message: 'Method not allowed: this endpoint takes POST only' },
      });
    }
  });

  test.each([
    ['accept */*', { accept: '*/*' }],
    ['accept only an event stream', { accept: 'text/event-stream' }],
    ['content type text/plain', { 'content-type': 'text/plain' }],
    ['an unknown protocol version header', { 'mcp-protocol-version': '2026-07-28' }],
    ['a session id', { 'mcp-session-id': 'x' }],
  ])('%s: 200 with JSON', async (_name, headers: Record<string, string>) => {
    const response = await request(harness.app).post(PATH).set('authorization', bearer).set(headers).send(ping);
    expect(response.status).toBe(200);
    expect(response.headers['content-type']).toBe('application/json');
    expect(response.headers['mcp-session-id']).toBeUndefined();
    expect(response.headers['etag']).toBeUndefined();
    expect(response.text).toBe('{"jsonrpc":"2.0","id":1,"result":{}}');
  });

  test.each([
    '/.well-known/oauth-protected-resource',
    '/.well-known/oauth-authorization-server',
    '/register',
    '/api/mcp/account/extra',
    '/%ZZ',
    '/',
  ])('%s: 404 with JSON for every method', async (path) => {
    for (const method of ['get', 'post'] as const) {
      const response = await request(harness.app)[method](path).set('authorization', bearer);
      expect(response.status).toBe(404);
      expect(response.headers['content-type']).toBe('application/json');
      expect(response.text).toBe('{"error":"not found"}');
    }
  });

  test.each(['/api/mcp/account/', '/api/mcp/account?a=b', '/api/mcp/account/?a=b'])(
    '%s is the endpoint',
    async (path) => {
      const response = await request(harness.app).post(path).set('authorization', bearer).send(ping);
      expect(response.text).toBe('{"jsonrpc":"2.0","id":1,"result":{}}');
    },
  );

  test('a body above 8 MB is a JSON-RPC error', async () => {
    const response = await harness.post(Buffer.alloc(8 * 1024 * 1024 + 1, 32));
    expect(response.status).toBe(200);
    expect(response.body).toMatchObject({ id: null, error: { code: -32600 } });
  });

  test('a body of exactly 8 MB is read', async () => {
    const body = Buffer.alloc(8 * 1024 * 1024, 32);
    body.write(ping);
    expect((await harness.post(body)).text).toBe('{"jsonrpc":"2.0","id":1,"result":{}}');
  });
});

describe('JSON-RPC', () => {
  const harness = new McpHarness();

  test.each(['{nope', '', '\u0000', '{"a":1}}'])('%j is no JSON: -32700 with id null', async (body) => {
    const response = await harness.post(body);
    expect(response.status).toBe(200);
    expect(response.body).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32700 } });
  });

  test('bytes that are not UTF-8: -32700', async () => {
    expect((await harness.post(Buffer.from([0x22, 0xff, 0x22]))).body).toMatchObject({ error: { code: -32700 } });
  });

  test.each([
    '[]',
    '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    '1',
    '"x"',
    'null',
    '{}',
    '{"jsonrpc":"2.0","id":{},"method":"ping"}',
    '{"jsonrpc":"2.0","id":true,"method":"ping"}',
  ])('%s is no request: -32600 with id null', async (body) => {
    const response = await harness.post(body);
    expect(response.status).toBe(200);
    expect(response.body).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32600 } });
  });

  test.each([
    '{"id":3,"method":"ping"}',
    '{"jsonrpc":"1.0","id":3,"method":"ping"}',
    '{"jsonrpc":"2.0","id":3}',
    '{"jsonrpc":"2.0","id":3,"method":4}',
  ])('%s: -32600 with its id', async (body) => {
    expect((await harness.post(body)).body).toMatchObject({ id: 3, error: { code: -32600 } });
  });

  test.each(['0', '""', '"a"', '-1', '1.5', 'null', '9007199254740993', '1e400', '"\\u00e9"'])(
    'id %s comes back as it was',
    async (id) => {
      const { text } = await harness.post(`{"params":{"id":5},"jsonrpc":"2.0","id":${id},"method":"ping"}`);
      expect(text).toBe(`{"jsonrpc":"2.0","id":${id === '"\\u00e9"' ? '"é"' : id},"result":{}}`);
    },
  );

  test.each([
    [
      'values',
      `{"jsonrpc":"2.0","id":1.5,"method":"ping","params":[${'0,'.repeat(4_000_000)}0]}`,
      'has more than 100000 values',
    ],
    [
      'depth',
      `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'['.repeat(64)}${']'.repeat(64)}}`,
      'nests deeper than 64',
    ],
    ['depth of what never ends', '['.repeat(1_000_000), 'nests deeper than 64'],
  ])('too much JSON, %s: -32600 with id null', async (_name, body, why) => {
    const response = await harness.post(body);
    expect(response.body).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32600, message: `Invalid Request: the body ${why}` },
    });
  });

  test.each(['resources/list', 'prompts/list', 'server/discover', 'logging/setLevel', 'toString'])(
    'method %s: -32601 with the id',
    async (method) => {
      expect(await harness.rpc(method)).toMatchObject({ jsonrpc: '2.0', id: 7, error: { code: -32601 } });
    },
  );

  test.each([
    ['notifications/initialized', '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
    ['an unknown notification', '{"jsonrpc":"2.0","method":"notifications/x"}'],
    ['a posted response', '{"jsonrpc":"2.0","id":1,"result":{}}'],
    [
      'a tools/call without id',
      '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"create_agent","arguments":{"name":"x"}}}',
    ],
  ])('%s: 202, empty, nothing happens', async (_name, body) => {
    const response = await harness.post(body);
    expect(response.status).toBe(202);
    expect(response.headers['content-length']).toBe('0');
    expect(response.headers['content-type']).toBeUndefined();
    expect(response.text).toBe('');
    expect(harness.requests()).toEqual([]);
  });
});

describe('initialize', () => {
  const harness = new McpHarness();

  test.each(['2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'])('%s is echoed', async (protocolVersion) => {
    const answer = await harness.rpc('initialize', { protocolVersion, capabilities: {}, clientInfo: {} });
    expect(answer['result']).toEqual({
      protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'boxwright', version: '1.2.3' },
    });
  });

  test.each([['2025-11-25'], ['2026-07-28'], ['1.0.0'], [5], [null], [undefined]])(
    '%j is answered with 2025-06-18',
    async (protocolVersion) => {
      const answer = await harness.rpc('initialize', { protocolVersion });
      expect(answer).toMatchObject({ result: { protocolVersion: '2025-06-18' } });
    },
  );

  test('params may be missing', async () => {
    expect(await harness.rpc('initialize')).toMatchObject({ result: { protocolVersion: '2025-06-18' } });
  });
});

describe('tools/list', () => {
  test('is the same bytes for every call, key and replica, and makes no request', async () => {
    const [one, two] = [new McpHarness(), new McpHarness()];
    const body = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}';
    const texts = [
      (await one.post(body)).text,
      (await one.post(body, READ_ONLY_KEY)).text,
      (await one.post(body, OTHER_KEY)).text,
      (await two.post(body)).text,
    ];
    expect(new Set(texts).size).toBe(1);
    expect(Object.keys((JSON.parse(texts[0] ?? '') as { result: object }).result)).toEqual(['tools']);
    expect(one.requests()).toEqual([]);
  });
});

test('a body that comes too slowly while others need the room gets an answer, and its connection is closed', async () => {
  const harness = new McpHarness();
  const server = createServer(harness.app).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const half = 5 * 1024 * 1024;
  const post = () =>
    new Promise<{ connection: string | undefined; text: string }>((resolve, reject) => {
      const headers = { authorization: bearer, 'content-length': String(2 * half) };
      const call = httpRequest({ port, host: '127.0.0.1', path: PATH, method: 'POST', headers }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.on('end', () => resolve({ connection: response.headers.connection, text }));
      });
      call.on('error', reject);
      call.write(Buffer.alloc(half, ' '));
    });
  const slow = await Promise.race([post(), post()]);
  expect(slow.connection).toBe('close');
  expect(JSON.parse(slow.text)).toMatchObject({ id: null, error: { code: -32600 } });
  expect(harness.bodies.bytes).toBeLessThanOrEqual(9 * 1024 * 1024);
  server.closeAllConnections();
  server.close();
});

describe('logs', () => {
  test('answers with secrets and wrong keys are in the audit log, with the address of the caller', async () => {
    const harness = new McpHarness();
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'list_triggers', arguments: { agentId: 'acme-box.greeter' } },
    };
    const post = (authorization?: string) => {
      const call = request(harness.app).post(PATH).set('x-forwarded-for', '1.1.1.1, 198.51.100.1');
      return (authorization === undefined ? call : call.set('authorization', authorization)).send(body);
    };
    expect((await post(bearer)).status).toBe(200);
    expect((await post('Bearer bw_wrong')).status).toBe(401);
    expect((await post()).status).toBe(401);
    const lines = harness.logLines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const audit = lines.filter((line) => line['audit'] === true);
    expect(audit).toEqual([
      expect.objectContaining({ tool: 'list_triggers', level: 'info', outcome: 'ok', address: '198.51.100.1' }),
      expect.objectContaining({ outcome: 'wrong_key', level: 'info', address: '198.51.100.1' }),
    ]);
    expect(harness.logLines.join('')).not.toContain('bw_wrong');
  });

  test('many wrong keys make wrong ones wait, and never a right one', async () => {
    const harness = new McpHarness();
    const ping = (authorization: string) =>
      request(harness.app)
        .post(PATH)
        .set('authorization', authorization)
        .send({ jsonrpc: '2.0', id: 1, method: 'ping' });
    for (let n = 0; n < FREE_TRIES; n++) expect((await ping('Bearer bad')).status).toBe(401);
    const late = ping('Bearer bad').then(({ status }) => status);
    while (harness.clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
    expect((await ping(bearer)).status).toBe(200);
    await harness.clock.advance(2_000);
    expect(await late).toBe(401);
  });

  test('no line holds a key or a trigger URL, whatever the path', async () => {
    const harness = new McpHarness();
    await harness.call('upsert_trigger', { agentId: 'acme-box.greeter', name: 'hook', body: 'secret body' });
    const { payload } = await harness.call('list_triggers', { agentId: 'acme-box.greeter' });
    const [{ url }] = payload['triggers'] as [{ url: string }];
    await request(harness.app).get('/register').set('authorization', bearer);
    await harness.post('{nope');
    const text = harness.logLines.join('');
    expect(text).toContain('"tool":"upsert_trigger"');
    for (const secret of [KEY, url, url.slice(-43), 'secret body']) expect(text).not.toContain(secret);
  });
});

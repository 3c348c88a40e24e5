/** Published files as people get them: listed by get_run and get_session, downloaded by their URL. */
import request from 'supertest';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentRunFileParts } from '../../src/api/v1alpha1/agent-run-file-part.js';
import { ClusterFileStore, digestOfFile } from '../../src/files/cluster-file-store.js';
import { FILE_URL_MS } from '../../src/services/files/file-links.js';
import { apiError } from '../builders/recording-api.js';
import { McpHarness, OTHER_KEY, PUBLIC_URL } from '../builders/mcp-harness.js';

const AGENT = 'acme-box.greeter';
const CONTENT = Buffer.from('0123456789');

let harness: McpHarness;
beforeEach(() => {
  harness = new McpHarness();
});

interface Listed {
  name: string;
  url: string;
  expiresAt: string;
}

/** A run that published these names, in this order. */
async function published(
  run: string,
  names: readonly string[],
  content = CONTENT,
  box = 'acme-box',
  agent = 'greeter',
) {
  const { metadata } = harness.seedRun(box, run, { spec: { agent } });
  const owner = { namespace: `bw-${box}`, name: run, uid: metadata.uid ?? '' };
  const place = await new ClusterFileStore(harness.api).put(owner, content, 0);
  const files = names.map((name) => ({
    name,
    mediaType: 'text/plain',
    bytes: content.length,
    sha256: digestOfFile(content),
    ...place,
  }));
  harness.seedRun(box, run, { spec: { agent }, metadata, status: { phase: 'done', files, fileCount: files.length } });
  return files;
}

async function listed(run: string): Promise<Listed[]> {
  const { payload } = await harness.call('get_run', { agentId: AGENT, runId: run });
  return payload['files'] as Listed[];
}

async function urlOf(run: string): Promise<string> {
  const [file] = await listed(run);
  return (file?.url ?? '').slice(PUBLIC_URL.length);
}

const get = (url: string, headers: Record<string, string> = {}) =>
  request(harness.app)
    .get(url)
    .set(headers)
    .buffer(true)
    .parse(asBytes as never);

function asBytes(response: NodeJS.ReadableStream, done: (error: null, body: Buffer) => void): void {
  const pieces: Buffer[] = [];
  response.on('data', (piece: Buffer) => pieces.push(piece));
  response.on('end', () => done(null, Buffer.concat(pieces)));
}

describe('lists', () => {
  test('get_run and get_session name the files of a run, with a URL for an hour', async () => {
    await published('greeter-1', ['a.txt', 'b.txt']);
    const files = await listed('greeter-1');
    expect(files).toEqual(
      ['a.txt', 'b.txt'].map((name) => ({
        name,
        mediaType: 'text/plain',
        bytes: 10,
        sha256: digestOfFile(CONTENT),
        url: expect.stringMatching(
          /^https:\/\/agents\.example\.com\/api\/files\/acme-box\/greeter-1\/[0-9a-f]{64}\/\d+\/k1\.[\w-]{43}\/.\.txt$/,
        ),
        expiresAt: '2026-05-01T11:00:00.000Z',
      })),
    );
    const session = await harness.call('get_session', { agentId: AGENT, sessionId: 's-greeter-1' });
    expect(session.payload['files']).toEqual(files.map((file) => ({ runId: 'greeter-1', ...file })));
  });

  test('a run without files has an empty list, and of one name the newest is shown', async () => {
    harness.seedRun('acme-box', 'greeter-1');
    expect(await listed('greeter-1')).toEqual([]);
    await published('greeter-2', ['a.txt', 'b.txt', 'a.txt']);
    expect((await listed('greeter-2')).map(({ name }) => name)).toEqual(['b.txt', 'a.txt']);
  });

  test('another workspace sees nothing of it', async () => {
    await published('greeter-1', ['a.txt']);
    const { isError } = await harness.call('get_run', { agentId: AGENT, runId: 'greeter-1' }, OTHER_KEY);
    expect(isError).toBe(true);
  });
});

describe('a download', () => {
  test('gives the bytes, to be saved under their name and never shown', async () => {
    await published('greeter-1', ['Bericht "März".html']);
    const answer = await get(await urlOf('greeter-1'));
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual(CONTENT);
    expect(answer.headers).toMatchObject({
      'content-type': expect.stringMatching(/^text\/plain/),
      'content-length': '10',
      'content-disposition': `attachment; filename="Bericht \\"M?rz\\".html"; filename*=UTF-8''Bericht%20%22M%C3%A4rz%22.html`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      'cache-control': 'private, no-cache',
      'accept-ranges': 'bytes',
      'referrer-policy': 'no-referrer',
    });
    expect(answer.headers).not.toHaveProperty('set-cookie');
    expect(harness.downloads).toEqual(['sent']);
  });

  test('names that are not Latin go out by RFC 5987', async () => {
    await published('greeter-1', ['報告.txt']);
    const { headers } = await get(await urlOf('greeter-1'));
    expect(headers['content-disposition']).toBe(
      `attachment; filename="??.txt"; filename*=UTF-8''%E5%A0%B1%E5%91%8A.txt`,
    );
  });

  test('HEAD says the same without the bytes', async () => {
    await published('greeter-1', ['a.txt']);
    const { status, headers, text } = await request(harness.app).head(await urlOf('greeter-1'));
    expect([status, headers['content-length'], text]).toEqual([200, '10', undefined]);
  });

  test.each([
    ['bytes=2-4', 206, '234', 'bytes 2-4/10'],
    ['bytes=7-', 206, '789', 'bytes 7-9/10'],
    ['bytes=-2', 206, '89', 'bytes 8-9/10'],
    ['bytes=5-99', 206, '56789', 'bytes 5-9/10'],
    ['bytes=10-', 416, undefined, 'bytes */10'],
    // Several ranges, other units and nonsense get the whole file, as RFC 9110 allows.
    ['bytes=0-1,4-5', 200, '0123456789', undefined],
    ['lines=1-2', 200, '0123456789', undefined],
    ['nonsense', 200, '0123456789', undefined],
  ])('range %s is answered with %i', async (range, status, body, contentRange) => {
    await published('greeter-1', ['a.txt']);
    const answer = await get(await urlOf('greeter-1'), { range });
    expect([answer.status, answer.headers['content-range']]).toEqual([status, contentRange]);
    if (body !== undefined) expect((answer.body as Buffer).toString()).toBe(body);
  });

  test('goes on only with the same content, and is not sent to who has it', async () => {
    await published('greeter-1', ['a.txt']);
    const url = await urlOf('greeter-1');
    const etag = (await get(url)).headers['etag'] as string;
    expect((await get(url, { range: 'bytes=1-', 'if-range': etag })).status).toBe(206);
    expect((await get(url, { range: 'bytes=1-', 'if-range': '"other"' })).status).toBe(200);
    expect((await get(url, { 'if-none-match': etag })).status).toBe(304);
  });

  test('an empty file is one', async () => {
    await published('greeter-1', ['a.txt'], Buffer.alloc(0));
    const answer = await get(await urlOf('greeter-1'));
    expect([answer.status, answer.headers['content-length']]).toEqual([200, '0']);
  });

  test('every wrong URL, an expired one and one whose file is gone get the same 404', async () => {
    const [file] = await published('greeter-1', ['a.txt']);
    await published('spy-1', ['a.txt'], CONTENT, 'rival-box', 'spy');
    const url = await urlOf('greeter-1');
    const parts = url.split('/');
    const [, , , box, run, sha256, expires, token, name] = parts;
    const made = (...path: (string | undefined)[]) => `/api/files/${path.join('/')}`;
    const last = token?.at(-1) === 'A' ? 'B' : 'A';
    const wrong = [
      made('rival-box', 'spy-1', sha256, expires, token, name),
      made(box, 'greeter-2', sha256, expires, token, name),
      made(box, run, file?.sha256.replace(/^./, 'x'), expires, token, name),
      made(box, run, sha256, String(Number(expires) + 1), token, name),
      made(box, run, sha256, expires, `${token?.slice(0, -1)}${last}`, name),
      made(box, run, sha256, expires, token?.replace('k1.', 'k2.'), name),
      made(box, run, sha256, expires, token?.slice(3), name),
      made(box, run, sha256, expires, token, 'b.txt'),
      made(box, run, sha256, expires, token),
      `${url}/more`,
      made(box, run, sha256, expires, token, '%ZZ'),
      '/api/files',
      '/api/files/',
      made('..', '..', sha256, expires, token, name),
    ];
    harness.api.clearRecords();
    const answers = [];
    for (const path of wrong) answers.push(await get(path));
    // Nothing is read before the URL is checked.
    expect(harness.api.reads).toEqual([]);
    expect(harness.downloads).toEqual(wrong.map(() => 'unknown'));
    await harness.clock.advance(FILE_URL_MS);
    answers.push(await get(url));
    const fresh = await urlOf('greeter-1');
    await harness.api.delete(AgentRunFileParts, { namespace: 'bw-acme-box', name: 'greeter-1.f00' });
    answers.push(await get(fresh));
    await harness.api.delete(AgentRuns, { namespace: 'bw-acme-box', name: 'greeter-1' });
    answers.push(await get(fresh));
    expect(
      new Set(
        answers.map(({ status, headers, body }) => `${status} ${String(headers['content-type'])} ${String(body)}`),
      ).size,
    ).toBe(1);
    expect(answers[0]?.status).toBe(404);
  });

  test('a namesake of the run with other content gives nothing out', async () => {
    await published('greeter-1', ['a.txt']);
    const url = await urlOf('greeter-1');
    await harness.api.delete(AgentRunFileParts, { namespace: 'bw-acme-box', name: 'greeter-1.f00' });
    await published('greeter-1', ['a.txt'], Buffer.from('of the next run'));
    expect((await get(url)).status).toBe(404);
  });

  test('only GET and HEAD are there', async () => {
    await published('greeter-1', ['a.txt']);
    const url = await urlOf('greeter-1');
    for (const method of ['post', 'put', 'delete', 'options'] as const) {
      const { status, headers } = await request(harness.app)[method](url);
      expect([method, status, headers['allow']]).toEqual([method, 405, 'GET, HEAD']);
    }
  });

  test('the store is down: 503, and nothing of the URL in any log', async () => {
    await published('greeter-1', ['a.txt']);
    const url = await urlOf('greeter-1');
    harness.api.failNext({ verb: 'get', resource: 'agentrunfileparts', error: apiError(500, 'InternalError') });
    const answer = await get(url);
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '2']);
    await get(url);
    await get(`${url}x`);
    const token = url.split('/')[7] ?? 'no token';
    expect(harness.logLines.length).toBeGreaterThan(0);
    expect(harness.logLines.filter((line) => line.includes(token) || line.includes(token.slice(3, 20)))).toEqual([]);
  });

  test('more than a Box may in a moment gets 429', async () => {
    await published('greeter-1', ['a.txt']);
    const url = await urlOf('greeter-1');
    const statuses = [];
    for (let call = 0; call < 61; call++) statuses.push((await get(url)).status);
    expect(statuses).toEqual([...Array<number>(60).fill(200), 429]);
  });
});

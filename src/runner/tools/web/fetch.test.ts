/** The tool `fetch` against real servers on this machine, which its rule allows or refuses. */
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { RIPGREP } from '../../../../test/builders/ripgrep.js';
import { pdfOf } from '../../../../test/builders/pdf.js';
import { webAccess } from '../../../../test/builders/web-access.js';
import { temporaryDirectories } from '../../../../test/builders/workspace.js';
import { publicAddresses } from '../../../net/public-address.js';
import type { AddressRule } from '../../../net/public-address.js';
import type { Resolve } from '../../../net/dial.js';
import { systemClock } from '../../../runtime/clock.js';
import type { Clock } from '../../../runtime/clock.js';
import { createToolExecutor } from '../executor.js';
import { createShell } from '../shell.js';

const temporary = temporaryDirectories();
const servers: Server[] = [];
let workspace: string;

beforeEach(async () => {
  workspace = await temporary('web');
});
afterEach(async () => {
  await Promise.all(
    servers.splice(0).map((server) => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    }),
  );
});

/** A server on loopback; gives its port. */
async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

const answering =
  (body: string | Buffer, headers: Record<string, string> = {}, status = 200): RequestListener =>
  (_request, response) =>
    response.writeHead(status, { 'content-type': 'text/plain', ...headers }).end(body);

interface Options {
  isAllowed?: AddressRule;
  resolve?: Resolve;
  clock?: Clock;
  signal?: AbortSignal;
}

function fetchUrl(url: string, options: Options = {}) {
  const execute = createToolExecutor({
    ripgrep: RIPGREP,
    shell: createShell({ home: '/nowhere', clock: systemClock }),
    workspace,
    home: '/nowhere',
    clock: options.clock ?? systemClock,
    web: webAccess({ isAllowed: () => true, ...options }),
  });
  const call = { type: 'call' as const, run: 'ada-1', call: 7, tool: 'fetch' as const, input: { url } };
  return execute(call, options.signal ?? new AbortController().signal);
}
const failure = async (url: string, options: Options = {}) => {
  const { isError, result } = await fetchUrl(url, options);
  expect(isError).toBe(true);
  return result['error'];
};

test('a page becomes markdown, under the name that was asked for', async () => {
  let host: string | undefined;
  const port = await serve((request, response) => {
    host = request.headers.host;
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    response.end('<html><head><title>Grüße</title></head><body><h2>Hallo</h2><a href="/a">mehr</a></body></html>');
  });
  expect(await fetchUrl(`http://page.example:${port}/x?y=1`)).toEqual({
    isError: false,
    result: {
      url: `http://page.example:${port}/x?y=1`,
      status: 200,
      contentType: 'text/html; charset=utf-8',
      title: 'Grüße',
      content: `## Hallo\n\n[mehr](http://page.example:${port}/a)`,
    },
  });
  expect(host).toBe(`page.example:${port}`);
});

test.each([
  ['this machine', 'http://127.0.0.1:PORT/'],
  ['by a number', 'http://2130706433:PORT/'],
  ['in hexadecimal', 'http://0x7f.1:PORT/'],
  ['by IPv6', 'http://[::1]:PORT/'],
  ['mapped', 'http://[::ffff:127.0.0.1]:PORT/'],
  ['by a name that leads there', 'http://inside.example:PORT/'],
  ['the metadata service', 'http://169.254.169.254/latest/meta-data/'],
])('no connection is made to %s', async (_name, url) => {
  let calls = 0;
  const port = await serve((_request, response) => {
    calls += 1;
    response.end('inside');
  });
  expect(await failure(url.replace('PORT', String(port)), { isAllowed: publicAddresses() })).toMatch(
    /is not an address of the public internet; only those can be fetched\.$/,
  );
  expect(calls).toBe(0);
});

test('a redirect is checked like the first address', async () => {
  let inside = 0;
  const secret = await serve((_request, response) => {
    inside += 1;
    response.end('inside');
  });
  const port = await serve((_request, response) => {
    response.writeHead(302, { location: `http://metadata.example:${secret}/` }).end();
  });
  const resolve: Resolve = (host) => Promise.resolve([host === 'public.example' ? '127.0.0.1' : '127.0.0.9']);
  const isAllowed: AddressRule = (address) => address === '127.0.0.1';
  expect(await failure(`http://public.example:${port}/`, { isAllowed, resolve })).toBe(
    'metadata.example is not an address of the public internet; only those can be fetched.',
  );
  expect(inside).toBe(0);
});

test('five redirects are followed, a sixth is not', async () => {
  const port = await serve((request, response) => {
    const left = Number(request.url?.slice(1));
    if (left === 0) response.writeHead(200, { 'content-type': 'text/plain' }).end('there');
    else response.writeHead(307, { location: `/${left - 1}` }).end();
  });
  expect((await fetchUrl(`http://a.example:${port}/5`)).result).toMatchObject({
    url: `http://a.example:${port}/0`,
    content: 'there',
  });
  expect(await failure(`http://a.example:${port}/6`)).toBe('The address redirects more than 5 times.');
});

test.each([
  ['file:///etc/passwd', 'Only http and https addresses can be fetched.'],
  ['ftp://a.example/', 'Only http and https addresses can be fetched.'],
  ['http://user:word@a.example/', 'The address must not contain a user or password.'],
  ['no address', 'url is not an address such as https://example.com/page.'],
])('%s is refused', async (url, error) => {
  expect(await failure(url)).toBe(error);
});

test('a redirect to a file is refused', async () => {
  const port = await serve((_request, response) => response.writeHead(301, { location: 'file:///etc/passwd' }).end());
  expect(await failure(`http://a.example:${port}/`)).toBe('Only http and https addresses can be fetched.');
});

test('a status that is no success is an error with its text', async () => {
  const port = await serve(answering('no such page', {}, 404));
  expect(await fetchUrl(`http://a.example:${port}/`)).toEqual({
    isError: true,
    result: { url: `http://a.example:${port}/`, status: 404, contentType: 'text/plain', content: 'no such page' },
  });
});

test.each([
  ['gzip', gzipSync('packed')],
  ['br', brotliCompressSync('packed')],
])('an answer that is packed with %s is unpacked', async (encoding, body) => {
  const port = await serve(answering(body, { 'content-encoding': encoding }));
  expect((await fetchUrl(`http://a.example:${port}/`)).result).toMatchObject({ content: 'packed' });
});

test('5 MiB pass, one byte more does not, packed or not', async () => {
  const limit = 5 * 1024 * 1024;
  const whole = await serve(answering(Buffer.alloc(limit, 'x')));
  expect((await fetchUrl(`http://a.example:${whole}/`)).result).toMatchObject({ contentBytes: limit, truncated: true });
  const bomb = gzipSync(Buffer.alloc(limit + 1, 'x'));
  expect(bomb.length).toBeLessThan(10_000);
  const port = await serve(answering(bomb, { 'content-encoding': 'gzip' }));
  expect(await failure(`http://a.example:${port}/`)).toBe('The answer is larger than 5 MiB.');
});

test('long text is cut for the model and whole in the workspace', async () => {
  const text = 'äöü '.repeat(10_000);
  const port = await serve(answering(text));
  const { result } = await fetchUrl(`http://a.example:${port}/`);
  expect(result).toMatchObject({ truncated: true, contentBytes: 70_000, wholeTextPath: '.runs/ada-1/7.md' });
  expect(Buffer.byteLength(String(result['content']))).toBeLessThanOrEqual(30_000);
  expect(await readFile(join(workspace, '.runs/ada-1/7.md'), 'utf8')).toBe(text);
});

test.each([
  ['application/octet-stream', 'The answer is application/octet-stream, and only text and PDF can be fetched.'],
  ['image/png', 'The answer is image/png, and only text and PDF can be fetched.'],
])('%s is not text', async (type, error) => {
  const port = await serve(answering('x', { 'content-type': type }));
  expect(await failure(`http://a.example:${port}/`)).toBe(error);
});

test.each(['application/pdf', 'application/octet-stream'])('a PDF is read, also as %s', async (type) => {
  const port = await serve(
    answering(pdfOf([['The mill', 'grinds.'], ['Slowly.']], { title: 'Mills' }), { 'content-type': type }),
  );
  expect((await fetchUrl(`http://a.example:${port}/`)).result).toMatchObject({
    title: 'Mills',
    content: '[page 1]\nThe mill\ngrinds.\n\n[page 2]\nSlowly.',
  });
});

test('a PDF may have 20 MiB', async () => {
  const limit = 20 * 1024 * 1024;
  const pdf = { 'content-type': 'application/pdf' };
  const fits = Buffer.concat([pdfOf([['Here.']]), Buffer.alloc(limit / 2, ' ')]);
  const whole = await serve(answering(fits, pdf));
  expect((await fetchUrl(`http://a.example:${whole}/`)).result).toMatchObject({ content: '[page 1]\nHere.' });
  const port = await serve(answering(Buffer.alloc(limit + 1), pdf));
  expect(await failure(`http://a.example:${port}/`)).toBe('The answer is larger than 20 MiB.');
});

test('what says that it is text and is not, is refused', async () => {
  const port = await serve(answering(Buffer.from([0x50, 0, 0x4b])));
  expect(await failure(`http://a.example:${port}/`)).toBe('The answer is not text.');
});

test.each(['application/json', 'application/ld+json', 'application/xml', 'text/csv', 'application/yaml'])(
  '%s is given as it is',
  async (type) => {
    const port = await serve(answering('{"a": [1]}', { 'content-type': type }));
    expect((await fetchUrl(`http://a.example:${port}/`)).result).toMatchObject({ content: '{"a": [1]}' });
  },
);

test('the charset of the answer, or of the page, counts', async () => {
  const latin = await serve(
    answering(Buffer.from('Größe', 'latin1'), { 'content-type': 'text/plain; charset=ISO-8859-1' }),
  );
  expect((await fetchUrl(`http://a.example:${latin}/`)).result).toMatchObject({ content: 'Größe' });
  const page = Buffer.from('<html><head><meta charset="iso-8859-1"></head><body>Größe</body></html>', 'latin1');
  const html = await serve(answering(page, { 'content-type': 'text/html' }));
  expect((await fetchUrl(`http://a.example:${html}/`)).result).toMatchObject({ content: 'Größe' });
  const odd = await serve(answering('ok', { 'content-type': 'text/plain; charset=klingon' }));
  expect((await fetchUrl(`http://a.example:${odd}/`)).result).toMatchObject({ content: 'ok' });
});

test('an answer that never ends is given up after 30 s, and its connection closed', async () => {
  const closed = Promise.withResolvers<void>();
  const port = await serve((request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).write('slow');
    request.socket.once('close', () => closed.resolve());
  });
  const hurried: Clock = { ...systemClock, after: (ms, callback) => systemClock.after(ms / 100, callback) };
  expect(await failure(`http://a.example:${port}/`, { clock: hurried })).toBe(
    'No whole answer came within 30 seconds.',
  );
  await closed.promise;
});

test('a server that changes the protocol instead of answering has closed the connection', async () => {
  const port = await serve(({ socket }) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'),
  );
  expect(await failure(`http://a.example:${port}/`)).toBe(
    `a.example:${port} could not be fetched: it closed the connection.`,
  );
});

test('a caller that is gone ends the connection', async () => {
  const abort = new AbortController();
  const closed = Promise.withResolvers<void>();
  const port = await serve((request) => {
    request.socket.once('close', () => closed.resolve());
    abort.abort();
  });
  expect((await fetchUrl(`http://a.example:${port}/`, { signal: abort.signal })).isError).toBe(true);
  await closed.promise;
});

test('a host that is not there says so', async () => {
  const unknown: Resolve = () => Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' }));
  expect(await failure('http://missing.example/', { resolve: unknown })).toBe(
    'missing.example could not be fetched: its name is not known.',
  );
  expect(await failure('http://127.0.0.1:1/')).toBe('127.0.0.1:1 could not be fetched: it refused the connection.');
});

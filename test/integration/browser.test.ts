/** The tools of the browser with Debian's Chromium (hack/test.sh installs it) and pages of this machine. */
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BROWSER_EXECUTABLE } from '../../src/protocol/pod.js';
import type { ToolName } from '../../src/protocol/tools-socket.js';
import { systemClock } from '../../src/runtime/clock.js';
import { createBrowser } from '../../src/runner/tools/browser/browser.js';
import type { Browser } from '../../src/runner/tools/browser/browser.js';
import { createToolExecutor } from '../../src/runner/tools/executor.js';
import { createShell } from '../../src/runner/tools/shell.js';
import { RIPGREP } from '../builders/ripgrep.js';
import { webAccess } from '../builders/web-access.js';
import { temporaryDirectories } from '../builders/workspace.js';

const temporary = temporaryDirectories();
let server: Server;
let port: number;
let asked: string[];
let workspace: string;
let browser: Browser;
/** 127.0.0.1 stands for the public web, 127.0.0.2 for what is inside. */
const dialer = {
  isAllowed: (address: string) => address === '127.0.0.1',
  resolve: (host: string) => Promise.resolve([host.startsWith('inside.') ? '127.0.0.2' : '127.0.0.1']),
};

const PAGES: Record<string, string> = {
  '/': `<title>Shop</title><h1>Shop</h1><a href="/cart">Cart</a>
    <form action="/search"><input name="q" aria-label="Search"></form>`,
  '/cart': '<title>Cart</title><p>Nothing in it.</p>',
  '/long': `<title>Long</title>${'<p>Much to read here.</p>'.repeat(1200)}`,
};

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(`${request.headers.host} ${request.url}`);
    response.setHeader('content-type', 'text/html');
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x');
    if (pathname === '/away') response.writeHead(302, { location: `http://inside.example:${port}/` }).end();
    else if (pathname === '/spy') response.end(`<title>Spy</title><img src="http://inside.example:${port}/secret">`);
    else if (pathname === '/search') response.end(`<title>Found</title><h2>Found ${searchParams.get('q')}</h2>`);
    else response.end(PAGES[pathname] ?? '');
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  port = (server.address() as AddressInfo).port;
  workspace = await temporary('browser');
  browser = createBrowser({ executable: BROWSER_EXECUTABLE, home: workspace, dialer });
});
beforeEach(() => {
  asked = [];
});
afterAll(async () => {
  await browser.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

let calls = 0;
function call(tool: ToolName, input: Record<string, unknown> = {}, services: { browser?: Browser } = { browser }) {
  calls += 1;
  const execute = createToolExecutor({
    ripgrep: RIPGREP,
    shell: createShell({ home: workspace, clock: systemClock }),
    workspace,
    home: workspace,
    clock: systemClock,
    web: webAccess(),
    ...services,
  });
  return execute({ type: 'call', run: 'ada-1', call: calls, tool, input }, new AbortController().signal);
}
const open = (path: string, host = 'shop.example') =>
  call('browser_navigate', { url: `http://${host}:${port}${path}` });
const refOf = (result: Record<string, unknown>, thing: string) =>
  new RegExp(`${thing} \\[ref=(\\w+)\\]`).exec(String(result['snapshot']))?.[1] ?? `no ${thing}`;

test('a page is opened, a link is clicked, a form is filled in', async () => {
  const shop = await open('/');
  expect(shop).toMatchObject({ isError: false, result: { status: 200, title: 'Shop' } });
  expect(shop.result['snapshot']).toContain('heading "Shop" [level=1]');
  const cart = await call('browser_click', { ref: refOf(shop.result, 'link "Cart"') });
  expect(cart.result).toMatchObject({ title: 'Cart', url: `http://shop.example:${port}/cart` });
  expect(cart.result['snapshot']).toContain('Nothing in it.');

  const again = await open('/');
  const search = { ref: refOf(again.result, 'textbox "Search"'), text: 'tea & cake', submit: true };
  expect((await call('browser_type', search)).result).toMatchObject({ title: 'Found' });
  expect((await call('browser_snapshot')).result['snapshot']).toContain('heading "Found tea & cake" [level=2]');
});

test('a ref that is not there says what to do', async () => {
  await open('/');
  expect(await call('browser_click', { ref: 'e9999' })).toEqual({
    isError: true,
    result: {
      error:
        'The page did not do this in time, or the ref is not of the latest snapshot: take a snapshot and try again.',
    },
  });
});

test('a picture is a file of the workspace', async () => {
  await open('/');
  const { result, pictures } = await call('browser_screenshot');
  expect(result).toMatchObject({ path: `.runs/ada-1/${calls}.png`, width: 1280, height: 800, title: 'Shop' });
  const picture = await readFile(join(workspace, String(result['path'])));
  expect(picture.subarray(1, 4).toString()).toBe('PNG');
  expect(picture.length).toBe(result['bytes']);
  // A model that sees is shown it.
  expect(pictures).toEqual([{ mediaType: 'image/png', data: picture.toString('base64') }]);
  await open('/long');
  expect((await call('browser_screenshot', { fullPage: true })).result).toMatchObject({
    note: expect.stringContaining('too long for one picture'),
    height: 800,
  });
});

test('a long page is cut', async () => {
  const { result } = await open('/long');
  expect(result).toMatchObject({ truncated: true });
  expect(Buffer.byteLength(String(result['snapshot']))).toBeLessThanOrEqual(30_000);
});

test.each([
  ['by name', 'inside.example'],
  ['by address', '127.0.0.2'],
  ['by another spelling', '127.2'],
  ['by IPv6', '[::1]'],
])('what is inside is not opened %s', async (_name, host) => {
  const { isError, result } = await open('/', host);
  expect({ isError, error: result['error'] }).toEqual({
    isError: true,
    error: expect.stringMatching(/is not an address of the public internet; only those can be opened\.$/),
  });
  expect(asked).toEqual([]);
});

test('localhost goes through the rule as every name does', async () => {
  await open('/', 'localhost');
  expect(asked).toContain(`localhost:${port} /`);
});

test('a redirect or a picture does not get inside either', async () => {
  expect((await open('/away')).isError).toBe(true);
  expect((await open('/spy')).result).toMatchObject({ title: 'Spy' });
  expect(asked.filter((line) => line.startsWith('inside.'))).toEqual([]);
});

test.each(['file:///etc/passwd', 'chrome://version', 'javascript:1', 'about:blank'])('%s is refused', async (url) => {
  expect(await call('browser_navigate', { url })).toEqual({
    isError: true,
    result: { error: 'url is not an address such as https://example.com/page.' },
  });
});

test('a browser that died is started again', async () => {
  await open('/');
  const page = await browser.page();
  await page.context().browser()?.close();
  const first = await open('/cart');
  const second = first.isError ? await open('/cart') : first;
  expect(second.result).toMatchObject({ title: 'Cart' });
});

test('where the image has no browser, the call says so', async () => {
  expect(await call('browser_snapshot', {}, {})).toEqual({
    isError: true,
    result: { error: expect.stringContaining('The image of this run has no browser.') },
  });
});

test('a browser that cannot be started is a failed call', async () => {
  const broken = createBrowser({ executable: '/bin/false', home: workspace, dialer });
  expect(await call('browser_snapshot', {}, { browser: broken })).toEqual({
    isError: true,
    result: { error: expect.stringMatching(/^The browser could not be started: /) },
  });
});

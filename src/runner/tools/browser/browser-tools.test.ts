/** What a screenshot shows to a model that sees, with a page that a test plays; test/integration/browser.test.ts has a real one. */
import { pngOf } from '../../../../test/builders/png.js';
import { webAccess } from '../../../../test/builders/web-access.js';
import { createShell } from '../shell.js';
import { temporaryDirectories } from '../../../../test/builders/workspace.js';
import { systemClock } from '../../../runtime/clock.js';
import type { Browser } from './browser.js';
import { screenshot } from './browser-tools.js';

const temporary = temporaryDirectories();
const JPEG = Buffer.from('ffd8ffe000104a4649460001', 'hex');

async function taken(png: Buffer, jpeg = JPEG) {
  const page = {
    screenshot: ({ type }: { type?: string }) => Promise.resolve(type === 'jpeg' ? jpeg : png),
    url: () => 'https://a.example/',
    title: () => Promise.resolve('A'),
  };
  const browser = { page: () => Promise.resolve(page) } as unknown as Browser;
  const context = {
    workspace: await temporary('workspace'),
    home: '/nowhere',
    clock: systemClock,
    ripgrep: '/nowhere',
    shell: createShell({ home: '/nowhere', clock: systemClock }),
    web: webAccess(),
    browser,
    run: 'ada-1',
    call: 1,
    signal: new AbortController().signal,
  };
  return screenshot({}, context);
}

test('the picture that is kept is shown', async () => {
  const png = pngOf(1280, 800);
  const { result, pictures } = await taken(png);
  expect(result).toMatchObject({ path: '.runs/ada-1/1.png', bytes: png.length, width: 1280, height: 800 });
  expect(result).not.toHaveProperty('notShown');
  expect(pictures).toEqual([{ mediaType: 'image/png', data: png.toString('base64') }]);
});

test('one that is too large for that is shown as JPEG', async () => {
  const { result, pictures } = await taken(pngOf(1280, 800, 700 * 1024));
  expect(result).toMatchObject({ path: '.runs/ada-1/1.png', bytes: 700 * 1024 });
  expect(pictures).toEqual([{ mediaType: 'image/jpeg', data: JPEG.toString('base64') }]);
});

test.each([
  ['long', pngOf(1280, 9000), JPEG],
  ['large also as JPEG', pngOf(1280, 800, 700 * 1024), Buffer.concat([JPEG, Buffer.alloc(700 * 1024)])],
])('one that is too %s is kept alone, and says so', async (_case, png, jpeg) => {
  const { result, pictures } = await taken(png, jpeg);
  expect(result).toMatchObject({ bytes: png.length, notShown: 'The picture is too large to be shown.' });
  expect(pictures).toBeUndefined();
});

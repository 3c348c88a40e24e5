import { podTools } from './pod-tools.js';
import type { ToolsClient } from './tools-client.js';

const client: ToolsClient = { call: () => Promise.resolve({ isError: false, result: {} }) };
const namesOf = (families: Record<string, boolean>, hasBrowser: boolean) =>
  podTools(families, { client, hasBrowser }).map(({ name }) => name);

const FILES = ['read', 'write', 'edit', 'list', 'grep', 'glob'];
const BROWSER = ['browser_navigate', 'browser_snapshot', 'browser_click', 'browser_type', 'browser_screenshot'];

test('every family is on by default', () => {
  expect(namesOf({}, true)).toEqual(['shell', ...FILES, 'fetch', ...BROWSER, 'ask_user']);
});

test.each([
  ['shell', [...FILES, 'fetch', ...BROWSER, 'ask_user']],
  ['files', ['shell', 'fetch', ...BROWSER, 'ask_user']],
  ['web', ['shell', ...FILES, ...BROWSER, 'ask_user']],
  ['browser', ['shell', ...FILES, 'fetch', 'ask_user']],
])('family %s can be switched off alone', (family, names) => {
  expect(namesOf({ shell: true, files: true, web: true, browser: true, [family]: false }, true)).toEqual(names);
});

test('an image without a browser offers none', () => {
  expect(namesOf({ browser: true }, false)).toEqual(['shell', ...FILES, 'fetch', 'ask_user']);
});

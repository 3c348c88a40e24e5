import { podTools } from './pod-tools.js';
import { TOOL_NAMES } from '../protocol/tools-socket.js';
import type { ToolsClient } from './tools-client.js';
import type { OfferedTools } from './tools-offer.js';

const client: ToolsClient = { call: () => Promise.resolve({ isError: false, result: {} }) };
const namesOf = (families: Record<string, boolean>, offered: OfferedTools = 'unknown', egress?: string) =>
  podTools(families, { client, offered, egress }).map(({ name }) => name);

const SHELL = ['shell', 'shell_output', 'shell_stop'];
const FILES = ['read', 'write', 'edit', 'list', 'grep', 'glob'];
const BROWSER = ['browser_navigate', 'browser_snapshot', 'browser_click', 'browser_type', 'browser_screenshot'];

test('every family is on by default', () => {
  expect(namesOf({}, TOOL_NAMES)).toEqual([...SHELL, ...FILES, 'fetch', ...BROWSER, 'ask_user']);
});

test.each([
  ['shell', [...FILES, 'fetch', ...BROWSER, 'ask_user']],
  ['files', [...SHELL, 'fetch', ...BROWSER, 'ask_user']],
  ['web', [...SHELL, ...FILES, ...BROWSER, 'ask_user']],
  ['browser', [...SHELL, ...FILES, 'fetch', 'ask_user']],
])('family %s can be switched off alone', (family, names) => {
  expect(namesOf({ shell: true, files: true, web: true, browser: true, [family]: false }, TOOL_NAMES)).toEqual(names);
});

test('what the image of tools does not have is not offered; what the runner does not know neither', () => {
  const without = ['later_tool', ...TOOL_NAMES.filter((name) => !BROWSER.includes(name))];
  expect(namesOf({ browser: true }, without)).toEqual([...SHELL, ...FILES, 'fetch', 'ask_user']);
});

test('where no network is, what needs one is not offered', () => {
  expect(namesOf({ web: true, browser: true }, TOOL_NAMES, 'none')).toEqual([...SHELL, ...FILES, 'ask_user']);
  expect(namesOf({}, TOOL_NAMES, 'internet')).toEqual(namesOf({}, TOOL_NAMES));
});

test('an image that cannot tell is taken to have all', () => {
  expect(namesOf({})).toEqual(namesOf({}, TOOL_NAMES));
});

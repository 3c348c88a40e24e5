/**
 * The app in Chromium as a person uses it, served by the real public side of an API pod on the in-memory API server. Screenshots
 * are build output, in `.local/screenshots`.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';
import { APIKeys } from '../../src/api/v1alpha1/api-key.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { buildApp } from '../../hack/build-app.mjs';
import { readStaticFiles } from '../../src/web/static-files.js';
import { RECHECK_MS } from '../../src/web/watchers.js';
import { KEY, McpHarness, READ_ONLY_KEY } from '../builders/mcp-harness.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SHOTS = '.local/screenshots';
const CLAIM = { podUid: 'p', podName: 'p', gatewayAddress: 'g:1' };
const HOSTILE = [
  '<script>window.hacked=1</script>',
  '<img src=x onerror="window.hacked=1">',
  '![x](https://evil.example/track.png)',
  '[click](javascript:window.hacked=1)',
  '<a href="javascript:window.hacked=1">x</a>',
  '<svg onload="window.hacked=1">',
].join('\n\n');

let browser: Browser;
let server: Server;
let harness: McpHarness;
let page: Page;
let url: string;
/** What the page wrote to its console as an error, and where it wanted to go outside. */
let complaints: string[];

beforeAll(async () => {
  mkdirSync(SHOTS, { recursive: true });
  await buildApp('.local/app');
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: ['--no-sandbox'] });
});

afterAll(() => browser.close());

beforeEach(async () => {
  const publicUrl = 'http://127.0.0.1';
  harness = new McpHarness(undefined, undefined, readStaticFiles('.local/app', publicUrl), publicUrl);
  server = createServer(harness.app);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  page.setDefaultTimeout(15_000);
  complaints = [];
  page.on('console', (message) => {
    const isSignIn = message.location().url.endsWith('/api/app/session');
    if (message.type() === 'error' && !isSignIn) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) complaints.push(`asked ${request.url()}`);
  });
});

afterEach(async () => {
  await page.context().close();
  harness.watchers.stop();
  server.closeAllConnections();
  server.close();
  expect(complaints).toEqual([]);
});

function seed(name: string, more: { spec?: object; status: object }): void {
  const spec = { createdAt: new Date().toISOString(), ...more.spec };
  harness.seedRun('acme-box', name, { spec, status: { claim: CLAIM, ...more.status } as AgentRun['status'] });
}

function seedScene(): void {
  harness.seedAgent('acme-box', 'release', {
    spec: { name: 'Release notes', description: 'Writes notes of each release.' },
  });
  harness.seedAgent('acme-box', 'triage', {
    spec: { name: 'Issue triage', description: 'Labels and answers new issues.' },
  });
  const usage = { steps: 4, inputTokens: 5210, outputTokens: 830, totalTokens: 6040, costUsd: '0.031200' };
  const finishedAt = new Date().toISOString();
  seed('greeter-1', {
    status: { phase: 'done', reason: 'Completed', usage, finishedAt, output: '# Hello\n\nAll is **well**.' },
  });
  const agent = { spec: { agent: 'triage', sessionId: 's-ask' } };
  const pending = { kind: 'question', text: 'Which label fits issue 7?', choices: ['bug', 'question'], callId: 'c' };
  seed('triage-1', {
    ...agent,
    status: { phase: 'done', reason: 'Completed', usage, finishedAt, pending, output: pending.text },
  });
  const approval = {
    kind: 'approval',
    text: 'shell needs your approval',
    tool: 'shell',
    input: '{"command":"make release"}',
    callId: 'c',
  };
  seed('release-1', {
    spec: { agent: 'release', sessionId: 's-approve' },
    status: { phase: 'done', finishedAt, pending: approval },
  });
  seed('release-0', {
    spec: { agent: 'release' },
    status: { phase: 'error', reason: 'HeartbeatLost', message: 'the run was silent for 90 s', finishedAt },
  });
  seed('greeter-2', { status: { phase: 'running', usage } });
}

async function signIn(key = KEY): Promise<void> {
  await page.goto(url);
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Board' }).waitFor();
}

/** axe-core finds nothing on this page, in both themes; screenshots of both, and one of a phone. */
async function look(name: string): Promise<void> {
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    // As a function of the page's own world: the policy of the page lets no inline script run.
    await page.evaluate(AXE);
    const found = await page.evaluate(
      'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + " " + nodes[0].html))',
    );
    expect(found).toEqual([]);
    await page.screenshot({ path: `${SHOTS}/${name}-${theme}.png`, fullPage: true });
  }
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  await page.screenshot({ path: `${SHOTS}/${name}-phone.png`, fullPage: true });
  await page.setViewportSize({ width: 1280, height: 800 });
}

test('a person signs in with a key; a wrong one is told so; signing out ends it', async () => {
  await page.goto(url);
  await page.getByLabel('API key').fill('bw_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('this API key is not valid').waitFor();
  await look('sign-in');
  await page.getByLabel('API key').fill(KEY);
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'greeter', exact: true }).waitFor();
  expect(await page.evaluate('document.cookie')).toBe('');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API key').waitFor();
  await page.reload();
  await page.getByLabel('API key').waitFor();
});

test('a person creates an agent, sends it a message, and sees its run', async () => {
  harness.controllerSays({ active: true });
  await signIn();
  await page.getByRole('button', { name: 'New agent' }).click();
  await look('create');
  await page.getByLabel('Name').fill('Poet');
  await page.getByLabel('Instructions').fill('You write short poems.');
  await page.getByRole('button', { name: 'Create agent' }).click();
  await page.getByRole('heading', { name: 'Poet' }).waitFor();
  await look('agent');
  await page.getByLabel('Message').fill('Write about rain.');
  await page.keyboard.press('Control+Enter');
  await page.getByText('Write about rain.').waitFor();
  await page.getByRole('button', { name: 'Cancel run' }).waitFor();
  const run = [...harness.caches.AgentRun.values()].find(({ agent }) => agent === 'poet');
  expect(run?.origin).toBe('chat');
});

test('the board shows all agents live; the inbox is answered with one click; a failure says what to do', async () => {
  seedScene();
  await signIn();
  await page.getByRole('link', { name: 'Issue triage' }).waitFor();
  await look('board');
  while (harness.watchers.size === 0) await page.waitForTimeout(20);
  harness.seedAgent('acme-box', 'late', { spec: { name: 'Late comer' } });
  await harness.clock.advance(1000);
  await page.getByRole('link', { name: 'Late comer' }).waitFor();

  await page.getByRole('link', { name: 'Inbox' }).click();
  const failure = page.getByRole('article', { name: 'Release notes: HeartbeatLost' });
  await failure.getByText('What to do:').waitFor();
  await look('inbox');
  await page.getByRole('button', { name: 'bug' }).click();
  await page.getByRole('article', { name: 'Issue triage' }).waitFor({ state: 'detached' });
  await page.getByLabel('Reason for denying').fill('not today');
  await page.getByRole('button', { name: 'Deny' }).click();
  await page.getByText('No agent waits for an answer.').waitFor();
  const said = [...harness.caches.AgentRun.values()].filter(({ origin }) => origin === 'chat');
  expect(new Map(said.map(({ sessionId, title }) => [sessionId, title]))).toEqual(
    new Map([
      ['s-approve', 'deny: not today'],
      ['s-ask', 'bug'],
    ]),
  );
});

test('a working run is shown as it happens: text, thoughts, calls of tools with input and output, tokens', async () => {
  seedScene();
  const run = harness.caches.AgentRun.get('bw-acme-box/greeter-2');
  const at = new Date().toISOString();
  harness.told.set('bw-acme-box/greeter-2', {
    uid: run?.uid ?? '',
    usage: { steps: 2, inputTokens: 900, outputTokens: 80, totalTokens: 980 },
    incomplete: false,
    events: [
      { type: 'message', v: 1, seq: 1, at, message: { role: 'user', text: 'hello' } },
      {
        type: 'message',
        v: 1,
        seq: 2,
        at,
        message: {
          role: 'assistant',
          text: 'I look at the **files** first.',
          sent: { provider: 'anthropic', model: 'm', parts: [{ type: 'reasoning', text: 'Where are the files?' }] },
        },
      },
      {
        type: 'tool',
        seq: 3,
        at,
        step: 1,
        tool: 'shell',
        input: '{"command":"ls -la"}',
        result: '"total 4"',
        isError: false,
        durationMs: 1200,
      },
      {
        type: 'tool',
        seq: 4,
        at,
        step: 1,
        tool: 'read_file',
        input: '{"path":"a.txt"}',
        result: '"no such file"',
        isError: true,
        durationMs: 40,
      },
      {
        type: 'step',
        seq: 5,
        at,
        step: 1,
        finishReason: 'tool-calls',
        inputTokens: 900,
        cacheReadTokens: 300,
        outputTokens: 80,
      },
    ],
  });
  await signIn();
  await page.goto(`${url}#/runs/acme-box.greeter/greeter-2`);
  await page.getByText('I look at the files first.').waitFor();
  await page.getByText('shell', { exact: true }).click();
  await page.getByText('total 4', { exact: true }).waitFor();
  await page.getByText('Thinking').click();
  await page.getByText('Where are the files?').waitFor();
  await look('run');
  await page.getByRole('button', { name: 'Cancel run' }).click();
  await page.getByRole('button', { name: 'Cancel the run' }).click();
  while (!harness.requests().includes('patch agentruns')) await page.waitForTimeout(20);
});

test('triggers: the URL is there when somebody asks for it, is tried, and is another one after a rotation', async () => {
  harness.seedTrigger('acme-box', 'greeter', 'hello', { spec: { name: 'Hello', body: 'Greet them.' } });
  await signIn();
  await page.goto(`${url}#/agents/acme-box.greeter`);
  await page.getByRole('link', { name: 'Triggers' }).click();
  const card = page.getByRole('article', { name: 'Hello' });
  await card.waitFor();
  expect(await card.getByText('/api/t/').count()).toBe(0);
  await card.getByRole('button', { name: 'Show URL' }).click();
  const address = card.getByRole('group', { name: 'URL of Hello' });
  const before = await address.innerText();
  expect(before).toMatch(/\/api\/t\/acme-box\.greeter\/hello\/\S+$/);
  await look('triggers');

  await card.getByText('Try it').click();
  await card.getByLabel('Payload, as JSON').fill('{"name":"Ada"}');
  await card.getByRole('button', { name: 'Call the trigger' }).click();
  await card.getByRole('link', { name: 'Open the run' }).waitFor();
  const run = [...harness.caches.AgentRun.values()].find(({ triggerName }) => triggerName === 'hello');
  expect(run?.origin).toBe('trigger');

  await card.getByRole('button', { name: 'Rotate URL' }).click();
  await card.getByRole('button', { name: 'Give it a new URL' }).click();
  await card.getByText('The trigger has a new URL.').waitFor();
  while ((await address.innerText()) === before) await page.waitForTimeout(20);

  await page.getByText('New trigger').click();
  await page.getByLabel('Name').fill('Release');
  await page.getByLabel('What the agent is told', { exact: true }).fill('Write the notes.');
  await page.getByRole('button', { name: 'Create trigger' }).click();
  await page.getByRole('article', { name: 'Release' }).waitFor();
});

test('conversations: a new one, the next message, and what was said before', async () => {
  seedScene();
  await signIn();
  await page.goto(`${url}#/agents/acme-box.greeter/chat`);
  await page.getByLabel('First message').fill('Write about rain.');
  await page.keyboard.press('Control+Enter');
  await page.getByLabel('Next message').waitFor();
  await page.getByRole('list').getByText('Write about rain.').waitFor();
  await page.getByLabel('Next message').fill('Shorter.');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('list').getByText('Shorter.').waitFor();
  await look('chat');
  await page.goto(`${url}#/agents/acme-box.triage/chat`);
  await page.getByRole('link', { name: /asks you/ }).click();
  await page.getByRole('button', { name: 'bug' }).waitFor();
});

test('schedules: when they come next, stopped, and started at once', async () => {
  harness.seedSchedule('acme-box', 'greeter', 'daily', { spec: { name: 'Every morning' } });
  await signIn();
  await page.goto(`${url}#/agents/acme-box.greeter/schedules`);
  const card = page.getByRole('article', { name: 'Every morning' });
  await card.getByText('Next:').waitFor();
  await look('schedules');
  await card.getByRole('button', { name: 'Run now' }).click();
  await card.getByRole('link', { name: 'Open the run' }).waitFor();
  await card.getByRole('button', { name: 'Disable' }).click();
  await card.getByText('Disabled.').waitFor();
  await card.getByRole('button', { name: 'Enable' }).waitFor();
});

test('files that a run published are links that end', async () => {
  const finishedAt = new Date().toISOString();
  const sha256 = 'a'.repeat(64);
  const files = [
    { name: 'report.pdf', mediaType: 'application/pdf', bytes: 120_400, sha256, description: 'For the board.' },
  ] as NonNullable<NonNullable<AgentRun['status']>['files']>;
  seed('greeter-9', { status: { phase: 'done', output: 'Here it is.', finishedAt, files } });
  await signIn();
  await page.goto(`${url}#/runs/acme-box.greeter/greeter-9`);
  const link = page.getByRole('link', { name: 'report.pdf' });
  expect(await link.getAttribute('href')).toMatch(/\/api\/files\/acme-box\/greeter-9\/a{64}\/\d+\/\S+\/report\.pdf$/);
  await page.getByText('application/pdf, 120.4 kB').waitFor();
  await look('files');
});

test('text of agents is never a script, a picture, or a link that hides where it goes', async () => {
  harness.seedAgent('acme-box', 'evil', { spec: { name: HOSTILE.slice(0, 60), description: HOSTILE, soul: HOSTILE } });
  const finishedAt = new Date().toISOString();
  const pending = { kind: 'question', text: HOSTILE, choices: [HOSTILE], callId: 'c' };
  seed('evil-1', {
    spec: { agent: 'evil', message: HOSTILE },
    status: { phase: 'done', output: HOSTILE, finishedAt, pending },
  });
  seed('evil-2', {
    spec: { agent: 'evil', message: HOSTILE },
    status: { phase: 'error', reason: 'ModelError', message: HOSTILE, output: HOSTILE, finishedAt },
  });
  harness.seedTrigger('acme-box', 'evil', 'hook', { spec: { name: HOSTILE.slice(0, 60), description: HOSTILE } });
  harness.seedSchedule('acme-box', 'evil', 'tick', { spec: { name: HOSTILE.slice(0, 60), body: HOSTILE } });
  await signIn();
  for (const place of [
    '',
    '#/agents/acme-box.evil/chat/s-evil-1',
    '#/agents/acme-box.evil/triggers',
    '#/agents/acme-box.evil/schedules',
    '#/inbox',
    '#/agents/acme-box.evil',
    '#/runs/acme-box.evil/evil-1',
    '#/runs/acme-box.evil/evil-2',
  ]) {
    await page.goto(url + place);
    await page.getByText('window.hacked').first().waitFor();
    expect(await page.evaluate('window.hacked')).toBeUndefined();
    expect(await page.locator('main img, main script, main a[href^=javascript]').count()).toBe(0);
  }
});

test('a key that may only read shows no way to write; a revoked one ends the session', async () => {
  seedScene();
  await signIn(READ_ONLY_KEY);
  await page.getByText('(read-only)').waitFor();
  expect(await page.getByRole('button', { name: 'New agent' }).count()).toBe(0);
  harness.seedTrigger('acme-box', 'greeter', 'hello', { spec: { name: 'Hello' } });
  await page.goto(`${url}#/agents/acme-box.greeter/triggers`);
  await page.getByText('The URL is not shown to a key that may only read.').waitFor();
  expect(await page.getByRole('button', { name: /URL|trigger/ }).count()).toBe(0);
  const [key] = [...harness.caches.APIKey.values()].filter(({ prefix }) => prefix === READ_ONLY_KEY.slice(0, 11));
  const ref = { namespace: key?.namespace ?? '', name: key?.name ?? '' };
  await harness.api.patch(APIKeys, ref, { spec: { revoked: true } }, { type: 'merge' });
  await harness.clock.advance(RECHECK_MS);
  await page.getByLabel('API key').waitFor();
});

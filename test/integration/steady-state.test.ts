/**
 * What the three processes ask of the API server, counted request by request: nothing while nothing happens, whatever is
 * looked at again, and for a run what its state needs and no more.
 */
import { AgentEvals } from '../../src/api/v1alpha1/agent-eval.js';
import { AgentMemories } from '../../src/api/v1alpha1/agent-memory.js';
import { AgentRunFileParts } from '../../src/api/v1alpha1/agent-run-file-part.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { APIKeys } from '../../src/api/v1alpha1/api-key.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import { Connectors } from '../../src/api/v1alpha1/connector.js';
import { ALL_KINDS } from '../../src/api/v1alpha1/index.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { isTrue } from '../../src/api/conditions.js';
import { Jobs, Pods } from '../../src/kube/core-types.js';
import { eventually } from '../builders/api-server.js';
import { FakeNode } from '../builders/fake-node.js';
import { Installation } from '../builders/installation.js';
import type { ProcessName } from '../builders/installation.js';

const RESYNC_SECONDS = 1;
const AGENT = 'lab.ada';
const NAMES = ['api', 'gateway', 'controller'] as const;

let installation: Installation;
let node: FakeNode;
let url: string;

beforeAll(async () => {
  const resync = { BOXWRIGHT_RESYNC_SECONDS: String(RESYNC_SECONDS) };
  installation = await Installation.start({ proxied: true, env: { api: resync, gateway: resync, controller: resync } });
  const { server, gatewayPort } = installation;
  node = new FakeNode({ server, gatewayPort, callsModel: true });
  await node.start();
  await installation.createBox({ name: 'lab', agents: ['ada', 'bob'] });
  url = await installation.createTrigger(AGENT, 'Hook');
  await oneOfEachKind();
  await madeByHand();
}, 1_200_000);

afterAll(async () => {
  await node.stop();
  await installation.stop();
});

/** So that a resync has something of every kind to look at. */
async function oneOfEachKind(): Promise<void> {
  await installation.tool('upsert_schedule', { agentId: AGENT, name: 'Yearly', body: 'go', cron: '0 0 1 1 *' });
  await installation.tool('upsert_skill', { agentId: AGENT, name: 'tidy', description: 'Tidies up.', body: 'Tidy.' });
  await installation.tool('create_template', { name: 'Pair', agentIds: [AGENT] });
  await installation.create(AgentMemories, { namespace: 'bw-lab', name: 'note' }, { agent: 'ada', text: 'a note' });
  await installation.tool('send_message', { agentId: AGENT, message: '/say hello', waitSeconds: 60 });
  const cases = [{ name: 'hello', message: 'go', assertions: [{ equals: 'done' }] }];
  await installation.create(AgentEvals, { namespace: 'bw-lab', name: 'greetings' }, { agent: 'ada', cases });
  const ended = { namespace: 'bw-lab', name: 'greetings' };
  await installation.waitFor(AgentEvals, ended, ({ status }) => status?.phase === 'passed');
}

/** As a person writes them: no more than what is required, the rest are defaults of the CRDs. */
async function madeByHand(): Promise<void> {
  await installation.create(
    Connectors,
    { name: 'warehouse' },
    {
      name: 'Warehouse',
      category: 'databases',
      description: 'Stock and orders.',
      auth: 'none',
      remote: { type: 'streamable-http', url: 'https://mcp.example.com/mcp' },
    },
  );
  await installation.create(Workspaces, { name: 'plain' }, { slots: 1 });
  await installation.waitFor(Workspaces, { name: 'plain' }, ({ status }) => isTrue(status?.conditions, 'Ready'));
  await installation.create(APIKeys, { namespace: 'bw-ws-plain', name: 'mine' }, { description: 'mine' });
  await installation.create(Boxes, { name: 'plain' }, { workspace: 'plain' });
  await installation.create(AgentRuns, { namespace: 'bw-lab', name: 'by-hand' }, { agent: 'ada', message: '/say hi' });
  const ended = { namespace: 'bw-lab', name: 'by-hand' };
  const run = await installation.waitFor(AgentRuns, ended, ({ status }) => status?.phase === 'done');
  const piece = {
    run: 'by-hand',
    runUid: run.metadata.uid,
    position: 0,
    file: 'a'.repeat(64),
    index: 0,
    bytes: 1,
    data: 'eA==',
  };
  await installation.create(AgentRunFileParts, { namespace: 'bw-lab', name: 'by-hand.f00' }, piece);
}

/** What keeps the Lease and the watches, and the addresses of our two Services, read once a minute at most. */
const BACKGROUND = /^(watch \w+|(get|update) leases|get services)$/;

/** `<verb> <resource>` of every request since clear() but the background's. */
function requests(name: ProcessName): string[] {
  const all = installation.proxy(name).requests.map(({ verb, resource }) => `${verb} ${resource}`);
  return all.filter((request) => !BACKGROUND.test(request));
}

function clear(): void {
  for (const name of NAMES) installation.proxy(name).clear();
}

/** Resolves after the controllers have looked at everything so many times. */
async function resyncs(times: number): Promise<void> {
  const looks = () =>
    installation.processes.controller.metric('boxwright_controller_reconcile_total', { controller: 'agent-run' });
  const before = await looks();
  // A run is looked at for itself, for its Job and for its pod.
  const { api } = installation.server;
  const lists = [await api.list(AgentRuns), await api.list(Jobs), await api.list(Pods, { namespace: 'bw-lab' })];
  const each = lists.reduce((sum, { items }) => sum + items.length, 0);
  await eventually(async () => (await looks()) >= before + times * each, 'the controller looks at nothing again');
}

/** Longer than the 5 s for which counts for kubectl are held back. */
const LOOKS = 8;

/** Resolves when so many resyncs went by without a request. */
async function settled(): Promise<void> {
  let last: string[] = [];
  const atRest = async () => {
    clear();
    await resyncs(LOOKS);
    last = NAMES.flatMap((name) => requests(name).map((request) => `${name}: ${request}`));
    return last.length === 0;
  };
  await eventually(atRest, 'they never come to rest').catch((error: unknown) => {
    throw new Error(`${String(error)}: ${last.join(', ')}`);
  });
}

test('while nothing happens there are Lease renewals and open watches and no other request, resync after resync', async () => {
  const { api } = installation.server;
  for (const kind of ALL_KINDS) expect([kind.kind, (await api.list(kind)).items.length]).not.toEqual([kind.kind, 0]);
  await settled();
  clear();
  const watches = NAMES.map((name) => installation.proxy(name).openWatches);
  await resyncs(LOOKS);
  // The Lease of this installation is a long one.
  const renewals = () => installation.proxy('controller').count('update', 'leases');
  await eventually(() => renewals() > 0, 'the Lease is not renewed');
  expect(NAMES.flatMap(requests)).toEqual([]);
  expect(NAMES.map((name) => installation.proxy(name).count('watch'))).toEqual([0, 0, 0]);
  expect(NAMES.map((name) => installation.proxy(name).openWatches)).toEqual(watches);
  expect(installation.proxy('controller').count('get', 'services')).toBeLessThanOrEqual(2);
});

test('a webhook is one write and no read; its run is status 2, chunk 1, Job 1, TTL 1', async () => {
  await settled();
  clear();
  const response = await fetch(url, { method: 'POST', body: '{"a":1}' });
  expect(response.status).toBe(202);
  expect(requests('api')).toEqual(['create agentruns']);
  const { runId } = (await response.json()) as { runId: string };
  await installation.waitFor(AgentRuns, { namespace: 'bw-lab', name: runId }, ({ status }) => status?.phase === 'done');
  await installation.waitFor(
    Jobs,
    { namespace: 'bw-lab', name: runId },
    ({ spec }) => spec.ttlSecondsAfterFinished === 600,
  );

  // Beside it the last use of the key, at most once a minute.
  expect(requests('api').filter((one) => one !== 'patch apikeys/status')).toEqual(['create agentruns']);
  expect(requests('gateway').sort()).toEqual([
    'create agentrunchunks',
    'create tokenreviews',
    'patch agentruns/status',
    'patch agentruns/status',
  ]);
  // Beside them the counts for kubectl, at most one write in 5 s an owner.
  const mirrored = ['patch agents/status', 'patch agenttriggers/status', 'patch boxes/status'];
  expect(requests('controller').filter((one) => !mirrored.includes(one))).toEqual(['create jobs', 'patch jobs']);
});

test('a run that waits costs one write more, whatever it waits for in turn', async () => {
  const spec = { maxRunning: 2, maxRunningPerAgent: 1 };
  await installation.createBox({ name: 'narrow', agents: ['eve', 'fay'], spec });
  node.hold();
  const namespace = 'bw-narrow';
  const send = async (agent: string, session: { sessionId?: string }) => {
    const message = { agentId: `narrow.${agent}`, message: '/say done', waitSeconds: 0, ...session };
    return await installation.tool<{ runId: string; sessionId: string }>('send_message', message);
  };
  const runs: string[] = [];
  for (const agent of ['eve', 'fay']) {
    const { runId, sessionId } = await send(agent, {});
    // The caches of runs and agents are not in step: with this one the controller has seen that the agent is active.
    await eventually(() => node.started.includes(runId), `the first run of ${agent} does not start`);
    // Two of each session, so that its runs meet both the session and the limits.
    const next = await send(agent, { sessionId });
    runs.push(next.runId);
    const other = await send(agent, {});
    runs.push(other.runId, (await send(agent, { sessionId: other.sessionId })).runId);
  }
  const written = () =>
    installation
      .proxy('controller')
      .requests.filter(({ verb, resource }) => verb === 'patch' && resource === 'agentruns/status')
      .map(({ url: { pathname } }) => pathname.split('/').at(-2) ?? '')
      .filter((name) => runs.includes(name));
  await eventually(() => new Set(written()).size >= runs.length, 'there are runs that do not say why they wait');
  node.release();
  for (const name of runs) {
    await installation.waitFor(AgentRuns, { namespace, name }, ({ status }) => status?.phase === 'done');
  }
  expect([written().length, new Set(written()).size]).toEqual([6, 6]);
}, 300_000);

test('logged no error', () => {
  expect([...installation.errors, ...node.errors]).toEqual([]);
});

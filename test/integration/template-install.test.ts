/** install_template on a real API server: whichever write is the last one of its API pod, all agents stay or none. */
import { createSecretKey } from 'node:crypto';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../../src/api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../../src/api/v1alpha1/agent-skill.js';
import { AgentTriggers } from '../../src/api/v1alpha1/agent-trigger.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { INSTALL_DEADLINE_MS } from '../../src/api/installing.js';
import { boundStartRun, createToolServices } from '../../src/mcp/tool-services.js';
import { createInformer } from '../../src/kube/informer.js';
import type { KubeApi } from '../../src/kube/types.js';
import { createLogger } from '../../src/observability/logger.js';
import { systemClock } from '../../src/runtime/clock.js';
import type { Clock } from '../../src/runtime/clock.js';
import { countLiveRuns } from '../../src/run/start/backlog.js';
import { createApiCaches } from '../../src/services/caches.js';
import type { ApiCaches, CachedKind } from '../../src/services/caches.js';
import { createAgent, listAgents } from '../../src/services/agents/agents.js';
import { createTemplate } from '../../src/services/templates/edit.js';
import { installTemplate } from '../../src/services/templates/install.js';
import { KeyedWaiter } from '../../src/kube/keyed-waiter.js';
import { OwnRuns } from '../../src/run/start/own-runs.js';
import { upsertSchedule } from '../../src/services/schedules/schedules.js';
import { upsertSkill } from '../../src/services/skills/skills.js';
import { listTemplates } from '../../src/services/templates/read.js';
import { ANNOTATION_INSTALLING, ANNOTATION_UNCOUNTED_INSTALL } from '../../src/api/labels.js';
import { AgentTemplates } from '../../src/api/v1alpha1/agent-template.js';
import type { ResourceType } from '../../src/api/meta.js';
import { upsertTrigger } from '../../src/services/triggers/triggers.js';
import { startBaseControllers, startStandIns } from '../builders/base-controllers.js';
import type { RunningControllers } from '../builders/base-controllers.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { BoxSpec, Boxes } from '../../src/api/v1alpha1/box.js';
import { WorkspaceSpec, Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { findCondition } from '../../src/api/conditions.js';

const GROUP = { apiVersion: 'boxwright.dev/v1alpha1' };
const NAMESPACE = 'bw-inst';
const REQUEST = { templateId: 'inst.team', version: 0 };
const NOTHING = { agents: 0, children: [0, 0, 0, 0], marks: 0 };
const CALLER = { workspace: 'inst', keyPrefix: 'bw_testtest', readOnly: false };
/** An install that began so long ago that its deadline has come by the clock of the controllers, not of the API pod. */
const LATE_CLOCK: Clock = { ...systemClock, now: () => systemClock.now() - INSTALL_DEADLINE_MS + 6_000 };

let server: TestApiServer;
let controllers: RunningControllers;
let standIns: { stop(): Promise<void> };
let caches: ApiCaches;
const log = createLogger('test', 'error', { write: () => undefined });

beforeAll(async () => {
  server = await startApiServer({ own: true });
  await server.applyCrds();
  controllers = await startBaseControllers(server);
  standIns = startStandIns(server);
  caches = createApiCaches((options) => createInformer(server.transport, options, { clock: systemClock, log }));
  for (const informer of Object.values(caches)) informer.start();
  await Promise.all(Object.values(caches).map((informer) => informer.synced));
  await seed();
});

afterAll(async () => {
  for (const informer of Object.values(caches)) await informer.stop();
  await controllers.stop();
  await standIns.stop();
  await server.stop();
});

async function seed(): Promise<void> {
  const workspace = WorkspaceSpec.parse({ expertSandbox: true, slots: 50 });
  await server.api.create(Workspaces, { ...GROUP, kind: 'Workspace', metadata: { name: 'inst' }, spec: workspace });
  const box = BoxSpec.parse({ workspace: 'inst', engine: 'scripted', egress: { requireEnforcement: false } });
  await server.api.create(Boxes, { ...GROUP, kind: 'Box', metadata: { name: 'inst' }, spec: box });
  const isReady = async () =>
    findCondition((await server.api.get(Boxes, { name: 'inst' })).status?.conditions, 'Ready')?.status === 'True';
  await eventually(isReady, 'the Box is not ready');
  const { agents, skills, schedules, triggers, templates } = services(server.api, systemClock);
  for (const name of ['Lead', 'Help']) {
    const setup = { required: true, prompt: 'Ask @help.' };
    const { agentId } = await createAgent(agents, CALLER, { name, soul: 'Ask @help.', setup });
    await upsertTrigger(triggers, CALLER, agentId, { name: 'Hook', body: 'do it' });
    await upsertSkill(skills, CALLER, agentId, { name: 'Notes', description: 'd', body: 'b' });
    await upsertSchedule(schedules, CALLER, agentId, { name: 'Daily', body: 'go', cron: '0 9 * * *' });
  }
  await createTemplate(templates, CALLER, { name: 'Team', tags: [], agentIds: ['inst.lead', 'inst.help'] });
}

/** What an API pod works with; its writes are seen by its own caches before it answers. */
function services(api: KubeApi, clock: Clock) {
  const liveRuns = new OwnRuns(countLiveRuns(caches.AgentRun), caches.AgentRun, clock);
  const made = createToolServices({
    caches,
    api,
    clock,
    agentWaiter: new KeyedWaiter(caches.Agent, systemClock),
    runWaiter: new KeyedWaiter(caches.AgentRun, systemClock),
    publicUrl: 'https://agents.example.com',
    keyring: () => ({ current: 'k1', keys: new Map([['k1', createSecretKey(Buffer.alloc(32, 1))]]) }),
    liveRuns,
    feeds: { read: () => Promise.resolve(undefined) },
    catalog: { models: () => Promise.resolve([]) },
    barrier: {
      passed: (write) =>
        'resourceVersion' in write
          ? caches[write.kind as CachedKind].waitForResourceVersion(write.resourceVersion, AbortSignal.timeout(60_000))
          : Promise.resolve(true),
    },
  });
  return { ...made, templates: { ...made.templates, startRun: boundStartRun({ caches, api, clock, liveRuns }) } };
}

/** An API server that the pod does not reach any more after so many writes. */
function mortal(diesAfter: number): { api: KubeApi; death: Promise<'died'> } {
  const { api } = server;
  let writes = 0;
  let died = (): void => undefined;
  const death = new Promise<'died'>((resolve) => (died = () => resolve('died')));
  const never = new Promise<never>(() => undefined);
  const read = <R>(call: () => Promise<R>): Promise<R> => (writes >= diesAfter ? never : call());
  const write = async <R>(call: () => Promise<R>): Promise<R> => {
    if (writes >= diesAfter) return await never;
    const answer = await call();
    writes += 1;
    if (writes < diesAfter) return answer;
    died();
    return await never;
  };
  const guarded: KubeApi = {
    get: (type, ref, options) => read(() => api.get(type, ref, options)),
    list: (type, options) => read(() => api.list(type, options)),
    create: (type, object, options) => write(() => api.create(type, object, options)),
    replace: (type, object, options) => write(() => api.replace(type, object, options)),
    patch: (type, ref, body, options) => write(() => api.patch(type, ref, body, options)),
    delete: (type, ref, options) => write(() => api.delete(type, ref, options)),
  };
  return { api: guarded, death };
}

/** Objects in the Box beyond those of the two agents that the template was made of. */
async function installed(): Promise<{ agents: number; children: number[]; marks: number }> {
  const { items } = await server.api.list(Agents, { namespace: NAMESPACE });
  const children = await Promise.all(
    ([AgentTriggers, AgentSkills, AgentSchedules, AgentRuns] as readonly ResourceType[]).map((type) =>
      server.api.list(type, { namespace: NAMESPACE }),
    ),
  );
  const [triggers = 0, skills = 0, schedules = 0, runs = 0] = children.map((list) => list.items.length);
  const marks = items.filter(({ metadata }) =>
    [ANNOTATION_INSTALLING, ANNOTATION_UNCOUNTED_INSTALL].some((mark) => metadata.annotations?.[mark] !== undefined),
  ).length;
  return { agents: items.length - 2, children: [triggers - 2, skills - 2, schedules - 2, runs], marks };
}

const visible = () => listAgents({ caches }, CALLER, undefined).length - 2;
/** What the tools say. */
const installCount = () => listTemplates({ caches }, CALLER, { scope: 'own' }).templates[0]?.installCount;
/** What kubectl says. */
const counted = async () =>
  (await server.api.get(AgentTemplates, { namespace: 'bw-ws-inst', name: 'team' })).status?.installs ?? 0;

/** 2 agents, 6 objects of theirs and 2 setups; the commit is the next write. */
const COMMIT = 11;

test.each([1, 2, 5, 8, COMMIT - 1])('the pod dies after write %i: nothing stays', async (write) => {
  const { api, death } = mortal(write);
  const { templates } = services(api, LATE_CLOCK);
  expect(await Promise.race([installTemplate(templates, CALLER, REQUEST), death])).toBe('died');
  expect(visible()).toBe(0);
  expect((await installed()).agents).toBeGreaterThan(0);
  const isGone = async () => JSON.stringify(await installed()) === JSON.stringify(NOTHING);
  await eventually(isGone, 'something of the install is left');
  expect(visible()).toBe(0);
  expect([installCount(), await counted()]).toEqual([0, 0]);
});

test('the pod dies after the commit: everything stays, is counted once, and no mark', async () => {
  const { api, death } = mortal(COMMIT);
  const { templates } = services(api, systemClock);
  expect(await Promise.race([installTemplate(templates, CALLER, REQUEST), death])).toBe('died');
  const whole = { agents: 2, children: [2, 2, 2, 2], marks: 0 };
  const isShown = async () => JSON.stringify(await installed()) === JSON.stringify(whole);
  await eventually(isShown, 'the agents are still marked');
  await eventually(() => visible() === 2, 'the agents are not to be seen');
  controllers.resync();
  const { items } = await server.api.list(Agents, { namespace: NAMESPACE });
  expect(items.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)).toEqual([]);
  expect(await installed()).toEqual(whole);
  await eventually(async () => (await counted()) === 1, 'the template does not count the install');
  await eventually(() => installCount() === 1, 'the tools do not show the count');
});

/**
 * All agents or none (reference docs of install_template), whenever the API pod dies: after any write, and whatever the
 * controller does in between. Nothing of an install can be seen before all of it can.
 */
import * as fc from '../builders/properties.js';
import { INSTALL_DEADLINE_MS } from '../../src/api/installing.js';
import type { KubeApi } from '../../src/kube/types.js';
import { boundStartRun } from '../../src/mcp/tool-services.js';
import type { ResourceType } from '../../src/api/meta.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../../src/api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../../src/api/v1alpha1/agent-skill.js';
import { AgentTemplates } from '../../src/api/v1alpha1/agent-template.js';
import { AgentTriggers } from '../../src/api/v1alpha1/agent-trigger.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { createAgentController } from '../../src/controllers/agent/controller.js';
import { createLogger } from '../../src/observability/logger.js';
import { getAgent, listAgents, listSpaces } from '../../src/services/agents/agents.js';
import { installTemplate } from '../../src/services/templates/install.js';
import { listTemplates } from '../../src/services/templates/read.js';
import { KubeConnectionError } from '../../src/kube/errors.js';
import { KEY, McpHarness, templateAgent } from '../builders/mcp-harness.js';
import { apiError } from '../builders/recording-api.js';
import { controllerMemoryInformer } from '../../src/projections/agent-memory.js';
import { controllerScheduleInformer } from '../../src/projections/agent-schedule.js';
import { controllerSkillInformer } from '../../src/projections/agent-skill.js';
import { controllerTriggerInformer } from '../../src/projections/agent-trigger.js';
import { controllerAgentInformer } from '../../src/projections/agent.js';
import { controllerBoxInformer } from '../../src/projections/box.js';
import { storageClassInformer } from '../../src/projections/storage-class.js';
import { volumeClaimInformer } from '../../src/projections/volume-claim.js';
import { controllerWorkspaceInformer } from '../../src/projections/workspace.js';
import { controllerRunInformer } from '../../src/projections/agent-run.js';
import { createTriggerReader } from '../../src/services/triggers/trigger-reader.js';

const NAMES = ['lead', 'help', 'scribe'];
const CALLER = { workspace: 'acme', keyPrefix: KEY.slice(0, 11), readOnly: false };
const CUT = new KubeConnectionError('reset', 'network');
const REQUEST = { templateId: 'acme.team' };
const CHILDREN: readonly ResourceType[] = [AgentTriggers, AgentSchedules, AgentSkills, AgentRuns];
const signal = new AbortController().signal;

/** Three agents with everything that an agent can have; the first and the last one want a setup. */
function seedTeam(harness: McpHarness): void {
  const agents = NAMES.map((handle, index) =>
    templateAgent({
      id: `ta-${index}`,
      handle,
      spec: {
        name: handle,
        soul: 'Ask @help.',
        ...(index === 1 ? {} : { setup: { required: true, prompt: 'Begin.' } }),
      } as never,
      skills: [{ slug: 'notes', spec: { name: 'notes', description: 'd', body: 'b', files: [] } }],
      triggers: [
        { slug: 'hook', spec: { name: 'hook', body: 'b', description: '', methods: ['POST'], enabled: true } },
      ],
      schedules: [
        {
          slug: 'daily',
          spec: { name: 'daily', body: 'b', description: '', cron: '0 9 * * *', timezone: 'UTC', enabled: true },
        },
      ],
    }),
  );
  harness.seedTemplate('acme', 'team', { agents });
}

class World {
  readonly harness = new McpHarness();
  readonly api = this.harness.api;
  readonly #asked = new Set<string>();
  readonly #controller = createAgentController({
    api: this.api,
    clock: this.harness.clock,
    log: createLogger('test', 'silent', { write: () => undefined }),
    caches: {
      agents: this.harness.api.informer(controllerAgentInformer),
      boxes: this.harness.api.informer(controllerBoxInformer),
      workspaces: this.harness.api.informer(controllerWorkspaceInformer),
      triggers: this.harness.api.informer(controllerTriggerInformer),
      schedules: this.harness.api.informer(controllerScheduleInformer),
      skills: this.harness.api.informer(controllerSkillInformer),
      memories: this.harness.api.informer(controllerMemoryInformer),
      volumeClaims: this.harness.api.informer(volumeClaimInformer),
      storageClasses: this.harness.api.informer(storageClassInformer),
      runs: this.harness.api.informer(controllerRunInformer),
    },
  });

  constructor() {
    seedTeam(this.harness);
    Object.assign(this.harness.agentWaiter, { wait: () => Promise.resolve(undefined) });
    this.#controller.watch((key) => this.#asked.add(key));
  }

  /** The pod dies after this many writes; `between` is done after each. Resolves when it has answered or is dead. */
  async install(diesAfter: number, between: (write: number) => Promise<void> = () => Promise.resolve()) {
    const { api, caches, clock, services } = this.harness;
    const never = new Promise<never>(() => undefined);
    let died = (): void => undefined;
    const death = new Promise<'died'>((resolve) => (died = () => resolve('died')));
    let writes = 0;
    const guard =
      <A extends unknown[], R>(call: (...args: A) => Promise<R>, isWrite: boolean) =>
      async (...args: A): Promise<R> => {
        if (writes >= diesAfter) return await never;
        const answer = await call(...args);
        if (!isWrite) return answer;
        writes += 1;
        await between(writes);
        if (writes < diesAfter) return answer;
        died();
        return await never;
      };
    const mortal = Object.assign(Object.create(api) as KubeApi, {
      get: guard(api.get.bind(api), false),
      create: guard(api.create.bind(api), true),
      patch: guard(api.patch.bind(api), true),
      delete: guard(api.delete.bind(api), true),
    });
    const startRun = boundStartRun({ caches, api: mortal, clock, liveRuns: this.harness.liveRuns });
    const deps = { ...services.templates, api: mortal, startRun };
    return await Promise.race([installTemplate(deps, CALLER, REQUEST), death]);
  }

  /** The controller works on everything that it was asked for until nothing is left. */
  async control(): Promise<void> {
    for (let key = first(this.#asked); key !== undefined; key = first(this.#asked)) {
      this.#asked.delete(key);
      await this.#controller.reconcile(key, signal);
    }
  }

  /** The deadline comes. */
  async sweep(): Promise<void> {
    await this.harness.clock.advance(INSTALL_DEADLINE_MS);
    await this.settle();
  }

  /** The controller looks at every agent again and again; the run controller lets go of runs that are being deleted. */
  async settle(): Promise<void> {
    for (let round = 0; round < 6; round++) {
      for (const { metadata } of this.harness.api.all(Agents))
        this.#asked.add(`${metadata.namespace}/${metadata.name}`);
      await this.control();
      for (const { metadata } of this.harness.api.all(AgentRuns)) {
        if (metadata.deletionTimestamp !== undefined) {
          this.harness.api.vanish(AgentRuns, `${metadata.namespace}/${metadata.name}`);
        }
      }
    }
  }

  /** What tools and URLs show of the install; the test ends when that is neither all nor nothing. */
  async visible(): Promise<'all' | 'nothing'> {
    const { caches, services } = this.harness;
    const listed = listAgents(services.scope, CALLER, undefined).filter(({ handle }) => NAMES.includes(handle));
    const read = (name: string) => getAgent(services.scope, CALLER, `acme-box.${name}`).catch(() => undefined);
    const reader = createTriggerReader({ caches, api: this.api, ensureKey: () => Promise.resolve() });
    const url = (agent: string) => reader.find({ box: 'acme-box', agent }, 'hook', signal);
    const counts = [
      listed.length,
      (listSpaces(services.scope, CALLER)[0]?.agentCount ?? 0) - 1,
      (await Promise.all(NAMES.map(read))).filter((agent) => agent !== undefined).length,
      (await Promise.all(NAMES.map(url))).filter((trigger) => trigger !== undefined).length,
    ];
    const seen = counts[0] === 0 ? 'nothing' : 'all';
    // The number of installs moves with them: whoever takes the mark over, and when.
    expect(this.installCount()).toBe(seen === 'all' ? 1 : 0);
    const each = seen === 'all' ? NAMES.length : 0;
    expect(counts).toEqual([each, each, each, each]);
    return seen;
  }

  installCount(): number | undefined {
    const { templates } = listTemplates(this.harness.services.scope, CALLER, { scope: 'own' });
    return templates.find(({ templateId }) => templateId === REQUEST.templateId)?.installCount;
  }

  /** Everything that is stored of the install; `counted` is the number of the template alone. */
  stored(): { agents: number; marks: number; children: number[]; counted: number } {
    const agents = this.harness.api.all(Agents).filter(({ metadata }) => NAMES.includes(metadata.name));
    const children = CHILDREN.map((type) => this.harness.api.all(type).length);
    const marks = agents.filter(({ metadata }) =>
      ['installing', 'uncounted-install'].some((mark) => metadata.annotations?.[`boxwright.dev/${mark}`] !== undefined),
    );
    const counted = this.harness.api.peek(AgentTemplates, 'bw-ws-acme/team')?.status?.installs ?? 0;
    return { agents: agents.length, marks: marks.length, children, counted };
  }
}

function first<T>(set: ReadonlySet<T>): T | undefined {
  for (const one of set) return one;
  return undefined;
}

const WHOLE = { agents: 3, marks: 0, children: [3, 3, 3, 2], counted: 1 };
const NOTHING = { agents: 0, marks: 0, children: [0, 0, 0, 0], counted: 0 };
/** 3 agents, 9 objects of theirs, 2 setups, the commit. */
const COMMIT = 15;

test('an install that nothing disturbs: the last write shows everything', async () => {
  const world = new World();
  const seen: string[] = [];
  expect(await world.install(99, async () => void seen.push(await world.visible()))).toMatchObject({
    agents: [{}, {}, {}],
  });
  expect(seen).toEqual([...Array<string>(COMMIT - 1).fill('nothing'), 'all']);
  await world.sweep();
  expect(world.stored()).toEqual(WHOLE);
});

test.each(Array.from({ length: COMMIT }, (_, index) => index + 1))(
  'the pod dies after write %i: everything or nothing',
  async (write) => {
    const world = new World();
    expect(await world.install(write)).toBe('died');
    expect(await world.visible()).toBe(write < COMMIT ? 'nothing' : 'all');
    await world.control();
    expect(await world.visible()).toBe(write < COMMIT ? 'nothing' : 'all');
    await world.sweep();
    expect(world.stored()).toEqual(write < COMMIT ? NOTHING : WHOLE);
    expect(await world.visible()).toBe(write < COMMIT ? 'nothing' : 'all');
  },
);

/** What happens beside the install after one of its writes. */
const happening = fc.constantFrom('controller', 'deadline', 'nothing');

test('whatever the controller does between the writes, and when the deadline comes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 30 }),
      fc.array(happening, { minLength: 30, maxLength: 30 }),
      async (diesAfter, happenings) => {
        const world = new World();
        const answer = await world
          .install(diesAfter, async (write) => {
            if (happenings[write] === 'deadline' && write % 5 === 0) await world.sweep();
            if (happenings[write] === 'controller') await world.control();
            await world.visible();
          })
          .catch((error: Error) => error);
        await world.sweep();
        const state = await world.visible();
        expect(world.stored()).toEqual(state === 'all' ? WHOLE : NOTHING);
        if (answer instanceof Error) expect(state).toBe('nothing');
        else if (answer !== 'died') expect(state).toBe('all');
      },
    ),
    { numRuns: 100 },
  );
});

test('the answer of the commit is lost: what is stored decides', async () => {
  const world = new World();
  world.harness.api.failNext({ verb: 'patch', resource: 'agents', error: CUT, afterWrite: true });
  expect(await world.install(99)).toMatchObject({ agents: [{}, {}, {}] });
  await world.sweep();
  expect(world.stored()).toEqual(WHOLE);
});

test('the commit gets no answer at all: nothing is taken back before the deadline', async () => {
  const world = new World();
  world.harness.api.failNext({ verb: 'patch', resource: 'agents', error: CUT });
  await expect(world.install(99)).rejects.toThrow('reset');
  expect(world.stored()).toMatchObject({ agents: 3, marks: 3 });
  await world.sweep();
  expect(world.stored()).toEqual(NOTHING);
});

test('a commit that is refused is taken back at once', async () => {
  const world = new World();
  world.harness.api.failNext({ verb: 'patch', resource: 'agents', error: apiError(403, 'Forbidden') });
  await expect(world.install(99)).rejects.toThrow('injected');
  expect(world.harness.api.all(Agents).filter(({ metadata }) => metadata.deletionTimestamp === undefined)).toHaveLength(
    2,
  );
});

test.each(['agents', 'agentskills', 'agentschedules', 'agenttriggers', 'agentruns'])(
  'when one of the %s cannot be made, nothing is left, long before the deadline',
  async (resource) => {
    const world = new World();
    world.harness.api.failNext({ verb: 'create', resource, error: apiError(403, 'Forbidden') });
    await expect(world.install(99)).rejects.toThrow(/injected by the test|refused the run/);
    expect(await world.visible()).toBe('nothing');
    await world.settle();
    expect(world.stored()).toEqual(NOTHING);
  },
);

test('the first agent is deleted right after the commit: the others stay', async () => {
  const world = new World();
  await world.install(COMMIT);
  const deleted = world.harness.api.peek(Agents, 'bw-acme-box/lead');
  await world.api.delete(Agents, { namespace: 'bw-acme-box', name: 'lead' }, { uid: deleted?.metadata.uid ?? '' });
  expect(world.installCount()).toBe(1);
  await world.sweep();
  expect(world.stored()).toEqual({ agents: 2, marks: 0, children: [2, 2, 2, 1], counted: 1 });
  expect(world.installCount()).toBe(1);
});

test('the controller dies while it counts: the number never leaves its place', async () => {
  for (const failure of [{ resource: 'agenttemplates/status' }, { resource: 'agents', key: 'bw-acme-box/lead' }]) {
    for (const afterWrite of [false, true]) {
      const world = new World();
      expect(await world.install(99)).toMatchObject({ agents: [{}, {}, {}] });
      world.harness.api.failNext({ verb: 'patch', ...failure, error: CUT, afterWrite });
      await expect(world.control()).rejects.toThrow('reset');
      expect(world.installCount()).toBe(1);
      await world.settle();
      expect(world.stored()).toEqual(WHOLE);
      expect(world.installCount()).toBe(1);
    }
  }
});

test('the same template is installed again and again: each time is counted', async () => {
  const world = new World();
  for (let times = 1; times <= 3; times++) {
    await world.install(99);
    expect(world.installCount()).toBe(times);
    if (times === 2) await world.settle();
  }
  await world.settle();
  expect(world.installCount()).toBe(3);
  expect(world.stored().counted).toBe(3);
});

test('the handles of an install that is not committed are taken', async () => {
  const world = new World();
  await world.install(COMMIT - 1);
  expect(await world.harness.call('create_agent', { name: 'Lead' })).toMatchObject({ payload: { handle: 'lead-2' } });
  expect(await world.harness.call('update_agent', { agentId: 'acme-box.greeter', handle: 'help' })).toMatchObject({
    payload: { error: 'argument "handle" is taken by an agent that is being installed: choose another' },
  });
});

/**
 * Bad input to every argument of every tool, through the real API process on a real API server: a tool error that names the
 * argument, and nothing is written, as a proxy between the two counts.
 */
import { TOOLS } from '../../src/mcp/registry.js';
import { startApiProcess } from '../builders/api-process.js';
import type { ApiProcess } from '../builders/api-process.js';
import { startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { FaultProxy } from '../builders/fault-proxy.js';

const agentId = 'bad.greeter';
const templateId = 'bad.team';
const LONG = 'x'.repeat(1_100_000);

let cluster: TestApiServer;
let proxy: FaultProxy;
let api: ApiProcess;
let good: Record<string, Record<string, unknown>>;

beforeAll(async () => {
  cluster = await startApiServer({ own: true });
  await cluster.applyCrds();
  proxy = await FaultProxy.start(cluster.connection);
  api = await startApiProcess(cluster, 'bad', proxy);
  good = await seedThroughTools();
});

afterAll(async () => {
  await api.stop();
  await proxy.stop();
  await cluster.stop();
});

/** Makes one of everything, and says with which arguments each tool works. */
async function seedThroughTools(): Promise<Record<string, Record<string, unknown>>> {
  const make = async (tool: string, args: object) => (await api.call(tool, args)).payload as Record<string, string>;
  await make('upsert_trigger', { agentId, name: 'Hook', body: 'do it' });
  await make('upsert_schedule', { agentId, name: 'Daily', body: 'go', cron: '0 9 * * *' });
  const files = [{ path: 'a.txt', content: 'text' }];
  await make('upsert_skill', { agentId, name: 'Notes', description: 'd', body: 'b', files });
  await make('attach_connector', { agentId, slug: 'github' });
  await make('create_agent', { name: 'Other' });
  const { runId, sessionId } = await make('send_message', { agentId, message: 'hi', waitSeconds: 0 });
  const template = await make('create_template', { name: 'Team', description: 'd', agentIds: [agentId] });
  const [{ templateAgentId = '' } = {}] = template['agents'] as unknown as Record<string, string>[];
  await make('publish_template', { templateId });
  const own = { agentId };
  return {
    list_spaces: {},
    list_agents: {},
    get_agent: own,
    create_agent: { name: 'New' },
    update_agent: { ...own, soul: 'Changed.' },
    delete_agent: { ...own, confirm: true },
    list_triggers: own,
    upsert_trigger: { ...own, name: 'Fresh', body: 'go' },
    test_trigger: { ...own, slug: 'hook' },
    rotate_trigger_token: { ...own, slug: 'hook' },
    delete_trigger: { ...own, slug: 'hook', confirm: true },
    send_message: { ...own, message: 'hi', waitSeconds: 0 },
    list_runs: own,
    get_run: { ...own, runId },
    cancel_run: { ...own, runId },
    list_sessions: own,
    get_session: { ...own, sessionId },
    list_memories: own,
    list_skills: own,
    get_skill: { ...own, slug: 'notes' },
    read_skill_file: { ...own, slug: 'notes', path: 'a.txt' },
    upsert_skill: { ...own, name: 'Fresh', description: 'd', body: 'b' },
    delete_skill: { ...own, slug: 'notes', confirm: true },
    list_schedules: own,
    upsert_schedule: { ...own, name: 'Fresh', body: 'go', cron: '0 9 * * *' },
    run_schedule_now: { ...own, slug: 'daily' },
    delete_schedule: { ...own, slug: 'daily', confirm: true },
    search_connectors: {},
    list_agent_connectors: own,
    attach_connector: { ...own, slug: 'linear' },
    detach_connector: { ...own, slug: 'github', confirm: true },
    set_mcp_servers: { ...own, servers: [] },
    list_models: {},
    list_templates: {},
    get_template: { templateId },
    create_template: { name: 'Fresh' },
    update_template: { templateId, description: 'Better.' },
    delete_template: { templateId, confirm: true },
    add_template_agent: { templateId, agentId: 'bad.other' },
    update_template_agent: { templateId, templateAgentId, soul: 'Changed.' },
    remove_template_agent: { templateId, templateAgentId, confirm: true },
    validate_template: { templateId },
    publish_template: { templateId },
    unpublish_template: { templateId },
    install_template: { templateId },
  };
}

interface Schema {
  type?: string;
  enum?: string[];
  minimum?: number;
  maximum?: number;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  items?: Schema;
}

/** Values that are names of things, or stand for a choice: nothing but a known one may pass. */
const NAMES = /^(\w+Id|slug|path|handle|cron|runAt|timezone|version)$/;

/** What must be refused for an argument, whatever else is passed: by type, by size, and where it names something. */
function badValues(name: string, schema: Schema): [string, unknown][] {
  const { type = '', minimum, maximum } = schema;
  const wrongTypes: [string, unknown][] = Object.entries({
    string: 'x',
    number: 5,
    integer: 1.5,
    boolean: true,
    array: [[]],
    object: { __proto__: null, constructor: 1 },
  })
    .filter(([other]) => other !== type && !(type === 'number' && other === 'integer'))
    .filter(([other]) => !(type === 'integer' && other === 'number'))
    .filter(([other]) => schema.anyOf?.some((one) => one.type === other) !== true)
    .map(([other, value]) => [`of type ${other}`, value]);
  const isName = NAMES.test(name);
  return [
    ...wrongTypes,
    ...(minimum === undefined ? [] : ([['below the minimum', minimum - 1]] as [string, unknown][])),
    ...(maximum === undefined ? [] : ([['above the maximum', maximum + 1]] as [string, unknown][])),
    ...(type === 'integer' ? ([['above every number', 1e300]] as [string, unknown][]) : []),
    ...(type === 'string' || schema.anyOf !== undefined ? ([['too long', LONG]] as [string, unknown][]) : []),
    ...(schema.enum === undefined ? [] : ([['none of the enum', '__proto__']] as [string, unknown][])),
    ...(type === 'array' ? ([['with a wrong item', [5]]] as [string, unknown][]) : []),
    ...(type === 'string' && isName
      ? ['', ' ', '你好', '💥', '__proto__', '../..', '%00', '\u0000'].map(
          (text) => [`that cannot be: ${JSON.stringify(text)}`, text] as [string, unknown],
        )
      : []),
  ];
}

/** All but the note of when the key was last used, which a call makes whatever it asks for. */
function writes(): string[] {
  return proxy.requests
    .filter(({ verb, resource }) => !['get', 'list', 'watch'].includes(verb) && resource !== 'apikeys/status')
    .map(({ verb, resource }) => `${verb} ${resource}`);
}

async function expectRefused(tool: string, args: object | string, argument: string): Promise<string> {
  proxy.requests.length = 0;
  const { isError, payload } = await api.call(tool, args);
  const error = typeof payload['error'] === 'string' ? payload['error'] : '';
  if (!isError) return `was taken: ${JSON.stringify(payload).slice(0, 100)}`;
  if (writes().length > 0) return `wrote ${writes().join(', ')}`;
  if (!error.includes(argument)) return `does not name the argument: ${error.slice(0, 160)}`;
  return 'refused';
}

const CASES = TOOLS.flatMap(({ name, definition }) =>
  Object.entries(definition.inputSchema.properties as Record<string, Schema>).map(
    ([argument, schema]) => [name, argument, schema] as const,
  ),
);

test('every tool has its arguments here', () => {
  expect(Object.keys(good).sort()).toEqual(TOOLS.map(({ name }) => name).sort());
});

test.each(CASES)('%s refuses bad values of %s', async (tool, argument, schema) => {
  const failures: string[] = [];
  for (const [what, value] of badValues(argument, schema)) {
    const outcome = await expectRefused(tool, { ...good[tool], [argument]: value }, argument);
    if (outcome !== 'refused') failures.push(`${what}: ${outcome}`);
  }
  const required = TOOLS.find(({ name }) => name === tool)?.definition.inputSchema.required ?? [];
  if (required.includes(argument) && argument !== 'confirm') {
    for (const value of [undefined, null]) {
      const outcome = await expectRefused(tool, { ...good[tool], [argument]: value }, argument);
      if (outcome !== 'refused') failures.push(`${String(value)}: ${outcome}`);
    }
  }
  expect(failures).toEqual([]);
});

test.each(TOOLS.filter(({ confirm }) => confirm).map(({ name }) => name))(
  '%s writes nothing without confirm: true',
  async (tool) => {
    for (const confirm of [undefined, null, false]) {
      expect(await expectRefused(tool, { ...good[tool], confirm }, 'confirm: true')).toBe('refused');
    }
  },
);

test.each([
  ['update_agent', { handle: 'other' }, 'handle'],
  ['update_agent', { handle: '--' }, 'handle'],
  ['update_agent', { spaceId: 'bad' }, 'spaceId'],
  ['update_agent', { connectors: [] }, 'connectors'],
  ['create_agent', { handle: 'mine' }, 'handle'],
  ['create_agent', { connectors: ['nowhere'] }, 'connector'],
  ['create_agent', { tools: { magic: true } }, 'magic'],
  ['create_agent', { selfImprovement: { constructor: true } }, 'constructor'],
  ['create_agent', { setup: { required: true } }, 'setup.prompt'],
  ['upsert_trigger', { name: 'Hook' }, 'slug "hook"'],
  ['upsert_trigger', { slug: 'hook', name: 'Another' }, 'cannot be renamed'],
  ['upsert_trigger', { methods: [] }, 'methods'],
  ['upsert_schedule', { name: 'Daily' }, 'slug "daily"'],
  ['upsert_schedule', { runAt: '2040-01-01T00:00' }, 'runAt'],
  ['upsert_schedule', { cron: undefined }, 'cron'],
  ['upsert_skill', { name: 'Notes' }, 'slug "notes"'],
  ['upsert_skill', { files: [{ path: '../x', content: '' }] }, 'path'],
  ['upsert_skill', { slug: 'notes', files: [{ path: 'b', content: '' }], removeFiles: ['b'] }, 'removeFiles'],
  ['set_mcp_servers', { servers: [{ name: 'a' }] }, 'url'],
  ['set_mcp_servers', { servers: [{ name: 'a', url: 'https://x.example', headers: { Cookie: 'x' } }] }, 'Cookie'],
  ['create_template', { agentIds: ['bad.greeter', 'bad.nobody'] }, 'agentId'],
])('%s refuses %j', async (tool, more, named) => {
  expect(await expectRefused(tool, { ...good[tool], ...more }, named)).toBe('refused');
});

test.each(TOOLS.map(({ name }) => name))('%s takes no argument from a prototype', async (tool) => {
  const { required } = TOOLS.find(({ name }) => name === tool)?.definition.inputSchema ?? { required: [] };
  const [argument] = required;
  if (argument === undefined) return;
  const inherited = `{"__proto__":${JSON.stringify(good[tool])},"constructor":{"prototype":${JSON.stringify(good[tool])}}}`;
  expect(await expectRefused(tool, inherited, argument)).toBe('refused');
});

test('a name of which no slug is left gets one of its own', async () => {
  expect((await api.call('create_agent', { name: '你好' })).payload['handle']).toMatch(/^agent-[0-9a-f]{4}$/);
  const created = async (tool: string, more: object) =>
    (await api.call(tool, { agentId, name: '---', body: 'b', ...more })).payload['slug'];
  expect(await created('upsert_trigger', {})).toMatch(/^trigger-[0-9a-f]{4}$/);
  expect(await created('upsert_schedule', { cron: '0 9 * * *' })).toMatch(/^schedule-[0-9a-f]{4}$/);
  expect(await created('upsert_skill', { description: 'd' })).toMatch(/^skill-[0-9a-f]{4}$/);
});

/** What every tool returns, refuses, reads and writes (spec 2, 4.2; reference docs of the tools). */
import { gzipSync } from 'node:zlib';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { AgentRunChunks } from '../../src/api/v1alpha1/agent-run-chunk.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { AgentTriggers } from '../../src/api/v1alpha1/agent-trigger.js';
import { KubeConnectionError } from '../../src/kube/errors.js';
import { TOOLS } from '../../src/mcp/registry.js';
import { encodeEvents } from '../../src/transcript/codec.js';
import { apiError } from '../builders/recording-api.js';
import { KEY, McpHarness, OTHER_KEY, PUBLIC_URL, READ_ONLY_KEY } from '../builders/mcp-harness.js';

const AGENT = 'acme-box.greeter';
const TEMPLATE = 'acme.writers';
const AGENT_NOT_FOUND =
  'agent not found: there is no agent with this agentId in this workspace; list_agents shows the agents';
const URL = new RegExp(`^${PUBLIC_URL}/api/t/acme-box\\.greeter/[a-z0-9-]+/[A-Za-z0-9_-]{43}$`);

let harness: McpHarness;
beforeEach(() => {
  harness = new McpHarness();
});

const done = (more: Partial<NonNullable<AgentRun['status']>> = {}): NonNullable<AgentRun['status']> => ({
  phase: 'done',
  reason: 'Completed',
  provider: 'boxwright',
  model: 'scripted',
  usage: { steps: 2, inputTokens: 30, outputTokens: 12, totalTokens: 42, costUsd: '0.001500' },
  output: 'Hello!',
  finishedAt: '2026-05-01T10:00:05.250Z',
  transcript: { state: 'full', chunks: 1, bytes: 10, messages: 2 },
  ...more,
});

/** Arguments with which each tool works on agent greeter. */
function goodArguments(): Record<string, Record<string, unknown>> {
  return {
    list_spaces: {},
    list_agents: {},
    get_agent: { agentId: AGENT },
    create_agent: { name: 'New one' },
    send_message: { agentId: AGENT, message: 'hi', waitSeconds: 0 },
    list_runs: { agentId: AGENT },
    get_run: { agentId: AGENT, runId: 'greeter-1' },
    list_triggers: { agentId: AGENT },
    upsert_trigger: { agentId: AGENT, name: 'Fresh', body: 'go' },
    test_trigger: { agentId: AGENT, slug: 'hook' },
    rotate_trigger_token: { agentId: AGENT, slug: 'hook' },
    cancel_run: { agentId: AGENT, runId: 'greeter-1' },
    list_sessions: { agentId: AGENT },
    get_session: { agentId: AGENT, sessionId: 's-greeter-1' },
    list_memories: { agentId: AGENT },
    list_skills: { agentId: AGENT },
    get_skill: { agentId: AGENT, slug: 'notes' },
    read_skill_file: { agentId: AGENT, slug: 'notes', path: 'a.txt' },
    upsert_skill: { agentId: AGENT, slug: 'notes', body: 'Better.' },
    delete_skill: { agentId: AGENT, slug: 'notes', confirm: true },
    update_agent: { agentId: AGENT, soul: 'You greet.' },
    delete_agent: { agentId: AGENT, confirm: true },
    delete_trigger: { agentId: AGENT, slug: 'hook', confirm: true },
    search_connectors: {},
    list_agent_connectors: { agentId: AGENT },
    attach_connector: { agentId: AGENT, slug: 'github' },
    detach_connector: { agentId: AGENT, slug: 'deepwiki', confirm: true },
    set_mcp_servers: { agentId: AGENT, servers: [{ name: 'docs', url: 'https://mcp.example.com/mcp' }] },
    list_models: {},
    list_templates: {},
    get_template: { templateId: TEMPLATE },
    create_template: { name: 'Team', agentIds: [AGENT] },
    update_template: { templateId: TEMPLATE, description: 'Better.' },
    delete_template: { templateId: TEMPLATE, confirm: true },
    add_template_agent: { templateId: TEMPLATE, agentId: AGENT },
    update_template_agent: { templateId: TEMPLATE, templateAgentId: 'ta-1', soul: 'You write well.' },
    remove_template_agent: { templateId: TEMPLATE, templateAgentId: 'ta-1', confirm: true },
    validate_template: { templateId: TEMPLATE },
    publish_template: { templateId: TEMPLATE },
    unpublish_template: { templateId: TEMPLATE },
    install_template: { templateId: TEMPLATE },
    list_schedules: { agentId: AGENT },
    upsert_schedule: { agentId: AGENT, slug: 'daily', enabled: false },
    run_schedule_now: { agentId: AGENT, slug: 'daily' },
    delete_schedule: { agentId: AGENT, slug: 'daily', confirm: true },
  };
}

function seedRunAndTrigger(): void {
  harness.seedTrigger('acme-box', 'greeter', 'hook');
  harness.seedRun('acme-box', 'greeter-1', { status: done() });
  harness.seedSkill('acme-box', 'greeter', 'notes', { files: { 'a.txt': 'text' } });
  harness.seedSchedule('acme-box', 'greeter', 'daily');
  harness.seedConnectors();
  harness.seedTemplate('acme', 'writers');
  harness.seedAgent('acme-box', 'greeter', { spec: { connectors: ['deepwiki'] } });
  harness.api.clearRecords();
}

/** Requests to the API server of one good call: lists none, a read one GET, a simple write one write. */
const COSTS: [string, string[]][] = [
  ['list_spaces', []],
  ['list_agents', []],
  ['list_runs', []],
  ['list_triggers', []],
  ['get_agent', ['get agents']],
  ['get_run', ['get agentruns']],
  ['create_agent', ['create agents']],
  ['upsert_trigger', ['create agenttriggers']],
  ['rotate_trigger_token', ['patch agenttriggers']],
  ['test_trigger', ['create agentruns']],
  ['send_message', ['get agentruns', 'create agentruns']],
  ['update_agent', ['get agents', 'patch agents']],
  ['delete_agent', ['delete agents']],
  ['delete_trigger', ['delete agenttriggers']],
  ['search_connectors', []],
  ['list_agent_connectors', []],
  ['attach_connector', ['get agents', 'patch agents']],
  ['detach_connector', ['get agents', 'patch agents']],
  ['set_mcp_servers', ['get agents', 'patch agents']],
  ['list_models', ['get configmaps']],
  ['list_templates', []],
  ['get_template', ['get agenttemplateparts']],
  ['validate_template', ['get agenttemplateparts']],
  [
    'create_template',
    [
      'get agents',
      'get agentskills',
      'get agenttemplates',
      'create agenttemplates',
      'create agenttemplateparts',
      'patch agenttemplates',
    ],
  ],
  ['update_template', ['get agenttemplates', 'patch agenttemplates']],
  ['unpublish_template', ['get agenttemplates', 'patch agenttemplates']],
  // The published version still points to the former content: nothing is removed.
  [
    'update_template_agent',
    ['get agenttemplates', 'get agenttemplateparts', 'create agenttemplateparts', 'patch agenttemplates'],
  ],
  ['publish_template', ['get agenttemplates', 'get agenttemplateparts']],
  ['delete_template', ['delete agenttemplates', 'delete agenttemplateparts']],
  // The commit names the version of the agent that it saw.
  ['install_template', ['get agenttemplateparts', 'get agents', 'create agents', 'patch agents']],
  ['list_sessions', []],
  ['get_session', ['get agentruns', 'get agentrunchunks']],
  ['list_memories', []],
  ['list_skills', []],
  ['get_skill', ['get agentskills']],
  ['read_skill_file', ['get agentskills']],
  ['upsert_skill', ['get agentskills', 'replace agentskills']],
  ['delete_skill', ['delete agentskills']],
  ['list_schedules', []],
  ['upsert_schedule', ['patch agentschedules']],
  ['run_schedule_now', ['create agentruns']],
  ['delete_schedule', ['delete agentschedules']],
  ['cancel_run', []],
  [
    'add_template_agent',
    [
      'get agenttemplates',
      'get agenttemplateparts',
      'get agents',
      'get agentskills',
      'create agenttemplateparts',
      'patch agenttemplates',
    ],
  ],
  ['remove_template_agent', ['get agenttemplates', 'get agenttemplateparts', 'patch agenttemplates']],
];

/** Pages far back: what stands before them costs nothing. */
const PAGES: [string, object, string[]][] = [
  ['get_session', { limit: 2, offset: 100 }, ['get agentruns', 'get agentrunchunks']],
  ['get_session', { limit: 2, offset: 250 }, []],
];

describe('pages', () => {
  test.each(PAGES)('%s with %j costs %j', async (name, page, requests) => {
    seedRunAndTrigger();
    for (let second = 10; second <= 59; second++) {
      const spec = { sessionId: 's-greeter-1', createdAt: `2026-05-01T10:01:${second}.000Z` };
      harness.seedRun('acme-box', `greeter-${second}`, { spec, status: done() });
    }
    harness.api.clearRecords();
    expect((await harness.call(name, { ...goodArguments()[name], ...page })).isError).toBe(false);
    expect(harness.requests()).toEqual(requests);
  });
});

describe('every tool', () => {
  test('has its costs here', () => {
    expect(COSTS.map(([name]) => name).sort()).toEqual(TOOLS.map(({ name }) => name).sort());
  });

  test('has arguments here', () => {
    expect(Object.keys(goodArguments()).sort()).toEqual(TOOLS.map(({ name }) => name).sort());
  });

  test.each(TOOLS.map(({ name }) => name))('%s: text and structuredContent are the same object', async (name) => {
    seedRunAndTrigger();
    harness.controllerSays({ active: true });
    const { isError, payload, raw } = await harness.call(name, goodArguments()[name]);
    expect(isError).toBe(false);
    expect(Object.keys(raw)).toEqual(['content', 'structuredContent']);
    expect(raw['structuredContent']).toEqual(payload);
    expect(raw['content']).toEqual([{ type: 'text', text: JSON.stringify(payload) }]);
  });

  test.each(COSTS)('%s costs %j', async (name, requests) => {
    seedRunAndTrigger();
    harness.controllerSays({ active: true });
    await harness.call(name, goodArguments()[name]);
    expect(harness.requests()).toEqual(requests);
  });

  test.each(TOOLS.filter(({ readOnly }) => !readOnly).map(({ name }) => name))(
    '%s is refused for a read-only key before anything else',
    async (name) => {
      seedRunAndTrigger();
      for (const args of [goodArguments()[name], {}]) {
        const { isError, payload } = await harness.call(name, args, READ_ONLY_KEY);
        expect(isError).toBe(true);
        expect(payload).toEqual({ error: `this API key is read-only: ${name} needs a key without readOnly` });
      }
      expect(harness.requests()).toEqual([]);
    },
  );

  test.each(TOOLS.filter(({ readOnly }) => readOnly).map(({ name }) => name))(
    '%s works with a read-only key, and shows no trigger URL',
    async (name) => {
      seedRunAndTrigger();
      const { isError, raw } = await harness.call(name, goodArguments()[name], READ_ONLY_KEY);
      expect(isError).toBe(false);
      expect(JSON.stringify(raw)).not.toContain('/api/t/');
    },
  );

  test.each(
    TOOLS.filter(({ definition }) => definition.inputSchema.required.includes('agentId')).map(({ name }) => name),
  )(
    '%s: an agent of another workspace answers exactly like an unknown one, and nothing is asked or written',
    async (name) => {
      seedRunAndTrigger();
      const args = goodArguments()[name];
      const foreign = await harness.call(name, args, OTHER_KEY);
      const unknownBox = await harness.call(name, { ...args, agentId: 'nowhere.greeter' });
      const malformed = await harness.call(name, { ...args, agentId: '../acme-box.greeter' });
      expect(harness.requests()).toEqual([]);
      const unknown = await harness.call(name, { ...args, agentId: 'acme-box.nobody' });
      for (const answer of [foreign, unknownBox, malformed, unknown]) {
        expect(answer.raw).toEqual({
          content: [{ type: 'text', text: JSON.stringify({ error: AGENT_NOT_FOUND }) }],
          isError: true,
        });
      }
      // An id that the cache does not know costs one live GET.
      expect(harness.requests()).toEqual(['get agents']);
    },
  );

  test.each(
    TOOLS.filter(({ definition }) => definition.inputSchema.required.includes('agentId')).map(({ name }) => name),
  )('%s: an agent that is being deleted is gone', async (name) => {
    seedRunAndTrigger();
    harness.seedAgent('acme-box', 'greeter', { metadata: { deletionTimestamp: '2026-05-01T10:00:00Z' } });
    expect((await harness.call(name, goodArguments()[name])).payload).toEqual({ error: AGENT_NOT_FOUND });
    expect(harness.api.writes).toEqual([]);
  });

  test.each([
    ['list_agents', { spaceId: 5 }, 'argument "spaceId" must be a string, got a number'],
    ['get_agent', {}, 'missing required argument: agentId (string)'],
    ['get_agent', { agentId: null }, 'missing required argument: agentId (string)'],
    ['get_agent', { agentId: ['a'] }, 'argument "agentId" must be a string, got an array'],
    ['create_agent', {}, 'missing required argument: name (string)'],
    ['create_agent', { name: '' }, 'argument "name" must have at least 1 character'],
    ['create_agent', { name: 'a', temperature: 3 }, 'argument "temperature" must be at most 2'],
    [
      'create_agent',
      { name: 'a', stepLimit: 1.5 },
      'argument "stepLimit" must be a whole number, got a number with a fraction',
    ],
    ['create_agent', { name: 'a', stepLimit: '20' }, 'argument "stepLimit" must be a number, got a string'],
    [
      'create_agent',
      { name: 'a', provider: 'x' },
      'argument "provider" must be one of: boxwright, anthropic, openai, google, mistral, xai, deepseek',
    ],
    [
      'create_agent',
      { name: 'a', tools: { shel: true } },
      'unknown key "shel" in argument "tools"; known are: shell, files, web, browser, memory, agents',
    ],
    [
      'create_agent',
      { name: 'a', selfImprovement: { x: true } },
      'unknown key "x" in argument "selfImprovement"; known are: allowSoulEdit, allowToolInstall',
    ],
    ['create_agent', { name: 'a', tools: { shell: 'no' } }, 'argument "tools.shell" must be a boolean, got a string'],
    ['create_agent', { name: 'a', tools: '{}' }, 'argument "tools" must be an object, got a string'],
    ['create_agent', { name: 'a', setup: {} }, 'missing required argument: setup.required (boolean)'],
    [
      'create_agent',
      { name: 'a', setup: { required: true, prompt: null } },
      'argument "setup": setup.prompt is required when setup.required is true',
    ],
    [
      'create_agent',
      { name: 'a', handle: 'b' },
      'argument "handle" is not possible here: the handle comes from name; change it later with update_agent',
    ],
    [
      'create_agent',
      { name: 'a', connectors: ['gitub'] },
      'connector slug not in the catalog: near ones: github, deepwiki; search_connectors lists all',
    ],
    ['create_agent', { name: 'a', connectors: [1] }, 'argument "connectors.0" must be a string, got a number'],
    ['send_message', { agentId: AGENT }, 'missing required argument: message (string)'],
    ['send_message', { agentId: AGENT, message: 'x', waitSeconds: 601 }, 'argument "waitSeconds" must be at most 600'],
    ['send_message', { agentId: AGENT, message: 'x', waitSeconds: -1 }, 'argument "waitSeconds" must be at least 0'],
    ['list_runs', { agentId: AGENT, limit: 0 }, 'argument "limit" must be at least 1'],
    ['list_runs', { agentId: AGENT, limit: 201 }, 'argument "limit" must be at most 200'],
    [
      'get_run',
      { agentId: AGENT, runId: 'x', includeToolCalls: 'yes' },
      'argument "includeToolCalls" must be a boolean, got a string',
    ],
    [
      'upsert_trigger',
      { agentId: AGENT, name: 'a', body: 'b', methods: [] },
      'argument "methods" must have at least 1 item',
    ],
    [
      'upsert_trigger',
      { agentId: AGENT, name: 'a', body: 'b', methods: ['HEAD'] },
      'argument "methods.0" must be one of: GET, POST, PUT, PATCH, DELETE',
    ],
    [
      'upsert_trigger',
      { agentId: AGENT, name: 'a', body: 'b', methods: Array<string>(90_000).fill('HEAD') },
      'argument "methods" must have at most 5 items',
    ],
    [
      'upsert_skill',
      { agentId: AGENT, removeFiles: Array<number>(100).fill(1) },
      `${Array.from({ length: 10 }, (_, n) => `argument "removeFiles.${n}" must be a string, got a number`).join('; ')}; and 90 more`,
    ],
    [
      'upsert_trigger',
      { agentId: AGENT, body: 'b' },
      'missing required argument: name (string) is needed to create a trigger; to update one, pass its slug',
    ],
    [
      'upsert_trigger',
      { agentId: AGENT, name: 'a' },
      'missing required argument: body (string) is needed to create a trigger; to update one, pass its slug',
    ],
    [
      'upsert_trigger',
      { agentId: AGENT, name: 'a', body: 'é'.repeat(30_721) },
      'argument "body" must have at most 61440 bytes',
    ],
    [
      'test_trigger',
      { agentId: AGENT, slug: 'hook', body: 5 },
      'argument "body" must be a string or an object, got a number',
    ],
    [
      'test_trigger',
      { agentId: AGENT, slug: 'hook', body: 'x'.repeat(1_048_577) },
      'argument "body" must have at most 1048576 bytes (1 MB)',
    ],
    [
      'test_trigger',
      { agentId: AGENT, slug: 'hook', method: 'TRACE' },
      'argument "method" must be one of: GET, POST, PUT, PATCH, DELETE',
    ],
    ['rotate_trigger_token', { agentId: AGENT }, 'missing required argument: slug (string)'],
    [
      'cancel_run',
      { agentId: 1, runId: 2 },
      'argument "agentId" must be a string, got a number; argument "runId" must be a string, got a number',
    ],
  ])('%s with %j: a tool error that says what is wrong, and nothing is written', async (name, args, error) => {
    seedRunAndTrigger();
    const answer = await harness.call(name, args);
    expect(answer.raw).toEqual({ content: [{ type: 'text', text: JSON.stringify({ error }) }], isError: true });
    expect(harness.api.writes).toEqual([]);
  });

  test.each([
    ['an unknown tool', { name: 'nope' }, 'unknown tool: tools/list shows the names'],
    ['a tool name of the language', { name: 'constructor' }, 'unknown tool: tools/list shows the names'],
    ['no name', {}, 'params.name must be the name of a tool (a string)'],
    ['no params', undefined, 'params must be an object with name and arguments'],
    ['arguments as text', { name: 'list_spaces', arguments: '{}' }, 'params.arguments must be an object'],
  ])('%s is a tool error', async (_name, params, error) => {
    const answer = await harness.rpc('tools/call', params);
    expect(answer['result']).toEqual({ content: [{ type: 'text', text: JSON.stringify({ error }) }], isError: true });
  });

  test('unknown arguments are ignored: clients add their own', async () => {
    expect((await harness.call('list_spaces', { toolCallId: 'x', sessionId: 5 })).isError).toBe(false);
  });

  test('writes make one audit line with ids only', async () => {
    seedRunAndTrigger();
    await harness.call('send_message', { agentId: AGENT, message: 'private text', waitSeconds: 0 });
    const lines = harness.logLines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const audit = lines.filter((line) => line['audit'] === true);
    expect(audit).toHaveLength(1);
    expect(audit[0]).toMatchObject({
      level: 'info',
      tool: 'send_message',
      key: KEY.slice(0, 11),
      workspace: 'acme',
      outcome: 'ok',
      agentId: AGENT,
      runId: expect.stringMatching(/^greeter-[0-9a-z]{26}$/),
    });
    expect(harness.logLines.join('')).not.toContain('private text');
  });

  test('a fault of the cluster is a general sentence for the client and a cause in the log', async () => {
    harness.api.failNext({ verb: 'create', error: apiError(403, 'Forbidden', 'exceeded quota: box, requested: 1') });
    const { isError, payload } = await harness.call('create_agent', { name: 'a' });
    expect(isError).toBe(true);
    expect(payload['error']).toBe(
      'the cluster refused the change (quota, admission policy or a namespace that is being deleted): ask the platform team',
    );
    expect(harness.logLines.join('')).toContain('exceeded quota');
  });
});

describe('list_spaces', () => {
  test('shows the Boxes of the own workspace, oldest first', async () => {
    await harness.clock.advance(5_000);
    harness.seedBox('acme-another', 'acme');
    expect((await harness.call('list_spaces')).payload).toEqual({
      spaces: [
        { id: 'acme-box', name: 'acme-box', agentCount: 1, createdAt: '2026-05-01T10:00:00.000Z' },
        { id: 'acme-another', name: 'acme-another', agentCount: 0, createdAt: '2026-05-01T10:00:05.000Z' },
      ],
    });
  });
});

describe('list_agents', () => {
  test('shows agents newest first, also within one second', async () => {
    harness.controllerSays({ active: true });
    for (const name of ['one', 'two', 'three']) {
      await harness.clock.advance(10);
      await harness.call('create_agent', { name, description: 'd' });
    }
    const { agents } = (await harness.call('list_agents')).payload as { agents: Record<string, unknown>[] };
    expect(agents.map(({ name }) => name)).toEqual(['three', 'two', 'one', 'greeter']);
    expect(agents[0]).toEqual({
      id: 'acme-box.three',
      name: 'three',
      handle: 'three',
      description: 'd',
      status: 'idle',
      space_id: 'acme-box',
      created_at: '2026-05-01T10:00:00.030Z',
    });
  });

  test('says which agents work and which have no slot', async () => {
    harness.seedRun('acme-box', 'greeter-1');
    harness.seedAgent('acme-box', 'waiting', { status: { active: false } });
    const { agents } = (await harness.call('list_agents')).payload as { agents: { name: string; status: string }[] };
    expect(Object.fromEntries(agents.map(({ name, status }) => [name, status]))).toEqual({
      greeter: 'running',
      waiting: 'inactive',
    });
  });

  test('every change shows in the next answer', async () => {
    const read = async () => {
      const { agents } = (await harness.call('list_agents')).payload as { agents: { name: string; status: string }[] };
      return agents.map(({ name, status }) => `${name} ${status}`);
    };
    expect(await read()).toEqual(['greeter idle']);
    expect(await read()).toEqual(['greeter idle']);
    harness.seedRun('acme-box', 'greeter-1');
    expect(await read()).toEqual(['greeter running']);
    harness.seedRun('acme-box', 'greeter-1', { status: done() });
    expect(await read()).toEqual(['greeter idle']);
    await harness.call('update_agent', { agentId: AGENT, name: 'Grüße 👋' });
    expect(await read()).toEqual(['Grüße 👋 idle']);
    await harness.call('delete_agent', { agentId: AGENT, confirm: true });
    expect(await read()).toEqual([]);
  });

  test('an unknown or foreign spaceId lists the Boxes', async () => {
    for (const spaceId of ['nope', 'rival-box']) {
      expect((await harness.call('list_agents', { spaceId })).payload).toEqual({
        error: 'Box not found: pass a spaceId of this workspace, one of: acme-box',
      });
    }
  });
});

describe('get_agent', () => {
  test('is the full picture without a URL', async () => {
    harness.seedAgent('acme-box', 'full', {
      spec: {
        name: 'Full',
        soul: '# I',
        model: 'm',
        temperature: 0.5,
        stepLimit: 9,
        tools: { shell: false },
        setup: { required: true, prompt: 'p' },
      },
    });
    harness.seedTrigger('acme-box', 'full', 'hook', { spec: { methods: ['GET', 'POST'] } });
    const { payload } = await harness.call('get_agent', { agentId: 'acme-box.full' });
    expect(payload).toEqual({
      id: 'acme-box.full',
      handle: 'full',
      name: 'Full',
      description: '',
      spaceId: 'acme-box',
      status: 'idle',
      active: true,
      inactiveReason: null,
      soul: '# I',
      provider: 'boxwright',
      model: 'm',
      temperature: 0.5,
      stepLimit: 9,
      tools: { shell: false, files: true, web: true, browser: true, memory: true, agents: true },
      selfImprovement: { allowSoulEdit: true, allowToolInstall: true },
      setup: { required: true, prompt: 'p' },
      mcpServers: [],
      skills: [],
      schedules: [],
      triggers: [
        { slug: 'hook', name: 'hook', methods: ['GET', 'POST'], enabled: true, fireCount: 0, lastFiredAt: null },
      ],
      connectors: [],
      createdAt: '2026-05-01T10:00:00.000Z',
    });
  });
});

describe('create_agent', () => {
  test('answers with the id, the slot and the warnings; one write with the prefix of the key', async () => {
    harness.controllerSays({ active: true });
    const { payload } = await harness.call('create_agent', {
      name: 'Straße & Ünïcode!',
      soul: 's',
      tools: { web: false },
    });
    expect(payload).toEqual({
      agentId: 'acme-box.stra-e-unicode',
      name: 'Straße & Ünïcode!',
      handle: 'stra-e-unicode',
      spaceId: 'acme-box',
      active: true,
      inactiveReason: null,
      connectors: [],
      warnings: [],
    });
    expect(harness.api.writes).toHaveLength(1);
    const agent = harness.api.peek(Agents, 'bw-acme-box/stra-e-unicode');
    expect(agent?.metadata.annotations?.['boxwright.dev/requested-by']).toBe(KEY.slice(0, 11));
    expect(agent?.spec).toMatchObject({ soul: 's', tools: { web: false, shell: true }, provider: 'boxwright' });
    expect(harness.barriers).toEqual([{ kind: 'Agent', resourceVersion: expect.any(String) }]);
  });

  test('without a free slot it succeeds with active false and the reason', async () => {
    harness.controllerSays({ active: false, inactiveReason: 'all 1 slots are taken' });
    expect((await harness.call('create_agent', { name: 'a' })).payload).toMatchObject({
      active: false,
      inactiveReason: 'all 1 slots are taken',
    });
  });

  test('waits at most 5 seconds for the controller', async () => {
    let answered = false;
    const call = harness.call('create_agent', { name: 'a' }).then((answer) => {
      answered = true;
      return answer;
    });
    while (harness.agentWaiter.size === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await harness.clock.advance(4_999);
    expect(answered).toBe(false);
    await harness.clock.advance(1);
    expect((await call).payload).toMatchObject({
      active: false,
      inactiveReason: 'the controller has not assigned a slot yet; get_agent shows when it has',
    });
  });

  test('handles are unique in the workspace, whatever the Box', async () => {
    harness.controllerSays({ active: true });
    harness.seedBox('acme-two', 'acme');
    const first = await harness.call('create_agent', { name: 'Greeter', spaceId: 'acme-two' });
    const second = await harness.call('create_agent', { name: 'greeter', spaceId: 'acme-box' });
    expect([first.payload['agentId'], second.payload['agentId']]).toEqual(['acme-two.greeter-2', 'acme-box.greeter-3']);
    const other = await harness.call('create_agent', { name: 'Greeter' }, OTHER_KEY);
    expect(other.payload['agentId']).toBe('rival-box.greeter');
  });

  test('a name that another replica took meanwhile gets the next number', async () => {
    harness.controllerSays({ active: true });
    harness.api.failNext({ verb: 'create', error: apiError(409, 'AlreadyExists') });
    expect((await harness.call('create_agent', { name: 'New' })).payload['handle']).toBe('new-2');
  });

  test('a name without letters gets a random handle', async () => {
    harness.controllerSays({ active: true });
    expect((await harness.call('create_agent', { name: '你好' })).payload['handle']).toMatch(/^agent-[0-9a-f]{4}$/);
  });

  test('several Boxes and no spaceId: the error lists them', async () => {
    harness.seedBox('acme-two', 'acme');
    expect((await harness.call('create_agent', { name: 'a' })).payload).toEqual({
      error: 'this workspace has several Boxes: pass spaceId, one of: acme-box, acme-two',
    });
    expect((await harness.call('create_agent', { name: 'a', spaceId: 'rival-box' })).payload).toEqual({
      error: 'Box not found: pass a spaceId of this workspace, one of: acme-box, acme-two',
    });
    expect(harness.requests()).toEqual([]);
  });

  test('a Box whose namespace is not there yet says so', async () => {
    harness.api.failNext({ verb: 'create', error: apiError(404, 'NotFound') });
    expect((await harness.call('create_agent', { name: 'a' })).payload).toEqual({
      error: 'Box acme-box is not ready: its namespace is not there yet; try again in a moment',
    });
  });

  test('warns of a provider that has no key', async () => {
    harness.seedBox('acme-box', 'acme', { status: { availableProviders: [] } });
    harness.controllerSays({ active: true });
    const { payload } = await harness.call('create_agent', { name: 'a', provider: 'openai' });
    expect(payload['warnings']).toEqual([
      'neither Box acme-box nor the installation has a usable key for provider openai: runs will end with the error ModelNotConfigured; list_models says what to do',
    ]);
  });
});

describe('triggers', () => {
  const record = {
    slug: 'my-hook',
    name: 'My Hook',
    description: '',
    body: 'do it',
    methods: ['POST'],
    enabled: true,
    fireCount: 0,
    lastFiredAt: null,
    url: expect.stringMatching(URL),
  };
  const create = () => harness.call('upsert_trigger', { agentId: AGENT, name: 'My Hook', body: 'do it' });

  test('create gives a record with a secret URL, which list_triggers shows again', async () => {
    const { payload } = await create();
    expect(payload).toEqual(record);
    expect((await harness.call('list_triggers', { agentId: AGENT })).payload).toEqual({ triggers: [payload] });
    const readOnly = await harness.call('list_triggers', { agentId: AGENT }, READ_ONLY_KEY);
    const withoutUrl = Object.entries(payload).filter(([field]) => field !== 'url');
    expect(readOnly.payload).toEqual({ triggers: [Object.fromEntries(withoutUrl)] });
    const stored = harness.api.peek(AgentTriggers, 'bw-acme-box/greeter.my-hook');
    expect(stored?.spec.tokenId).toMatch(/^[0-9a-f]{32}$/);
    expect(stored?.spec.keyId).toBe('k1');
    expect(stored?.metadata).toMatchObject({
      labels: { 'boxwright.dev/agent': 'greeter' },
      annotations: {
        'boxwright.dev/requested-by': KEY.slice(0, 11),
        'boxwright.dev/created-at': '2026-05-01T10:00:00.000Z',
      },
    });
    expect(harness.barriers).toEqual([{ kind: 'AgentTrigger', resourceVersion: expect.any(String) }]);
  });

  test('the same name twice names the slug to pass', async () => {
    await create();
    expect((await create()).payload).toEqual({
      error:
        'this agent already has a trigger with slug my-hook: pass slug "my-hook" to update it, or choose another name',
    });
  });

  test('an update changes only what is passed, and keeps the URL', async () => {
    const { payload: created } = await create();
    harness.api.clearRecords();
    const { payload } = await harness.call('upsert_trigger', {
      agentId: AGENT,
      slug: 'my-hook',
      methods: ['GET', 'PUT', 'GET'],
      description: null,
    });
    expect(payload).toEqual({ ...created, methods: ['GET', 'PUT'] });
    expect(harness.api.writes.map(({ body }) => (body as { spec: object }).spec)).toEqual([
      { methods: ['GET', 'PUT'] },
    ]);
  });

  test('an update that changes nothing writes nothing', async () => {
    const { payload } = await create();
    harness.api.clearRecords();
    const same = { agentId: AGENT, slug: 'my-hook', name: 'My Hook', body: 'do it', enabled: true, methods: ['POST'] };
    expect((await harness.call('upsert_trigger', same)).payload).toEqual(payload);
    expect(harness.requests()).toEqual([]);
  });

  test.each([
    [{ slug: 'my-hook', name: 'Other' }, 'cannot be renamed: delete and recreate, which changes the URL'],
    [
      { slug: 'nope', body: 'x' },
      'trigger not found: this agent has no trigger with this slug; its slugs are: my-hook',
    ],
    [
      { slug: '../x', body: 'x' },
      'trigger not found: this agent has no trigger with this slug; its slugs are: my-hook',
    ],
  ])('an update with %j is an error', async (args, error) => {
    await create();
    harness.api.clearRecords();
    expect((await harness.call('upsert_trigger', { agentId: AGENT, ...args })).payload).toEqual({ error });
    expect(harness.api.writes).toEqual([]);
  });

  test('rotation gives another URL in one write', async () => {
    const { payload: before } = await create();
    harness.api.clearRecords();
    const { payload } = await harness.call('rotate_trigger_token', { agentId: AGENT, slug: 'my-hook' });
    expect(payload).toEqual({ slug: 'my-hook', url: expect.stringMatching(URL) });
    expect(payload['url']).not.toBe(before['url']);
    expect(harness.requests()).toEqual(['patch agenttriggers']);
    expect((await harness.call('list_triggers', { agentId: AGENT })).payload).toMatchObject({
      triggers: [{ url: payload['url'] }],
    });
  });

  test('a revoking call that was not confirmed everywhere says so; others do not', async () => {
    await create();
    harness.barrierPasses = false;
    const note = expect.stringContaining('Repeat the call to be sure');
    expect((await harness.call('rotate_trigger_token', { agentId: AGENT, slug: 'my-hook' })).payload).toMatchObject({
      note,
    });
    const enabled = (value: boolean) =>
      harness.call('upsert_trigger', { agentId: AGENT, slug: 'my-hook', enabled: value });
    expect((await enabled(false)).payload).toMatchObject({ enabled: false, note });
    expect((await enabled(true)).payload).not.toHaveProperty('note');
  });

  test('a repeated call that disables asks every API pod again', async () => {
    await create();
    const disable = async () =>
      (await harness.call('upsert_trigger', { agentId: AGENT, slug: 'my-hook', enabled: false })).payload;
    harness.barrierPasses = false;
    const note = expect.stringContaining('Repeat the call to be sure');
    expect(await disable()).toMatchObject({ enabled: false, note });
    expect(await disable()).toMatchObject({ enabled: false, note });
    harness.barrierPasses = true;
    harness.barriers.length = 0;
    const { resourceVersion } = harness.api.peek(AgentTriggers, 'bw-acme-box/greeter.my-hook')?.metadata ?? {};
    expect(await disable()).not.toHaveProperty('note');
    expect(harness.barriers).toEqual([{ kind: 'AgentTrigger', resourceVersion }]);
  });

  test.each([
    ['our annotation', { annotations: { 'boxwright.dev/managed-by': 'gitops' } }],
    ['Argo CD', { annotations: { 'argocd.argoproj.io/tracking-id': 'x' } }],
    ['Flux', { labels: { 'kustomize.toolkit.fluxcd.io/name': 'x' } }],
  ])('a trigger under GitOps (%s) is not changed, but its URL can be rotated', async (_name, metadata) => {
    harness.seedTrigger('acme-box', 'greeter', 'hook', { metadata });
    const update = await harness.call('upsert_trigger', { agentId: AGENT, slug: 'hook', enabled: false });
    expect(update.payload).toEqual({ error: 'managed by GitOps: change it in its source' });
    expect(harness.api.writes).toEqual([]);
    expect((await harness.call('rotate_trigger_token', { agentId: AGENT, slug: 'hook' })).isError).toBe(false);
  });

  test('counts are the folded base plus the live runs that are not in it', async () => {
    const trigger = harness.seedTrigger('acme-box', 'greeter', 'hook', {
      status: {
        folded: { runs: 3, inputTokens: 0, outputTokens: 0, costMicroUsd: 0, lastRunAt: '2026-04-01T00:00:00Z' },
        folding: ['folded-already'],
      },
    });
    const uid = trigger.metadata.uid ?? '';
    const spec = { trigger: { origin: 'trigger' as const, name: 'hook', uid }, createdAt: '2026-05-01T09:00:00.123Z' };
    harness.seedRun('acme-box', 'greeter-1', { spec });
    harness.seedRun('acme-box', 'greeter-2', { spec, metadata: { uid: 'folded-already' } });
    expect((await harness.call('list_triggers', { agentId: AGENT })).payload).toMatchObject({
      triggers: [{ fireCount: 4, lastFiredAt: '2026-05-01T09:00:00.123Z' }],
    });
  });

  test('a trigger that the control plane has not signed yet has no URL', async () => {
    harness.seedTrigger('acme-box', 'greeter', 'hook', { spec: { tokenId: undefined, keyId: undefined } });
    expect((await harness.call('list_triggers', { agentId: AGENT })).payload).toMatchObject({
      triggers: [{ url: null }],
    });
  });
});

describe('test_trigger', () => {
  beforeEach(() => harness.seedTrigger('acme-box', 'greeter', 'hook', { spec: { methods: ['PUT', 'POST'] } }));
  const fire = (args: object = {}) => harness.call('test_trigger', { agentId: AGENT, slug: 'hook', ...args });
  const lastRun = () => harness.api.all(AgentRuns).at(-1);

  test('starts a real run that counts as a fire', async () => {
    const { payload } = await fire({ body: { a: null }, query: 'x=1' });
    const run = lastRun();
    expect(payload).toEqual({ runId: run?.metadata.name, sessionId: `s-${run?.metadata.name}`, trigger: 'hook' });
    expect(run?.spec.message).toBe(
      `do it\n\n<trigger_payload trigger=hook method=PUT received=2026-05-01T10:00:00.000Z content-type=application/json bytes=10>\nquery: {"x":"1"}\n{\n  "a": null\n}\n</trigger_payload>`,
    );
    expect(run?.spec).toMatchObject({
      agent: 'greeter',
      trigger: { origin: 'trigger', name: 'hook' },
      sessionTitle: 'trigger: hook',
      actor: KEY.slice(0, 11),
    });
    expect((await harness.call('list_triggers', { agentId: AGENT })).payload).toMatchObject({
      triggers: [{ fireCount: 1 }],
    });
    expect((await harness.call('list_runs', { agentId: AGENT })).payload).toMatchObject({
      runs: [{ trigger: 'trigger:hook' }],
    });
    expect(harness.barriers).toEqual([{ kind: 'AgentRun', resourceVersion: expect.any(String) }]);
  });

  test.each([
    [{ body: 'plain' }, 'content-type=text/plain bytes=5'],
    [{ body: '[1]' }, 'content-type=application/json bytes=3'],
    [{ body: '[1]', contentType: 'text/x-log; charset=utf-8' }, 'content-type=text/x-log bytes=3'],
    [{}, 'content-type=application/octet-stream bytes=0'],
  ])('the payload of %j is shown as %s', async (args, attributes) => {
    await fire(args);
    expect(lastRun()?.spec.message).toContain(attributes);
  });

  test.each([
    ['a method that is not accepted', { method: 'GET' }, 'the trigger does not accept GET: use one of PUT, POST'],
    [
      'an unknown slug',
      { slug: 'nope' },
      'trigger not found: this agent has no trigger with this slug; its slugs are: hook',
    ],
  ])('%s is an error', async (_name, args, error) => {
    expect((await fire(args)).payload).toEqual({ error });
    expect(harness.api.writes).toEqual([]);
  });

  test('a disabled trigger is an error, whatever the method', async () => {
    harness.seedTrigger('acme-box', 'greeter', 'hook', { spec: { enabled: false } });
    expect((await fire({ method: 'GET' })).payload).toEqual({
      error: 'the trigger is disabled: enable it with upsert_trigger (enabled: true)',
    });
  });

  test('an inactive agent is an error', async () => {
    harness.seedAgent('acme-box', 'greeter', { status: { active: false, inactiveReason: 'no slot' } });
    expect((await fire()).payload).toEqual({ error: 'plan limit reached: the agent is inactive: no slot' });
    expect(harness.api.writes).toEqual([]);
  });
});

describe('send_message', () => {
  const send = (args: object = {}) =>
    harness.call('send_message', { agentId: AGENT, message: 'Hello there', waitSeconds: 0, ...args });

  test('steer is for the run at work in a session, and says whether it got the message', async () => {
    harness.seedRun('acme-box', 'greeter-1', { status: { phase: 'running' } });
    const steer = { sessionId: 's-greeter-1', steer: true };
    const queued = await send(steer);
    const runId = queued.payload['runId'] as string;
    expect(queued.payload).toMatchObject({
      status: 'running',
      delivery: 'queued',
      note: expect.stringContaining(runId),
    });
    expect(harness.api.peek(AgentRuns, `bw-acme-box/${runId}`)?.spec).toMatchObject({
      sessionId: 's-greeter-1',
      steer: true,
    });

    const create = harness.api.create.bind(harness.api);
    harness.api.create = async (type, object, options) => {
      const created = await create(type, object, options);
      const message = 'The message was given to run greeter-1, which was at work.';
      const finished = {
        type: 'Finished',
        status: 'True',
        reason: 'Delivered',
        message,
        lastTransitionTime: '2026-05-01T10:00:00Z',
      };
      const status = {
        phase: 'done',
        reason: 'Delivered',
        message,
        conditions: [finished],
        finishedAt: '2026-05-01T10:00:00Z',
      };
      harness.api.seed(type, { ...created, status });
      return created;
    };
    const delivered = await send({ ...steer, waitSeconds: 60 });
    expect(delivered.payload).toMatchObject({
      status: 'done',
      output: null,
      error: null,
      delivery: 'delivered',
      note: 'The message was given to run greeter-1, which was at work.',
    });
  });

  test('steer without a session is refused, and nothing is written', async () => {
    const { isError, payload } = await send({ steer: true });
    expect([isError, payload['error']]).toEqual([true, expect.stringContaining('argument "steer" needs "sessionId"')]);
    expect(harness.api.writes).toEqual([]);
  });

  test('answers running with a note when the wait is over', async () => {
    const { payload } = await send();
    const runId = payload['runId'] as string;
    expect(payload).toEqual({
      runId: expect.stringMatching(/^greeter-[0-9a-z]{26}$/),
      status: 'running',
      sessionId: `s-${runId}`,
      provider: 'boxwright',
      model: null,
      trigger: 'api',
      steps: 0,
      inputTokens: 0,
      outputTokens: 0,
      totalTokens: 0,
      costUsd: null,
      startedAt: '2026-05-01T10:00:00.000Z',
      finishedAt: null,
      error: null,
      output: null,
      pending: null,
      note: `Still working. Read it with get_run (agentId ${AGENT}, runId ${runId}); do not send the message again.`,
    });
    expect(harness.api.peek(AgentRuns, `bw-acme-box/${runId}`)?.spec).toEqual({
      agent: 'greeter',
      agentUid: expect.any(String),
      message: 'Hello there',
      trigger: { origin: 'api' },
      sessionTitle: 'Hello there',
      createdAt: '2026-05-01T10:00:00.000Z',
      actor: KEY.slice(0, 11),
    });
  });

  test('continues a session, after its latest run also when the clock is behind', async () => {
    harness.seedRun('acme-box', 'greeter-1', { spec: { createdAt: '2026-05-01T10:00:00.500Z' }, status: done() });
    const { payload } = await send({ sessionId: 's-greeter-1' });
    expect(payload).toMatchObject({ sessionId: 's-greeter-1', startedAt: '2026-05-01T10:00:00.501Z' });
    expect(harness.api.peek(AgentRuns, `bw-acme-box/${String(payload['runId'])}`)?.spec).not.toHaveProperty(
      'sessionTitle',
    );
  });

  test('unknown, foreign and malformed sessions are one and the same error', async () => {
    harness.seedRun('rival-box', 'spy-1', { spec: { agent: 'spy' } });
    harness.seedAgent('acme-box', 'other');
    harness.seedRun('acme-box', 'other-1', { spec: { agent: 'other' } });
    for (const sessionId of ['s-spy-1', 's-other-1', 's-never', 'x', 's-../../secrets']) {
      expect((await send({ sessionId })).payload).toEqual({
        error:
          'session not found: this agent has no session with this sessionId; omit sessionId to start a new conversation',
      });
    }
    expect(harness.api.writes).toEqual([]);
  });

  test('an inactive agent answers with the plan limit', async () => {
    harness.seedAgent('acme-box', 'greeter', { status: { active: false, inactiveReason: 'all slots are taken' } });
    expect((await send()).payload).toEqual({ error: 'plan limit reached: the agent is inactive: all slots are taken' });
    expect(harness.api.writes).toEqual([]);
  });

  test('a message above 128 KiB is refused', async () => {
    expect((await send({ message: 'é'.repeat(65_537) })).payload).toEqual({
      error: 'argument "message" has 131074 bytes; at most 131072 (128 KiB) are possible',
    });
    expect(harness.api.writes).toEqual([]);
  });
});

describe('runs', () => {
  test('list_runs is newest first, without output, and stops at the limit', async () => {
    for (let i = 0; i < 25; i++) {
      const createdAt = `2026-05-01T09:00:${String(i).padStart(2, '0')}.000Z`;
      harness.seedRun('acme-box', `greeter-${i}`, { spec: { createdAt }, status: done() });
    }
    const { runs } = (await harness.call('list_runs', { agentId: AGENT })).payload as {
      runs: Record<string, unknown>[];
    };
    expect(runs).toHaveLength(20);
    expect(runs[0]).toEqual({
      runId: 'greeter-24',
      status: 'done',
      sessionId: 's-greeter-24',
      provider: 'boxwright',
      model: 'scripted',
      trigger: 'api',
      steps: 2,
      inputTokens: 30,
      outputTokens: 12,
      totalTokens: 42,
      costUsd: 0.0015,
      startedAt: '2026-05-01T09:00:24.000Z',
      finishedAt: '2026-05-01T10:00:05.250Z',
      error: null,
    });
    const { payload } = await harness.call('list_runs', { agentId: AGENT, limit: 1 });
    expect(payload['runs']).toEqual([runs[0]]);
  });

  test('list_runs shows every change in its next answer', async () => {
    const read = async () => {
      const { runs } = (await harness.call('list_runs', { agentId: AGENT })).payload as {
        runs: { runId: string; status: string; model: string | null }[];
      };
      return runs.map(({ runId, status, model }) => `${runId} ${status} ${model}`);
    };
    expect(await read()).toEqual([]);
    harness.seedRun('acme-box', 'greeter-1');
    expect(await read()).toEqual(['greeter-1 running null']);
    await harness.call('update_agent', { agentId: AGENT, model: 'other' });
    expect(await read()).toEqual(['greeter-1 running other']);
    harness.seedRun('acme-box', 'greeter-1', { status: done() });
    expect(await read()).toEqual(['greeter-1 done scripted']);
  });

  test('list_runs of an agent that the cache does not know yet shows it as it is read', async () => {
    harness.seedRun('acme-box', 'greeter-1');
    const agent = harness.seedAgent('acme-box', 'greeter');
    harness.caches.Agent.get = () => undefined;
    for (const model of ['one', 'other']) {
      harness.api.get = <T>() => Promise.resolve({ ...agent, spec: { ...agent.spec, model } } as T);
      expect((await harness.call('list_runs', { agentId: AGENT })).payload).toMatchObject({ runs: [{ model }] });
    }
  });

  test('runs of a deleted agent of the same name do not show up', async () => {
    harness.seedRun('acme-box', 'greeter-old', { spec: { agentUid: 'gone' }, status: done() });
    expect((await harness.call('list_runs', { agentId: AGENT })).payload).toEqual({ runs: [] });
    expect((await harness.call('get_run', { agentId: AGENT, runId: 'greeter-old' })).isError).toBe(true);
  });

  test('an error names its reason; an unknown price is null', async () => {
    harness.seedRun('acme-box', 'greeter-1', {
      status: {
        phase: 'error',
        reason: 'OOMKilled',
        usage: { steps: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      },
    });
    expect((await harness.call('list_runs', { agentId: AGENT })).payload).toMatchObject({
      runs: [{ status: 'error', error: 'OOMKilled: The runner ran out of memory.', costUsd: null }],
    });
  });

  test('get_run shows input and output', async () => {
    harness.seedRun('acme-box', 'greeter-1', { status: done() });
    const { payload } = await harness.call('get_run', { agentId: AGENT, runId: 'greeter-1' });
    expect(payload).toMatchObject({
      runId: 'greeter-1',
      output: 'Hello!',
      pending: null,
      input: 'hello',
      transcript: 'full',
    });
    expect(payload).not.toHaveProperty('toolCalls');
    expect(payload).not.toHaveProperty('note');
  });

  test('get_run says why a run ended that is done, and get_run and get_session what it warned of', async () => {
    const warnings = ['MCP server a is left out: no answer.'];
    harness.seedRun('acme-box', 'greeter-1', { status: { ...done(), reason: 'StepLimitReached', warnings } });
    const run = { agentId: AGENT, runId: 'greeter-1' };
    const seen = await harness.call('get_run', run);
    expect(seen.payload).toMatchObject({ status: 'done', reason: 'StepLimitReached', warnings });
    const { payload } = await harness.call('get_session', { agentId: AGENT, sessionId: seen.payload['sessionId'] });
    expect(payload['warnings']).toEqual([{ runId: 'greeter-1', text: warnings[0] }]);
  });

  test('get_run shows how much of the input the provider had in its cache', async () => {
    const usage = { steps: 2, inputTokens: 900, outputTokens: 5, totalTokens: 905, cacheReadTokens: 700 };
    harness.seedRun('acme-box', 'greeter-1', { status: done({ usage }) });
    const { payload } = await harness.call('get_run', { agentId: AGENT, runId: 'greeter-1' });
    expect(payload).toMatchObject({ inputTokens: 900, cacheReadTokens: 700, cacheWriteTokens: 0 });
  });

  test('a compressed input is shown whole, a removed one as null', async () => {
    const long = 'word '.repeat(2000);
    const input = { encoding: 'gzip' as const, bytes: long.length, sha256: 'x' };
    const data = gzipSync(long).toString('base64');
    harness.seedRun('acme-box', 'greeter-1', {
      spec: { message: undefined, input: { ...input, data } },
      status: done(),
    });
    harness.seedRun('acme-box', 'greeter-2', { spec: { message: undefined, input }, status: done() });
    expect((await harness.call('get_run', { agentId: AGENT, runId: 'greeter-1' })).payload['input']).toBe(long);
    expect((await harness.call('get_run', { agentId: AGENT, runId: 'greeter-2' })).payload['input']).toBeNull();
  });

  test('tool calls and a long output come from the transcript: one GET more for its chunk', async () => {
    const at = '2026-05-01T10:00:01.000Z';
    const run = harness.seedRun('acme-box', 'greeter-1', { status: done({ outputTruncated: true }) });
    const chunk = await encodeEvents([
      {
        type: 'tool',
        seq: 1,
        at,
        step: 1,
        tool: 'shell',
        input: '{"command":"ls"}',
        result: '{"code":0}',
        isError: false,
        durationMs: 7,
      },
      { type: 'output', seq: 2, at, text: 'all of it' },
    ]);
    harness.api.seed(AgentRunChunks, {
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'AgentRunChunk',
      metadata: { namespace: 'bw-acme-box', name: 'greeter-1.00' },
      spec: { run: 'greeter-1', runUid: run.metadata.uid ?? '', seq: 0, ...chunk },
    });
    harness.api.clearRecords();
    const { payload } = await harness.call('get_run', { agentId: AGENT, runId: 'greeter-1', includeToolCalls: true });
    expect(payload).toMatchObject({
      output: 'all of it',
      transcript: 'full',
      toolCalls: [
        { step: 1, tool: 'shell', input: '{"command":"ls"}', result: '{"code":0}', isError: false, durationMs: 7 },
      ],
    });
    expect(harness.requests()).toEqual(['get agentruns', 'get agentrunchunks']);
  });

  describe('of a run that works', () => {
    const usage = { steps: 3, inputTokens: 30, outputTokens: 3, totalTokens: 33 };
    const at = '2026-01-01T00:00:00Z';
    const tool = { type: 'tool' as const, at, tool: 'shell', input: '{}', result: '{}', isError: false, durationMs: 7 };
    const call = { agentId: AGENT, runId: 'greeter-1', includeToolCalls: true };

    /** One step is stored. */
    async function atWork() {
      const run = harness.seedRun('acme-box', 'greeter-1', {
        status: {
          phase: 'running',
          claim: {
            podUid: 'uid-pod',
            podName: 'greeter-1-a',
            at,
            gatewayPod: 'gateway-1',
            gatewayUid: 'uid-gateway-1',
            gatewayAddress: '10.0.0.7:8443',
            epoch: 1,
          },
          usage: { ...usage, steps: 1 },
        },
      });
      const chunk = await encodeEvents([{ ...tool, seq: 1, step: 1 }]);
      harness.api.seed(AgentRunChunks, {
        apiVersion: 'boxwright.dev/v1alpha1',
        kind: 'AgentRunChunk',
        metadata: { namespace: 'bw-acme-box', name: 'greeter-1.00' },
        spec: { run: 'greeter-1', runUid: run.metadata.uid ?? '', seq: 0, ...chunk },
      });
      return run.metadata.uid ?? '';
    }

    test('get_run shows what it did and used until now', async () => {
      const uid = await atWork();
      const events = [1, 2, 3].map((seq) => ({ ...tool, seq, step: seq }));
      harness.told.set('bw-acme-box/greeter-1', { uid, usage, events, incomplete: false });
      const { payload } = await harness.call('get_run', call);
      expect(payload).toMatchObject({ ...usage, status: 'running', transcript: 'full' });
      expect(payload['toolCalls']).toMatchObject([{ step: 1 }, { step: 2 }, { step: 3 }]);
      expect(harness.asked).toEqual([{ namespace: 'bw-acme-box', name: 'greeter-1', gatewayAddress: '10.0.0.7:8443' }]);
    });

    test('get_run says so when a part of it is not known', async () => {
      const uid = await atWork();
      const events = [{ ...tool, seq: 9, step: 9 }];
      harness.told.set('bw-acme-box/greeter-1', { uid, usage, events, incomplete: true });
      const { payload } = await harness.call('get_run', call);
      expect(payload).toMatchObject({ transcript: 'truncated', toolCalls: [{ step: 1 }, { step: 9 }] });
    });

    test.each([
      ['its gateway does not answer', undefined],
      ['its gateway means an earlier run of the name', 'uid-before'],
    ])('get_run shows what is stored when %s', async (_why, uid) => {
      await atWork();
      if (uid !== undefined) harness.told.set('bw-acme-box/greeter-1', { uid, usage, events: [], incomplete: false });
      const { payload } = await harness.call('get_run', call);
      expect(payload).toMatchObject({ steps: 1, transcript: 'full', toolCalls: [{ step: 1 }] });
    });

    test('no gateway is asked about a run that waits or has ended', async () => {
      harness.seedRun('acme-box', 'greeter-2', { status: { phase: 'running' } });
      harness.seedRun('acme-box', 'greeter-3', { status: done() });
      for (const runId of ['greeter-2', 'greeter-3']) await harness.call('get_run', { ...call, runId });
      expect(harness.asked).toEqual([]);
    });
  });

  test.each([
    ['get_run', { runId: 'greeter-1', includeToolCalls: true }],
    ['get_session', { sessionId: 's-greeter-1' }],
  ])('%s waits no longer than 15 seconds for a transcript', async (tool, args) => {
    harness.seedRun('acme-box', 'greeter-1', { status: done() });
    const get = harness.api.get.bind(harness.api);
    const asked = new Promise<void>((resolve) => {
      harness.api.get = (type, ref, options) => {
        if (type.kind !== AgentRunChunks.kind) return get(type, ref, options);
        resolve();
        const lost = new KubeConnectionError('no answer', 'aborted');
        return new Promise((_resolve, reject) => options?.signal?.addEventListener('abort', () => reject(lost)));
      };
    });
    const answer = harness.call(tool, { agentId: AGENT, ...args });
    await asked;
    await harness.clock.advance(15_000);
    expect((await answer).payload).toEqual({
      error:
        'the Kubernetes API did not answer in time; look with a list or get tool whether it happened before trying again',
    });
  });

  test('a queued run says why and how many are ahead', async () => {
    const queued = (second: string) => ({
      spec: { createdAt: `2026-05-01T09:00:0${second}.000Z` },
      status: {
        phase: 'running' as const,
        reason: 'BoxLimit',
        conditions: [
          {
            type: 'Queued',
            status: 'True' as const,
            reason: 'BoxLimit',
            message: '',
            lastTransitionTime: '2026-05-01T09:00:00Z',
          },
        ],
      },
    });
    for (const second of ['1', '2', '3']) harness.seedRun('acme-box', `greeter-${second}`, queued(second));
    expect((await harness.call('get_run', { agentId: AGENT, runId: 'greeter-3' })).payload).toMatchObject({
      status: 'running',
      note: 'queued: BoxLimit, 2 ahead',
    });
  });

  test.each(['nope', '../x', 'A', 'spy-1'])('get_run and cancel_run of %s: not found', async (runId) => {
    harness.seedRun('rival-box', 'spy-1', { spec: { agent: 'spy' } });
    for (const tool of ['get_run', 'cancel_run']) {
      expect((await harness.call(tool, { agentId: AGENT, runId })).payload).toEqual({
        error: 'run not found: this agent has no run with this runId; list_runs shows the latest',
      });
    }
    expect(harness.api.writes).toEqual([]);
  });

  test('cancel_run of a finished run is no error and writes nothing', async () => {
    harness.seedRun('acme-box', 'greeter-1', { status: done() });
    const { payload } = await harness.call('cancel_run', { agentId: AGENT, runId: 'greeter-1' });
    expect(payload).toEqual({ runId: 'greeter-1', status: 'done', note: null });
    expect(harness.api.writes).toEqual([]);
  });
});

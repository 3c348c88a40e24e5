/** Sentences of the spec and of the tools' reference that hold for many tools at once, each with its literal values. */
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { BoxSpec, Boxes } from '../../src/api/v1alpha1/box.js';
import { Connectors } from '../../src/api/v1alpha1/connector.js';
import { WorkspaceSpec, Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { TOOLS } from '../../src/mcp/registry.js';
import { SHIPPED_CONNECTORS } from '../../src/connectors/catalog.js';
import { KEY, McpHarness, OTHER_KEY } from '../builders/mcp-harness.js';

const AGENT = 'acme-box.greeter';
const GITOPS = { annotations: { 'boxwright.dev/managed-by': 'gitops' } };
const DELETING = { deletionTimestamp: '2026-05-01T09:59:00Z', finalizers: ['boxwright.dev/cleanup'] };

let harness: McpHarness;
beforeEach(() => {
  harness = new McpHarness();
  harness.seedConnectors();
});

const errorOf = async (tool: string, args: object): Promise<unknown> => {
  const { isError, payload } = await harness.call(tool, args);
  return isError ? payload['error'] : 'no error';
};

/** Everything that hangs on agent greeter, and a template; `metadata` for each of them. */
function seedChildren(metadata: object = {}): void {
  harness.seedTrigger('acme-box', 'greeter', 'hook', { metadata });
  harness.seedSchedule('acme-box', 'greeter', 'daily', { metadata });
  harness.seedSkill('acme-box', 'greeter', 'notes', { files: { 'a.txt': 'text' }, metadata });
  harness.seedTemplate('acme', 'writers', { metadata });
  harness.api.clearRecords();
}

/** The seven destructive tools with good arguments, `confirm` aside. */
const DESTRUCTIVE: [string, Record<string, unknown>, string][] = [
  ['delete_agent', { agentId: 'acme-box.nobody' }, 'agent not found: '],
  ['delete_trigger', { agentId: AGENT, slug: 'x' }, 'trigger not found: '],
  ['delete_skill', { agentId: AGENT, slug: 'x' }, 'skill not found: '],
  ['delete_schedule', { agentId: AGENT, slug: 'x' }, 'schedule not found: '],
  ['detach_connector', { agentId: AGENT, slug: 'x' }, 'connector not attached: '],
  ['delete_template', { templateId: 'acme.x' }, 'template not found: '],
  ['remove_template_agent', { templateId: 'acme.x', templateAgentId: 'ta-1' }, 'template not found: '],
];

describe('spec 4.2, tools 1: order of checks', () => {
  test.each(DESTRUCTIVE)('%s: arguments, then confirm, then existence', async (tool, args, notFound) => {
    const confirmText = `${tool} cannot be undone. Ask the account owner; once they have agreed, call again with confirm: true.`;
    expect(await errorOf(tool, {})).toMatch(/^missing required argument: /);
    for (const confirm of [undefined, null, false, 'true', 1]) {
      expect(await errorOf(tool, { ...args, confirm })).toBe(confirmText);
    }
    expect(await errorOf(tool, { ...args, confirm: true })).toEqual(expect.stringContaining(notFound));
    expect(harness.api.writes).toEqual([]);
  });

  test.each([
    ['upsert_trigger', {}, 'missing required argument: name (string) is needed to create a trigger; to update one, pass its slug'],
    ['upsert_schedule', { name: 'a' }, 'missing required argument: body (string) is needed to create a schedule; to update one, pass its slug'],
    ['upsert_schedule', { name: 'a', body: 'b', cron: '0 0 30 2 *' }, 'argument "cron" never comes: no date fits, such as February 30'],
    ['upsert_schedule', { slug: 'x', timezone: '+02:00' }, 'argument "timezone" must be an IANA time zone, for example Europe/Berlin or UTC'],
    ['upsert_schedule', { slug: 'x', cron: '0 0 30 2 *' }, 'argument "cron" never comes: no date fits, such as February 30'],
    ['upsert_schedule', { slug: 'x', runAt: 'soon' }, 'argument "runAt" must be a date and time, for example 2030-01-31T09:00 (in timezone) or 2030-01-31T09:00:00Z'],
    ['upsert_skill', { name: 'a' }, 'missing required argument: description (string) is needed to create a skill; to update one, pass its slug'],
    ['upsert_skill', { name: 'a', description: 'd', body: 'b', removeFiles: ['x'] }, 'argument "removeFiles.0": the skill has no such file'],
    ['update_agent', { handle: 'No Handle' }, 'argument "handle" must have a-z, 0-9 and single hyphens inside, at most 36 characters, for example release-helper'],
    ['send_message', { message: 'x'.repeat(131_073) }, 'argument "message" has 131073 bytes; at most 131072 (128 KiB) are possible'],
    ['test_trigger', { slug: 'x', body: 'x'.repeat(1_048_577) }, 'argument "body" must have at most 1048576 bytes (1 MB)'],
  ])('%s with wrong arguments says so also for an unknown agent, and asks nothing', async (tool, args, error) => {
    expect(await errorOf(tool, { agentId: 'acme-box.nobody', ...args })).toBe(error);
    expect(harness.requests()).toEqual([]);
  }); // prettier-ignore

  test('spec 1.7: the expert sandbox comes before wrong arguments and confirm', async () => {
    const spec = WorkspaceSpec.parse({ expertSandbox: false });
    const meta = { apiVersion: 'boxwright.dev/v1alpha1', kind: 'Workspace', metadata: { name: 'acme' } };
    harness.api.seed(Workspaces, { ...meta, spec });
    const gate = 'templates need an expert sandbox account: set spec.expertSandbox: true on Workspace acme';
    expect(await errorOf('delete_template', { templateId: 5 })).toBe(gate);
    expect(await errorOf('delete_template', { templateId: 'acme.x' })).toBe(gate);
  });

  test('spec 7: more connectors than an agent can have are an argument error', async () => {
    const [entry] = SHIPPED_CONNECTORS;
    if (entry === undefined) throw new Error('the catalogue is empty');
    const slugs = Array.from({ length: 51 }, (_, index) => `c${index}`);
    for (const name of slugs) {
      const meta = { apiVersion: 'boxwright.dev/v1alpha1', kind: 'Connector', metadata: { name } };
      harness.api.seed(Connectors, { ...meta, spec: entry.spec });
    }
    const error = 'argument "connectors" must have at most 50 items';
    expect(await errorOf('create_agent', { name: 'a', connectors: slugs })).toBe(error);
  });
});

describe('errors that say what would do', () => {
  test.each([
    ['get_skill', 'skill not found: this agent has no skill with this slug; its slugs are: notes'],
    ['run_schedule_now', 'schedule not found: this agent has no schedule with this slug; its slugs are: daily'],
    ['test_trigger', 'trigger not found: this agent has no trigger with this slug; its slugs are: hook, zebra'],
    ['rotate_trigger_token', 'trigger not found: this agent has no trigger with this slug; its slugs are: hook, zebra'],
    ['attach_connector', 'connector slug not in the catalog: near ones: github, deepwiki; search_connectors lists all'],
  ])('spec 7: an unknown slug of %s names the near ones', async (tool, error) => {
    seedChildren();
    harness.seedTrigger('acme-box', 'greeter', 'zebra');
    harness.seedTrigger('acme-box', 'greeter', 'gone', { metadata: DELETING });
    expect(await errorOf(tool, { agentId: AGENT, slug: 'hok' })).toBe(error);
  });

  test.each([
    ['create_agent', { name: 'a' }],
    ['list_models', {}],
    ['install_template', { templateId: 'acme.writers' }],
  ])('spec 4.2.1: %s without spaceId lists several Boxes with ids and names', async (tool, args) => {
    seedChildren();
    const spec = BoxSpec.parse({ workspace: 'acme', engine: 'scripted', displayName: 'Second Box' });
    const metadata = { name: 'box-two', creationTimestamp: '2030-01-01T00:00:00Z' };
    harness.api.seed(Boxes, { apiVersion: 'boxwright.dev/v1alpha1', kind: 'Box', metadata, spec });
    harness.api.clearRecords();
    const list = 'one of: acme-box, box-two (Second Box)';
    expect(await errorOf(tool, args)).toBe(`this workspace has several Boxes: pass spaceId, ${list}`);
    const foreign = await harness.call(tool, { ...args, spaceId: 'rival-box' });
    const unknown = await harness.call(tool, { ...args, spaceId: 'nowhere' });
    expect(foreign.raw).toEqual(unknown.raw);
    expect(foreign.payload).toEqual({ error: `Box not found: pass a spaceId of this workspace, ${list}` });
    expect(harness.api.writes).toEqual([]);
  });
});

describe('tools 1: an id of another workspace answers exactly like an unknown one', () => {
  const cases: [string, object, object][] = [
    ['get_run', { runId: 'spy-1' }, { runId: 'spy-9' }],
    ['cancel_run', { runId: 'spy-1' }, { runId: 'spy-9' }],
    ['get_session', { sessionId: 's-spy-1' }, { sessionId: 's-spy-9' }],
    ['send_message', { message: 'x', sessionId: 's-spy-1' }, { message: 'x', sessionId: 's-spy-9' }],
    ['get_skill', { slug: 'secret' }, { slug: 'nothin' }],
    ['read_skill_file', { slug: 'secret', path: 'a' }, { slug: 'nothin', path: 'a' }],
    ['run_schedule_now', { slug: 'secret' }, { slug: 'nothin' }],
    ['rotate_trigger_token', { slug: 'secret' }, { slug: 'nothin' }],
    ['create_template', { name: 'a', agentIds: ['rival-box.spy'] }, { name: 'a', agentIds: ['rival-box.none'] }],
    ['list_agents', { spaceId: 'rival-box' }, { spaceId: 'nowhere' }],
  ];

  test.each(cases)('%s', async (tool, foreign, unknown) => {
    harness.seedRun('rival-box', 'spy-1', { spec: { agent: 'spy' } });
    harness.seedSkill('rival-box', 'spy', 'secret');
    harness.seedSchedule('rival-box', 'spy', 'secret');
    harness.seedTrigger('rival-box', 'spy', 'secret');
    harness.api.clearRecords();
    const one = await harness.call(tool, { agentId: AGENT, ...foreign });
    const other = await harness.call(tool, { agentId: AGENT, ...unknown });
    expect(one.isError).toBe(true);
    expect(JSON.stringify(one.raw)).toBe(JSON.stringify(other.raw));
    expect(harness.api.writes).toEqual([]);
  });

  test('a key of the other workspace does see its own', async () => {
    harness.seedRun('rival-box', 'spy-1', { spec: { agent: 'spy' } });
    const { payload } = await harness.call('get_run', { agentId: 'rival-box.spy', runId: 'spy-1' }, OTHER_KEY);
    expect(payload['runId']).toBe('spy-1');
  });
});

/** Every write tool on an object that is there; those that change no object of a repository are named below. */
const ON_OBJECTS: [string, object][] = [
  ['update_agent', { agentId: AGENT, name: 'x' }],
  ['delete_agent', { agentId: AGENT, confirm: true }],
  ['attach_connector', { agentId: AGENT, slug: 'github' }],
  ['detach_connector', { agentId: AGENT, slug: 'deepwiki', confirm: true }],
  ['set_mcp_servers', { agentId: AGENT, servers: [] }],
  ['upsert_trigger', { agentId: AGENT, slug: 'hook', enabled: false }],
  ['delete_trigger', { agentId: AGENT, slug: 'hook', confirm: true }],
  ['upsert_skill', { agentId: AGENT, slug: 'notes', body: 'x' }],
  ['delete_skill', { agentId: AGENT, slug: 'notes', confirm: true }],
  ['upsert_schedule', { agentId: AGENT, slug: 'daily', enabled: false }],
  ['delete_schedule', { agentId: AGENT, slug: 'daily', confirm: true }],
  ['update_template', { templateId: 'acme.writers', name: 'x' }],
  ['delete_template', { templateId: 'acme.writers', confirm: true }],
  ['add_template_agent', { templateId: 'acme.writers', agentId: AGENT }],
  ['update_template_agent', { templateId: 'acme.writers', templateAgentId: 'ta-1', soul: 'x' }],
  ['remove_template_agent', { templateId: 'acme.writers', templateAgentId: 'ta-1', confirm: true }],
  ['publish_template', { templateId: 'acme.writers' }],
  ['unpublish_template', { templateId: 'acme.writers' }],
];

describe('tools 1: an object that GitOps owns', () => {
  test.each(ON_OBJECTS)('is refused by %s', async (tool, args) => {
    harness.seedAgent('acme-box', 'greeter', { metadata: GITOPS, spec: { connectors: ['deepwiki'] } });
    seedChildren(GITOPS);
    expect(await errorOf(tool, args)).toBe('managed by GitOps: change it in its source');
    expect(harness.api.writes).toEqual([]);
  });

  test('the tools that write and are not refused make something new, run it, or end a leaked URL', () => {
    const refused = new Set(ON_OBJECTS.map(([tool]) => tool));
    const others = TOOLS.filter(({ name, readOnly }) => !readOnly && !refused.has(name)).map(({ name }) => name);
    expect(others).toEqual([
      'create_agent',
      'send_message',
      'test_trigger',
      'rotate_trigger_token',
      'cancel_run',
      'run_schedule_now',
      'create_template',
      'install_template',
    ]);
  });
});

describe('tools 1: every write stores the prefix of the key in boxwright.dev/requested-by', () => {
  /** What makes or runs something, besides the tools on objects; a delete leaves no object to keep it. */
  const makers: [string, object][] = [
    ['create_agent', { name: 'a' }],
    ['send_message', { agentId: AGENT, message: 'hi', waitSeconds: 0 }],
    ['upsert_trigger', { agentId: AGENT, name: 'New', body: 'b' }],
    ['upsert_schedule', { agentId: AGENT, name: 'New', body: 'b', cron: '0 9 * * *' }],
    ['upsert_skill', { agentId: AGENT, name: 'New', description: 'd', body: 'b' }],
    ['test_trigger', { agentId: AGENT, slug: 'hook' }],
    ['rotate_trigger_token', { agentId: AGENT, slug: 'hook' }],
    ['run_schedule_now', { agentId: AGENT, slug: 'daily' }],
    ['create_template', { name: 'a', agentIds: [AGENT] }],
    ['install_template', { templateId: 'acme.writers' }],
    ...ON_OBJECTS.filter(([tool]) => !tool.startsWith('delete_')),
  ];
  /** Pieces of a template, which carries it. */
  const PARTS = ['agenttemplateparts'];

  test.each(makers)('%s %j', async (tool, args) => {
    harness.controllerSays({ active: true });
    harness.seedAgent('acme-box', 'greeter', {
      spec: { connectors: ['deepwiki'], mcpServers: [{ name: 'a', url: 'https://a.example' }] },
    });
    seedChildren();
    if (tool === 'publish_template') await harness.call('update_template', { templateId: 'acme.writers', name: 'y' });
    harness.api.clearRecords();
    expect(await errorOf(tool, args)).toBe('no error');
    const written = harness.api.writes.filter(({ verb, resource }) => verb !== 'delete' && !PARTS.includes(resource));
    // What a call has made and patches again keeps it.
    const prefixes = new Map<string, string | undefined>();
    for (const { key, body } of written) {
      const { annotations } = (body as { metadata: { annotations?: Record<string, string> } }).metadata;
      prefixes.set(key, annotations?.['boxwright.dev/requested-by'] ?? prefixes.get(key));
    }
    expect(new Set(prefixes.values())).toEqual(new Set([KEY.slice(0, 11)]));
  });
});

describe('tools 1: an object that is being deleted is gone', () => {
  const SLUG = { trigger: 'hook', schedule: 'daily', skill: 'notes' };
  const TEMPLATE = { templateId: 'acme.writers', templateAgentId: 'ta-1', agentId: AGENT };
  const cases = [
    ...['upsert_trigger', 'test_trigger', 'rotate_trigger_token', 'delete_trigger'].map((tool) => [tool, 'trigger']),
    ...['upsert_schedule', 'run_schedule_now', 'delete_schedule'].map((tool) => [tool, 'schedule']),
    ...['get_skill', 'read_skill_file', 'upsert_skill', 'delete_skill'].map((tool) => [tool, 'skill']),
    ...TOOLS.filter(({ definition }) => definition.inputSchema.required.includes('templateId')).map(({ name }) => [
      name,
      'template',
    ]),
  ] as [string, keyof typeof SLUG | 'template'][];

  test.each(cases)('for %s', async (tool, kind) => {
    seedChildren(DELETING);
    const ids = kind === 'template' ? TEMPLATE : { agentId: AGENT, slug: SLUG[kind] };
    const error =
      kind === 'template'
        ? 'template not found: this workspace sees no template with this templateId; list_templates shows them'
        : `${kind} not found: this agent has no ${kind} with this slug; it has none`;
    expect(await errorOf(tool, { ...ids, path: 'a.txt', confirm: true })).toBe(error);
    expect(harness.api.writes).toEqual([]);
  });

  test('for the lists, and its runs with it', async () => {
    seedChildren(DELETING);
    harness.seedRun('acme-box', 'greeter-1', { metadata: DELETING });
    const list = async (tool: string) => (await harness.call(tool, { agentId: AGENT })).payload;
    expect(await list('list_triggers')).toEqual({ triggers: [] });
    expect(await list('list_schedules')).toEqual({ schedules: [] });
    expect(await list('list_skills')).toEqual({ skills: [] });
    expect(await list('list_templates')).toEqual({ templates: [] });
    expect(await list('list_runs')).toEqual({ runs: [] });
    expect(await list('list_sessions')).toEqual({ sessions: [] });
    expect(await errorOf('get_run', { agentId: AGENT, runId: 'greeter-1' })).toBe(
      'run not found: this agent has no run with this runId; list_runs shows the latest',
    );
  });
});

describe('spec 2: exactly these keys, in this order', () => {
  const RUN =
    'runId status sessionId provider model trigger steps inputTokens outputTokens totalTokens costUsd startedAt finishedAt error';
  const keysOf = (value: unknown) => Object.keys(value as object).join(' '); // prettier-ignore

  test.each([
    ['list_spaces', 'spaces', 'id name agentCount createdAt'],
    ['list_agents', 'agents', 'id name handle description status space_id created_at'],
    ['list_triggers', 'triggers', 'slug name description body methods enabled fireCount lastFiredAt url'],
    ['list_runs', 'runs', RUN],
    ['list_sessions', 'sessions', 'sessionId title runCount pending createdAt updatedAt'],
    ['list_skills', 'skills', 'slug name description files updatedAt'],
    ['list_schedules', 'schedules', 'slug name description body cron runAt timezone enabled lastRunAt lastRunId nextRunAt'],
    ['list_agent_connectors', 'connectors', 'slug name status missingSecrets'],
    ['list_memories', 'memories', 'id text createdAt updatedAt'],
    ['search_connectors', 'connectors', 'slug name category description auth secrets'],
    ['list_models', 'models', 'provider model available reason isDefault contextWindow inputUsdPerMillion outputUsdPerMillion'],
    ['list_templates', 'templates', 'templateId name description category tags status version hasUnpublishedChanges own agentCount installCount createdAt updatedAt publishedAt'],
  ])('%s', async (tool, wrapper, keys) => {
    seedChildren();
    harness.seedAgent('acme-box', 'greeter', { spec: { connectors: ['deepwiki'] } });
    harness.seedRun('acme-box', 'greeter-1');
    harness.seedMemory('acme-box', 'greeter', 'greeter-note', 'remember');
    const { payload } = await harness.call(tool, { agentId: AGENT });
    expect(Object.keys(payload)).toEqual([wrapper]);
    expect(keysOf((payload[wrapper] as unknown[])[0])).toBe(keys);
  }); // prettier-ignore

  test('get_agent', async () => {
    expect(keysOf((await harness.call('get_agent', { agentId: AGENT })).payload)).toBe(
      'id handle name description spaceId status active inactiveReason soul provider model temperature stepLimit tools selfImprovement setup mcpServers skills schedules triggers connectors createdAt',
    );
  });

  test('get_run of an agent with an outputSchema has the output parsed', async () => {
    const status = { phase: 'done' as const, reason: 'Completed', structured: true, output: '{"total":2}' };
    harness.seedRun('acme-box', 'greeter-1', { status });
    harness.seedRun('acme-box', 'greeter-2', { status: { ...status, reason: 'StepLimitReached' } });
    const read = async (runId: string) => (await harness.call('get_run', { agentId: AGENT, runId })).payload;
    expect(await read('greeter-1')).toMatchObject({ output: '{"total":2}', outputJson: { total: 2 } });
    expect(Object.keys(await read('greeter-2'))).not.toContain('outputJson');
  });

  test('get_run and send_message', async () => {
    harness.seedRun('acme-box', 'greeter-1');
    const run = { agentId: AGENT, runId: 'greeter-1' };
    const { payload } = await harness.call('get_run', run);
    expect(keysOf(payload)).toBe(
      `${RUN} output pending input cacheReadTokens cacheWriteTokens transcript files reason warnings`,
    );
    expect(payload).toMatchObject({ costUsd: null, finishedAt: null, error: null, output: null, pending: null });
    const long = (await harness.call('get_run', { ...run, includeToolCalls: true })).payload;
    expect(keysOf(long)).toBe(
      `${RUN} output pending input cacheReadTokens cacheWriteTokens transcript files reason warnings toolCalls`,
    );
    const sent = await harness.call('send_message', { agentId: AGENT, message: 'hi', waitSeconds: 0 });
    expect(keysOf(sent.payload)).toBe(`${RUN} output pending note`);
  });
});

describe('spec 4.2, update_agent', () => {
  test('`updated` names the fields whose stored value changed, and no others', async () => {
    harness.seedAgent('acme-box', 'greeter', { spec: { name: 'Greeter', soul: 'old', temperature: 1 } });
    const args = { name: 'Greeter', soul: 'new', temperature: 1, model: null, tools: { shell: true, web: false } };
    const { payload } = await harness.call('update_agent', { agentId: AGENT, ...args });
    expect(payload).toEqual({ agentId: AGENT, updated: ['soul', 'tools'], warnings: [] });
    expect((await harness.call('update_agent', { agentId: AGENT })).payload).toMatchObject({ updated: [] });
  });

  test('calls at the same time lose no field', async () => {
    const changes = [{ name: 'N' }, { soul: 'S' }, { description: 'D' }, { stepLimit: 7 }, { tools: { shell: false } }];
    const answers = await Promise.all(changes.map((args) => harness.call('update_agent', { agentId: AGENT, ...args })));
    expect(answers.map(({ payload }) => payload['updated'])).toEqual(changes.map((change) => Object.keys(change)));
    expect(harness.api.peek(Agents, 'bw-acme-box/greeter')?.spec).toMatchObject({
      name: 'N',
      soul: 'S',
      description: 'D',
      stepLimit: 7,
      tools: { shell: false, web: true },
    });
  });
});

describe('spec 8: limits', () => {
  const property = (tool: string, name: string) =>
    TOOLS.find((one) => one.name === tool)?.definition.inputSchema.properties[name];

  test('waitSeconds of send_message: 120 by default, at most 600', () => {
    expect(property('send_message', 'waitSeconds')).toMatchObject({ default: 120, minimum: 0, maximum: 600 });
  });

  test('limit of list_runs: 20 by default, at most 200', () => {
    expect(property('list_runs', 'limit')).toMatchObject({ default: 20, minimum: 1, maximum: 200 });
  });
});

describe('spec 7: protocol errors', () => {
  test('have status 200 and exactly jsonrpc, id and error {code, message}', async () => {
    const unknown = await harness.post('{"jsonrpc":"2.0","id":"a","method":"nope"}');
    expect([unknown.status, unknown.body]).toEqual([
      200,
      { jsonrpc: '2.0', id: 'a', error: { code: -32601, message: expect.stringMatching(/^Method not found/) } },
    ]);
    const broken = await harness.post('{');
    expect([broken.status, broken.body]).toEqual([
      200,
      { jsonrpc: '2.0', id: null, error: { code: -32700, message: expect.stringMatching(/^Parse error/) } },
    ]);
  });
});

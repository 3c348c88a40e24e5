/** Templates from capture to install (spec 1.7; reference docs of the tools). */
import { randomBytes } from 'node:crypto';
import { AgentTemplateParts, AgentTemplates } from '../../src/api/v1alpha1/agent-template.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../../src/api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../../src/api/v1alpha1/agent-skill.js';
import { AgentTriggers } from '../../src/api/v1alpha1/agent-trigger.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { WorkspaceSpec, Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { unpackFiles } from '../../src/skills/archive.js';
import { AgentEvalSpec, AgentEvals } from '../../src/api/v1alpha1/agent-eval.js';
import type { AgentEval } from '../../src/api/v1alpha1/agent-eval.js';
import { contentOf } from '../../src/controllers/agent-eval/content.js';
import { controllerSkillInformer } from '../../src/projections/agent-skill.js';
import { packedFiles } from '../builders/skill-files.js';
import { TOOLS } from '../../src/mcp/registry.js';
import { KEY, McpHarness, OTHER_KEY, templateAgent } from '../builders/mcp-harness.js';
import { apiError } from '../builders/recording-api.js';

const AGENT = 'acme-box.greeter';
const NOT_FOUND = 'template not found: this workspace sees no template with this templateId; list_templates shows them';
const TEMPLATE_TOOLS = TOOLS.map(({ name }) => name).filter((name) => name.includes('template'));

let harness: McpHarness;
beforeEach(() => {
  harness = new McpHarness();
  harness.seedConnectors();
  harness.controllerSays({ active: true });
});

const call = async (tool: string, args: object = {}, key = KEY) => (await harness.call(tool, args, key)).payload;
const parts = () => harness.api.all(AgentTemplateParts).map(({ metadata }) => metadata.name);
const stored = (name = 'team') => harness.api.peek(AgentTemplates, `bw-ws-acme/${name}`);

/** An agent with everything that a template keeps. */
function seedWhole(): void {
  harness.seedAgent('acme-box', 'cleo', {
    spec: {
      name: 'Cleo',
      soul: 'Ask @greeter for help, write to cleo@example.com, use `@decorator`.',
      connectors: ['github'],
      mcpServers: [
        { name: 'docs', url: 'https://x.example', headers: [{ name: 'Authorization', value: 'Bearer ${DOCS}' }] },
      ],
      setup: { required: true, prompt: 'Greet as @cleo.' },
    },
  });
  harness.seedSkill('acme-box', 'cleo', 'notes', {
    spec: { description: 'For @cleo.', body: 'Tell @cleo.' },
    files: { 'a.txt': 'Ask @cleo or @greeter.', 'run.py': '@cleo\ndef f(): pass', 'b.bin': Buffer.from([0, 64, 1]) },
  });
  harness.seedSchedule('acme-box', 'cleo', 'daily');
  harness.seedTrigger('acme-box', 'cleo', 'hook', {
    spec: { dedupeHeader: 'X-GitHub-Delivery', verify: { scheme: 'github', key: 'repo' } },
  });
}

async function createTeam(): Promise<void> {
  seedWhole();
  await call('create_template', { name: 'Team', description: 'Two agents.', agentIds: ['acme-box.cleo', AGENT] });
}

describe('the gate', () => {
  test.each(TEMPLATE_TOOLS)('%s is refused before its arguments are looked at', async (tool) => {
    harness.api.seed(Workspaces, {
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'Workspace',
      metadata: { name: 'acme' },
      spec: WorkspaceSpec.parse({}),
    });
    harness.api.clearRecords();
    for (const args of [{}, { templateId: 5 }]) {
      expect(await call(tool, args)).toEqual({
        error: 'templates need an expert sandbox account: set spec.expertSandbox: true on Workspace acme',
      });
    }
    expect(harness.requests()).toEqual([]);
  });
});

describe('create_template', () => {
  test('captures agents whole, and nothing that must not travel', async () => {
    seedWhole();
    const payload = await call('create_template', {
      name: 'Team',
      description: 'Two agents.',
      tags: ['a'],
      agentIds: ['acme-box.cleo', AGENT],
    });
    expect(payload).toEqual({
      templateId: 'acme.team',
      name: 'Team',
      description: 'Two agents.',
      category: null,
      tags: ['a'],
      status: 'draft',
      version: 0,
      hasUnpublishedChanges: true,
      own: true,
      agentCount: 2,
      installCount: 0,
      createdAt: '2026-05-01T10:00:00.000Z',
      updatedAt: '2026-05-01T10:00:00.000Z',
      publishedAt: null,
      agents: [
        { templateAgentId: expect.stringMatching(/^ta-[0-9a-f]{8}$/), name: 'Cleo', handle: 'cleo' },
        { templateAgentId: expect.any(String), name: 'greeter', handle: 'greeter' },
      ],
    });
    const { agents } = (await call('get_template', { templateId: 'acme.team' })) as { agents: object[] };
    expect(agents[0]).toEqual({
      templateAgentId: expect.any(String),
      sourceAgentId: 'acme-box.cleo',
      name: 'Cleo',
      handle: 'cleo',
      description: '',
      soul: 'Ask @greeter for help, write to cleo@example.com, use `@decorator`.',
      provider: 'boxwright',
      model: null,
      temperature: null,
      stepLimit: null,
      tools: expect.objectContaining({ shell: true }),
      selfImprovement: { allowSoulEdit: true, allowToolInstall: true },
      setup: { required: true, prompt: 'Greet as @cleo.' },
      mcpServers: [expect.objectContaining({ name: 'docs', headers: { Authorization: 'Bearer ${DOCS}' } })],
      skills: [
        expect.objectContaining({
          slug: 'notes',
          files: [
            { path: 'a.txt', bytes: 22 },
            { path: 'b.bin', bytes: 3 },
            { path: 'run.py', bytes: 19 },
          ],
        }),
      ],
      schedules: [expect.objectContaining({ slug: 'daily', enabled: true })],
      triggers: [expect.objectContaining({ slug: 'hook', methods: ['POST'], enabled: true })],
      connectors: ['github'],
      capturedAt: '2026-05-01T10:00:00.000Z',
    });
    const json = JSON.stringify(agents);
    for (const hidden of ['tokenId', 'keyId', 'fireCount', 'lastRunAt', 'url":"https://agents']) {
      expect(json).not.toContain(hidden);
    }
  });

  test('the same name again gets another id; parts belong to their template', async () => {
    await createTeam();
    expect((await call('create_template', { name: 'Team' }))['templateId']).toBe('acme.team-2');
    const [part] = harness.api.all(AgentTemplateParts);
    expect(part?.metadata.ownerReferences).toMatchObject([{ kind: 'AgentTemplate', name: 'team' }]);
    expect(part?.metadata.name).toBe(`team.${stored()?.spec.draft.content}.0`);
  });

  test('an unknown agent, or one that is named twice: there is no template', async () => {
    expect((await call('create_template', { name: 'Team', agentIds: [AGENT, 'rival-box.spy'] }))['error']).toMatch(
      /^agent not found/,
    );
    expect((await call('create_template', { name: 'Team', agentIds: [AGENT, AGENT] }))['error']).toBe(
      'argument "agentIds" names an agent twice',
    );
    expect(harness.api.writes).toEqual([]);
  });

  test('agents with the same handle, which no install could tell apart, are refused', async () => {
    harness.seedBox('acme-lab', 'acme');
    harness.seedAgent('acme-lab', 'greeter');
    harness.api.clearRecords();
    expect(await call('create_template', { name: 'Team', agentIds: [AGENT, 'acme-lab.greeter'] })).toEqual({
      error:
        'agents acme-box.greeter and acme-lab.greeter have the same handle greeter: change that of one with update_agent first',
    });
    expect(harness.api.writes).toEqual([]);
  });

  test('when the content cannot be stored the template is taken back', async () => {
    seedWhole();
    harness.api.failNext({ verb: 'create', resource: 'agenttemplateparts', error: apiError(403, 'Forbidden') });
    expect(await call('create_template', { name: 'Team', agentIds: [AGENT] })).toHaveProperty('error');
    expect(stored()).toBeUndefined();
    expect(parts()).toEqual([]);
  });

  test('a large template is cut into pieces of at most 512 KiB and read back whole', async () => {
    harness.seedSkill('acme-box', 'greeter', 'big', { files: { 'a.bin': randomBytes(190_000).toString('base64') } });
    harness.seedSkill('acme-box', 'greeter', 'big2', { files: { 'a.bin': randomBytes(190_000).toString('base64') } });
    harness.seedSkill('acme-box', 'greeter', 'big3', { files: { 'a.bin': randomBytes(190_000).toString('base64') } });
    await call('create_template', { name: 'Team', agentIds: [AGENT] });
    const bytes = harness.api.all(AgentTemplateParts).map(({ spec }) => spec.bytes);
    expect(bytes.length).toBeGreaterThan(1);
    expect(Math.max(...bytes)).toBe(524_288);
    const { agents } = (await call('get_template', { templateId: 'acme.team' })) as { agents: { skills: object[] }[] };
    expect(agents[0]?.skills).toHaveLength(3);
  });
});

describe('editing', () => {
  test('update_template changes what is passed, in the draft only', async () => {
    harness.seedTemplate('acme', 'writers');
    const update = (args: object) => call('update_template', { templateId: 'acme.writers', ...args });
    expect(await update({ name: 'New', description: 'Writes texts.', category: null })).toEqual({
      templateId: 'acme.writers',
      updated: ['name', 'category'],
    });
    expect(await call('get_template', { templateId: 'acme.writers' })).toMatchObject({
      name: 'New',
      category: null,
      hasUnpublishedChanges: true,
      version: 1,
    });
    expect(await call('get_template', { templateId: 'acme.writers', version: 1 })).toMatchObject({
      name: 'Writers',
      category: 'office',
    });
    harness.api.clearRecords();
    expect((await update({ name: 'New' }))['updated']).toEqual([]);
    expect(harness.api.writes).toEqual([]);
  });

  test('add, update, recapture and remove an agent; old parts go, parts of versions stay', async () => {
    harness.seedTemplate('acme', 'team');
    const published = parts();
    const added = await call('add_template_agent', { templateId: 'acme.team', agentId: AGENT });
    const templateAgentId = added['templateAgentId'] as string;
    expect(added).toMatchObject({ sourceAgentId: AGENT, handle: 'greeter' });
    const again = await call('add_template_agent', { templateId: 'acme.team', agentId: AGENT });
    expect(again['error']).toContain(`use update_template_agent with templateAgentId ${templateAgentId}`);

    const update = (args: object) =>
      call('update_template_agent', { templateId: 'acme.team', templateAgentId, ...args });
    expect((await update({ soul: 'S', model: 'm', tools: { shell: false } }))['updated']).toEqual([
      'soul',
      'model',
      'tools',
    ]);
    await harness.call('update_agent', { agentId: AGENT, description: 'Captured again.' });
    expect((await update({ recapture: true, model: null, handle: 'hello' }))['updated']).toEqual([
      'handle',
      'description',
      'soul',
      'model',
      'tools',
    ]);
    expect((await update({ handle: 'writer' }))['error']).toContain('has an agent with handle writer already');
    expect((await update({ templateAgentId: 'ta-9' }))['error']).toBe(
      `template agent not found: no agent of the template has this templateAgentId; it has: ta-1 (writer), ${templateAgentId} (hello)`,
    );
    expect(parts()).toEqual([...published, `team.${stored()?.spec.draft.content}.0`]);

    const removed = await call('remove_template_agent', { templateId: 'acme.team', templateAgentId, confirm: true });
    expect(removed).toEqual({ templateId: 'acme.team', removed: templateAgentId });
    expect(stored()?.spec.draft.agents).toBe(1);
    expect(harness.api.peek(Agents, 'bw-acme-box/greeter')).toBeDefined();
  });

  test('an outputSchema takes the place of the one before, and one that no run could use is refused', async () => {
    harness.seedTemplate('acme', 'team');
    const added = await call('add_template_agent', { templateId: 'acme.team', agentId: AGENT });
    const { templateAgentId } = added as { templateAgentId: string };
    const update = (outputSchema: unknown) =>
      call('update_template_agent', { templateId: 'acme.team', templateAgentId, outputSchema });
    const shown = async () => {
      const { agents } = (await call('get_template', { templateId: 'acme.team' })) as {
        agents: Record<string, unknown>[];
      };
      return agents.find((agent) => agent['templateAgentId'] === templateAgentId)?.['outputSchema'];
    };
    await update({ type: 'object', properties: { a: {}, b: {} } });
    await update({ type: 'object', properties: { a: {} } });
    expect(await shown()).toEqual({ type: 'object', properties: { a: {} } });
    expect((await update({ $ref: '#' }))['error']).toContain('cannot be used: it refers to itself');
    await update(null);
    expect(await shown()).toBeUndefined();
    const spec = { outputSchema: { title: 'x'.repeat(1_000_000) } };
    harness.seedAgent('acme-box', 'large', { spec });
    const refused = await call('add_template_agent', { templateId: 'acme.team', agentId: 'acme-box.large' });
    expect(refused['error']).toMatch(/^outputSchema of agent acme-box.large cannot be used: it has \d+ bytes/);
  });

  test('recapture takes over what no record shows: approvals, budget, and how a trigger tells deliveries apart', async () => {
    const cleo = (spec: object) => harness.seedAgent('acme-box', 'cleo', { spec, metadata: { uid: 'uid-of-cleo' } });
    const hook = (spec: object) => harness.seedTrigger('acme-box', 'cleo', 'hook', { spec });
    cleo({});
    hook({});
    const created = await call('create_template', { name: 'Team', description: 'One.', agentIds: ['acme-box.cleo'] });
    const [{ templateAgentId }] = created['agents'] as [{ templateAgentId: string }];
    const recapture = async () =>
      (await call('update_template_agent', { templateId: 'acme.team', templateAgentId, recapture: true }))['updated'];
    cleo({ approvals: ['shell'], budget: [{ per: 'day', usd: '1' }] });
    hook({ dedupeHeader: 'X-GitHub-Delivery' });
    expect(await recapture()).toEqual(['triggers', 'approvals', 'budget']);
    expect(await recapture()).toEqual([]);
    cleo({});
    expect(await recapture()).toEqual(['approvals', 'budget']);
  });

  test('an agent whose source is gone can be edited but not captured again', async () => {
    harness.seedTemplate('acme', 'team');
    expect(
      await call('update_template_agent', { templateId: 'acme.team', templateAgentId: 'ta-1', recapture: true }),
    ).toEqual({ error: 'the source agent is gone: the template agent can be edited, but not captured again' });
  });

  test('edits at the same time are all kept, and leave no parts behind', async () => {
    harness.seedTemplate('acme', 'team', { published: false });
    const names = ['one', 'two', 'three'];
    for (const name of names) harness.seedAgent('acme-box', name);
    const answers = await Promise.all(
      names.map((name) => call('add_template_agent', { templateId: 'acme.team', agentId: `acme-box.${name}` })),
    );
    expect(answers.map(({ handle }) => handle)).toEqual(names);
    expect(stored()?.spec.draft.agents).toBe(4);
    expect(parts()).toEqual([`team.${stored()?.spec.draft.content}.0`]);
  });

  test('delete_template takes all contents with it', async () => {
    harness.seedTemplate('acme', 'team');
    await call('add_template_agent', { templateId: 'acme.team', agentId: AGENT });
    expect(parts()).toHaveLength(2);
    expect(await call('delete_template', { templateId: 'acme.team', confirm: true })).toEqual({ deleted: 'acme.team' });
    expect([stored(), parts()]).toEqual([undefined, []]);
    expect(await call('get_template', { templateId: 'acme.team' })).toEqual({ error: NOT_FOUND });
  });

  test('a template under GitOps is not changed', async () => {
    harness.seedTemplate('acme', 'team', { metadata: { annotations: { 'boxwright.dev/managed-by': 'gitops' } } });
    for (const tool of ['update_template', 'delete_template', 'publish_template', 'unpublish_template']) {
      const args = { templateId: 'acme.team', name: 'x', confirm: true };
      expect(await call(tool, args)).toEqual({ error: 'managed by GitOps: change it in its source' });
    }
    expect(harness.api.writes).toEqual([]);
  });
});

describe('validate and publish', () => {
  const check = (agent: object, spec: object = {}) => {
    harness.seedTemplate('acme', 'team', { agents: [agent], published: false, spec });
    return call('validate_template', { templateId: 'acme.team' });
  };
  const soul = (text: string) => ({ spec: { soul: text } });
  const withFiles = (files: Record<string, string>) => ({
    skills: [
      {
        slug: 's',
        spec: {
          name: 's',
          description: 'd',
          body: 'b',
          ...packedFiles(new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)]))),
        },
      },
    ],
  });

  test('names in code files of a skill are no mentions', async () =>
    expect(await check(withFiles({ 'run.py': '@ghost\n', 'a.ts': '@ghost\n' }))).toMatchObject({ valid: true }));

  test.each([
    [{ spec: { setup: { required: true } } }, 'agents.ta-1.setup', 'setup is required but has no prompt'],
    [
      { spec: { connectors: ['gitub'] } },
      'agents.ta-1.connectors.gitub',
      /^connector slug not in the catalog: near ones: github/,
    ],
    [soul('Ask @ghost.'), 'agents.ta-1.soul', '@ghost is no agent of this template: add that agent or remove it'],
    [soul(`key ghp_${'a'.repeat(36)}`), 'agents.ta-1.soul', 'holds what looks like a GitHub token: remove it'],
    [soul('-----BEGIN RSA PRIVATE KEY-----'), 'agents.ta-1.soul', 'holds what looks like a private key: remove it'],
    [
      soul('postgres://u:hunter22@db/x'),
      'agents.ta-1.soul',
      'holds what looks like a password in an address: remove it',
    ],
    [
      {
        spec: {
          mcpServers: [
            { name: 'a', url: 'https://x.example', headers: [{ name: 'x', value: `sk-${'a'.repeat(30)}` }] },
          ],
        },
      },
      'agents.ta-1.mcpServers.a',
      'holds what looks like a key of a model vendor: remove it',
    ],
    [
      {
        triggers: [
          {
            slug: 'hook',
            spec: { name: 'hook', body: 'tell @ghost', description: '', methods: ['POST'], enabled: true },
          },
        ],
      },
      'agents.ta-1.triggers.hook.body',
      '@ghost is no agent of this template: add that agent or remove it',
    ],
    [
      withFiles({ 'how.md': 'Ask @ghost.' }),
      'agents.ta-1.skills.s.files.how.md',
      '@ghost is no agent of this template: add that agent or remove it',
    ],
    [
      withFiles({ 'run.py': `KEY = "ghp_${'a'.repeat(36)}"` }),
      'agents.ta-1.skills.s.files.run.py',
      'holds what looks like a GitHub token: remove it',
    ],
  ])('%j is a problem', async (agent, path, message) => {
    const result = await check(agent);
    expect(result).toMatchObject({ templateId: 'acme.team', valid: false });
    expect(result['problems']).toEqual([
      { path, message: typeof message === 'string' ? message : expect.stringMatching(message) },
    ]);
    const published = await call('publish_template', { templateId: 'acme.team' });
    expect(published['error']).toMatch(new RegExp(`^the template cannot be published: ${path}: `));
    expect(stored()?.spec.published).toEqual([]);
  });

  test.each([
    'I am @writer.',
    'mail a@ghost.org',
    '`@ghost`',
    '```\n@ghost\n```',
    '@types/node',
    'see @example.com',
    '@ghost()',
    '@Ghost',
  ])('text %j is no problem', async (text) =>
    expect(await check(soul(text))).toMatchObject({ valid: true, problems: [] }),
  );

  test('no agent and no description are problems', async () => {
    harness.seedTemplate('acme', 'team', { agents: [], published: false, spec: { description: '' } });
    const { problems } = (await call('validate_template', { templateId: 'acme.team' })) as { problems: object[] };
    expect(problems).toEqual([
      { path: 'description', message: 'the template has no description: set one with update_template' },
      { path: 'agents', message: 'the template has no agent: add one with add_template_agent' },
    ]);
  });

  test('warnings do not stand in the way', async () => {
    harness.seedBox('acme-box', 'acme', { status: { availableProviders: [] } });
    const result = await check({ spec: { provider: 'openai', connectors: ['github'] } });
    expect(result).toMatchObject({
      valid: true,
      warnings: [
        { path: 'agents.ta-1.model', message: expect.stringContaining('has a usable key for provider openai') },
        { path: 'agents.ta-1.setup', message: 'the agent needs credentials, but no setup tells whoever installs it' },
      ],
    });
  });

  test('versions are immutable; an unchanged draft keeps its version', async () => {
    harness.seedTemplate('acme', 'team', { published: false });
    const publish = () => call('publish_template', { templateId: 'acme.team' });
    const first = await publish();
    expect(first).toEqual({
      templateId: 'acme.team',
      status: 'published',
      version: 1,
      publishedAt: '2026-05-01T10:00:00.000Z',
    });
    harness.api.clearRecords();
    expect(await publish()).toEqual(first);
    expect(harness.api.writes).toEqual([]);
    const change = { templateId: 'acme.team', templateAgentId: 'ta-1', soul: 'Changed.' };
    await call('update_template_agent', change);
    expect(await call('get_template', { templateId: 'acme.team' })).toMatchObject({ hasUnpublishedChanges: true });
    const souls = async (version: number) => {
      const { agents } = (await call('get_template', { templateId: 'acme.team', version })) as {
        agents: { soul: string }[];
      };
      return agents.map(({ soul: text }) => text);
    };
    expect([await souls(1), await souls(0)]).toEqual([['You write.'], ['Changed.']]);
    expect(await publish()).toMatchObject({ version: 2 });
    expect([await souls(1), await souls(2)]).toEqual([['You write.'], ['Changed.']]);
    expect((await call('get_template', { templateId: 'acme.team', version: 9 }))['error']).toBe(
      'version not found: published versions are 1, 2',
    );
    expect(await call('unpublish_template', { templateId: 'acme.team' })).toEqual({
      templateId: 'acme.team',
      status: 'draft',
      version: 2,
    });
    expect(await publish()).toMatchObject({ version: 2, status: 'published' });
  });
});

describe('evals that a template demands', () => {
  const templateId = 'acme.team';
  const publish = () => call('publish_template', { templateId });
  const refused = async () => String((await publish())['error']);
  /** As the controller of evals takes it of the agent. */
  const content = (agent = 'cleo') =>
    contentOf(
      { api: harness.api, skills: harness.api.informer(controllerSkillInformer) },
      { namespace: 'bw-acme-box', name: agent },
      new AbortController().signal,
    );

  function seedEval(status: NonNullable<AgentEval['status']>, spec: object = {}, box = 'acme-box'): void {
    const hello = { name: 'hello', message: 'Hi.', assertions: [{ contains: 'Hi' }] };
    harness.api.seed(AgentEvals, {
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'AgentEval',
      metadata: { namespace: `bw-${box}`, name: 'greets', generation: 3 },
      spec: AgentEvalSpec.parse({ agent: 'cleo', cases: [hello], ...spec }),
      status,
    });
  }

  const passed = async () => ({
    phase: 'passed' as const,
    generation: 3,
    total: 1,
    passed: 1,
    content: await content(),
  });

  beforeEach(async () => {
    await createTeam();
    await call('update_template', { templateId, requiredEvals: ['acme-box.greets'] });
  });

  test('hold it back until they have passed for what is published', async () => {
    expect(await call('get_template', { templateId })).toMatchObject({ requiredEvals: ['acme-box.greets'] });
    expect(await refused()).toMatch(
      /^the template cannot be published: requiredEvals\.acme-box\.greets: there is no such/,
    );
    seedEval({ phase: 'failed', generation: 3, total: 2, passed: 1 });
    expect(await refused()).toContain('it has not passed: 1 of 2 cases did');
    seedEval({ ...(await passed()), phase: 'running' });
    expect(await refused()).toContain('it has not ended');
    seedEval({ ...(await passed()), generation: 2 });
    expect(await refused()).toContain('it has not ended');
    seedEval({ phase: 'passed', generation: 3 });
    expect(await refused()).toContain('the agent was changed while it ran: run it again');
    expect(stored()?.spec.published).toEqual([]);

    seedEval(await passed());
    expect(await call('validate_template', { templateId })).toMatchObject({ valid: true, problems: [] });
    expect(await publish()).toMatchObject({ status: 'published', version: 1 });
    expect(await call('get_template', { templateId }, OTHER_KEY)).not.toHaveProperty('requiredEvals');
  });

  test('say nothing about a draft or a skill that is another one', async () => {
    seedEval(await passed());
    const { agents } = (await call('get_template', { templateId })) as { agents: { templateAgentId: string }[] };
    const { templateAgentId } = agents[0] ?? {};
    await call('update_template_agent', { templateId, templateAgentId, soul: 'Be rude.' });
    expect(await refused()).toContain('it passed for other settings or skills of agent cleo than the template has');

    await call('update_template_agent', { templateId, templateAgentId, recapture: true });
    expect(await call('validate_template', { templateId })).toMatchObject({ valid: true });
    harness.seedSkill('acme-box', 'cleo', 'notes', { spec: { description: 'New.', body: 'Tell nobody.' } });
    await call('update_template_agent', { templateId, templateAgentId, recapture: true });
    expect(await refused()).toContain('it passed for other settings or skills');
  });

  test.each([
    [{ agent: 'other' }, 'it is about agent other, which is not in the template'],
    [{ models: [{ provider: 'openai', name: 'gpt-5.5' }] }, 'its spec.models has not the model of the agent'],
    [
      { cases: [{ name: 'a', message: 'Hi.', assertions: [{ contains: 'a' }], recording: { configMap: 'a' } }] },
      'it has a case with a recording',
    ],
  ])('of %j do not count', async (spec, why) => {
    seedEval(await passed(), spec);
    expect(await refused()).toContain(why);
  });

  test('of another workspace are unknown, and a demand can be taken back', async () => {
    seedEval(await passed(), {}, 'rival-box');
    await call('update_template', { templateId, requiredEvals: ['rival-box.greets', 'nonsense'] });
    const { problems } = (await call('validate_template', { templateId })) as { problems: object[] };
    expect(problems).toHaveLength(2);
    await call('update_template', { templateId, requiredEvals: [] });
    expect(await publish()).toMatchObject({ status: 'published' });
  });
});

describe('other workspaces', () => {
  const list = async (args: object, key = KEY) =>
    ((await call('list_templates', args, key))['templates'] as { templateId: string }[]).map(
      ({ templateId }) => templateId,
    );

  test('see what is published, without what is private', async () => {
    harness.seedTemplate('acme', 'team', {
      agents: [
        templateAgent({
          spec: {
            setup: { required: true, prompt: 'secret prompt' },
            mcpServers: [{ name: 'a', url: 'https://x.example', headers: [{ name: 'x', value: 'private' }] }],
          } as never,
          skills: [{ slug: 's', spec: { name: 's', description: 'd', body: 'private body', files: [] } }],
        }),
      ],
    });
    const payload = await call('get_template', { templateId: 'acme.team' }, OTHER_KEY);
    expect(payload).toMatchObject({ own: false, status: 'published', hasUnpublishedChanges: false });
    expect(payload['agents']).toMatchObject([
      {
        soul: null,
        sourceAgentId: null,
        setup: { required: true, prompt: null },
        skills: [{ slug: 's', body: null }],
        mcpServers: [{ name: 'a', headers: {} }],
      },
    ]);
    expect(JSON.stringify(payload)).not.toMatch(/private|secret prompt|You write/);
  });

  test('a draft answers like an unknown one, and nothing of another workspace can be changed', async () => {
    harness.seedTemplate('acme', 'hidden', { published: false });
    harness.seedTemplate('acme', 'team');
    harness.api.clearRecords();
    for (const tool of TEMPLATE_TOOLS.filter((name) => !['list_templates', 'create_template'].includes(name))) {
      const args = { templateAgentId: 'ta-1', agentId: 'rival-box.spy', name: 'x', confirm: true };
      for (const templateId of ['acme.hidden', 'acme.nothing', 'nowhere.team', '../team', 'a.b.c']) {
        expect(await call(tool, { ...args, templateId }, OTHER_KEY)).toEqual({ error: NOT_FOUND });
      }
      if (['get_template', 'install_template'].includes(tool)) continue;
      expect(await call(tool, { ...args, templateId: 'acme.team' }, OTHER_KEY)).toEqual({
        error: 'this template belongs to another workspace: it can be installed, not changed',
      });
    }
    expect(harness.requests()).toEqual([]);
    expect((await call('get_template', { templateId: 'acme.team', version: 0 }, OTHER_KEY))['error']).toBe(
      'version not found: published versions are 1',
    );
  });

  test('list_templates knows own, published and all', async () => {
    harness.seedTemplate('acme', 'draft', { published: false });
    await harness.clock.advance(1_000);
    harness.seedTemplate('acme', 'shown');
    await harness.clock.advance(1_000);
    harness.seedTemplate('rival', 'theirs', { spec: { description: 'For sales.' } });
    harness.seedTemplate('rival', 'hidden', { published: false });
    expect(await list({})).toEqual(['acme.shown', 'acme.draft']);
    expect(await list({ scope: 'published' })).toEqual(['rival.theirs', 'acme.shown']);
    expect(await list({ scope: 'all' })).toEqual(['rival.theirs', 'acme.shown', 'acme.draft']);
    expect(await list({ scope: 'all', status: 'draft' })).toEqual(['acme.draft']);
    expect(await list({ scope: 'all', query: 'TEXTS writers' })).toHaveLength(3);
    expect(await list({ query: 'nothing' })).toEqual([]);
    expect(await list({ scope: 'all' }, OTHER_KEY)).toEqual(['rival.hidden', 'rival.theirs', 'acme.shown']);
  });
});

describe('install_template', () => {
  const install = (args: object = {}, key = KEY) => call('install_template', { templateId: 'acme.team', ...args }, key);

  test('another workspace gets all agents with new URLs, schedules off, and the setup under way', async () => {
    await createTeam();
    expect(await call('publish_template', { templateId: 'acme.team' })).toMatchObject({ version: 1 });
    harness.seedAgent('rival-box', 'cleo');
    const payload = await install({}, OTHER_KEY);
    expect(payload).toEqual({
      templateId: 'acme.team',
      version: 1,
      spaceId: 'rival-box',
      agents: [
        {
          templateAgentId: expect.any(String),
          agentId: 'rival-box.cleo-2',
          name: 'Cleo',
          handle: 'cleo-2',
          active: true,
          inactiveReason: null,
          connectors: [{ slug: 'github', name: 'GitHub', status: 'needs_auth' }],
          setupRunId: expect.stringMatching(/^cleo-2-[0-9a-z]{26}$/),
          setupSessionId: expect.any(String),
        },
        expect.objectContaining({ agentId: 'rival-box.greeter', setupRunId: null, setupSessionId: null }),
      ],
    });
    const agent = harness.api.peek(Agents, 'bw-rival-box/cleo-2');
    expect(agent?.spec.soul).toBe('Ask @greeter for help, write to cleo@example.com, use `@decorator`.');
    expect(agent?.metadata.annotations).toMatchObject({
      'boxwright.dev/template': 'acme.team@1',
      'boxwright.dev/requested-by': OTHER_KEY.slice(0, 11),
    });
    const [run] = harness.api.all(AgentRuns).filter(({ spec }) => spec.agent === 'cleo-2');
    expect(run?.spec).toMatchObject({ message: 'Greet as @cleo-2.', trigger: { origin: 'api' } });
    expect(harness.api.peek(AgentSchedules, 'bw-rival-box/cleo-2.daily')?.spec).toMatchObject({
      agent: 'cleo-2',
      enabled: false,
    });
    const skill = harness.api.peek(AgentSkills, 'bw-rival-box/cleo-2.notes')?.spec;
    expect(skill).toMatchObject({ agent: 'cleo-2', description: 'For @cleo-2.', body: 'Tell @cleo-2.' });
    const files = skill === undefined ? [] : [...unpackFiles(skill)].map(([path, file]) => [path, file.toString()]);
    expect(files).toEqual([
      ['a.txt', 'Ask @cleo-2 or @greeter.'],
      ['b.bin', '\u0000@\u0001'],
      ['run.py', '@cleo\ndef f(): pass'],
    ]);
    const trigger = harness.api.peek(AgentTriggers, 'bw-rival-box/cleo-2.hook');
    expect(trigger?.spec).toMatchObject({
      agent: 'cleo-2',
      enabled: true,
      keyId: 'k1',
      dedupeHeader: 'X-GitHub-Delivery',
      verify: { scheme: 'github', key: 'repo' },
    });
    expect(trigger?.spec.tokenId).toMatch(/^[0-9a-f]{32}$/);
    expect(trigger?.spec.tokenId).not.toBe(harness.api.peek(AgentTriggers, 'bw-acme-box/cleo.hook')?.spec.tokenId);
    expect(await call('get_template', { templateId: 'acme.team' })).toMatchObject({ installCount: 1 });
  });

  test('the setup of an agent without a slot waits in the queue', async () => {
    await createTeam();
    Object.assign(harness.agentWaiter, {
      wait: () =>
        Promise.resolve({
          ...harness.caches.Agent.get('bw-acme-box/greeter'),
          active: false,
          inactiveReason: 'no slot',
        }),
    });
    const { agents } = (await install({ version: 0 })) as { agents: Record<string, unknown>[] };
    expect(agents[0]).toMatchObject({ active: false, inactiveReason: 'no slot' });
    expect(agents[0]?.['setupRunId']).toEqual(expect.any(String));
  });

  test('a handle that somebody takes meanwhile gets the next number, in the prompts too', async () => {
    await createTeam();
    harness.api.failNext({
      verb: 'create',
      resource: 'agents',
      key: 'bw-acme-box/cleo-2',
      error: apiError(409, 'AlreadyExists'),
    });
    const { agents } = (await install({ version: 0 })) as { agents: { handle: string }[] };
    expect(agents.map(({ handle }) => handle)).toEqual(['cleo-3', 'greeter-2']);
    expect(harness.api.peek(Agents, 'bw-acme-box/cleo-3')?.spec.soul).toContain('@greeter-2');
    expect(harness.api.peek(Agents, 'bw-acme-box/cleo-2')).toBeUndefined();
  });

  test('says what is missing', async () => {
    harness.seedTemplate('acme', 'team', { published: false });
    expect(await install()).toEqual({
      error: 'the template has no published version: publish it, or pass version 0 for its draft',
    });
    harness.seedBox('acme-two', 'acme');
    expect(await install({ version: 0 })).toEqual({
      error: 'this workspace has several Boxes: pass spaceId, one of: acme-box, acme-two',
    });
  });
});

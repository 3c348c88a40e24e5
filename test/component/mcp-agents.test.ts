/** Changing and deleting agents and triggers (spec 4.2, 4.2.3; reference docs of the tools). */
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { AgentTriggers } from '../../src/api/v1alpha1/agent-trigger.js';
import { KEY, McpHarness } from '../builders/mcp-harness.js';
import { apiError } from '../builders/recording-api.js';

const AGENT = 'acme-box.greeter';
const NOT_FOUND =
  'agent not found: there is no agent with this agentId in this workspace; list_agents shows the agents';
const FINALIZER = 'boxwright.dev/cleanup';

let harness: McpHarness;
beforeEach(() => {
  harness = new McpHarness();
});

const stored = () => harness.api.peek(Agents, 'bw-acme-box/greeter');
const update = (args: object) => harness.call('update_agent', { agentId: AGENT, ...args });

describe('update_agent', () => {
  test('changes the passed fields only, in one patch of the version that was read', async () => {
    const before = stored();
    const { payload } = await update({ soul: 'New', model: 'm', temperature: 0.3, stepLimit: 7 });
    expect(payload).toEqual({ agentId: AGENT, updated: ['soul', 'model', 'temperature', 'stepLimit'], warnings: [] });
    expect(harness.api.writes).toEqual([
      {
        verb: 'patch',
        resource: 'agents',
        key: 'bw-acme-box/greeter',
        body: {
          metadata: {
            uid: before?.metadata.uid,
            resourceVersion: before?.metadata.resourceVersion,
            annotations: { 'boxwright.dev/requested-by': KEY.slice(0, 11) },
          },
          spec: { soul: 'New', model: 'm', temperature: 0.3, stepLimit: 7 },
        },
      },
    ]);
    expect(harness.barriers).toEqual([{ kind: 'Agent', resourceVersion: stored()?.metadata.resourceVersion }]);
  });

  test('how its model works is set, shown where it is set, and taken back', async () => {
    const set = { reasoning: 'high', maxOutputTokens: 4000, fallbackModels: ['openai/gpt-5.5'], compactAt: 0.5 };
    expect((await update(set)).payload['updated']).toEqual(Object.keys(set));
    expect((await harness.call('get_agent', { agentId: AGENT })).payload).toMatchObject(set);
    const { payload } = await update({ reasoning: null, maxOutputTokens: null });
    expect(payload['updated']).toEqual(['reasoning', 'maxOutputTokens']);
    const shown = (await harness.call('get_agent', { agentId: AGENT })).payload;
    expect(Object.keys(shown)).not.toContain('reasoning');
  });

  test('an outputSchema takes the place of the one before, member by member', async () => {
    const first = { type: 'object', properties: { a: { type: 'string' }, b: { enum: ['x'] } }, required: ['a'] };
    const second = { type: 'object', properties: { a: { type: 'number' } } };
    expect((await update({ outputSchema: first })).payload['updated']).toEqual(['outputSchema']);
    expect((await update({ outputSchema: first })).payload['updated']).toEqual([]);
    expect((await update({ outputSchema: second })).payload['updated']).toEqual(['outputSchema']);
    expect(stored()?.spec.outputSchema).toEqual(second);
    expect((await harness.call('get_agent', { agentId: AGENT })).payload['outputSchema']).toEqual(second);
    await update({ outputSchema: null });
    expect(stored()?.spec).not.toHaveProperty('outputSchema');
  });

  test.each([
    [{ if: {} }, /^argument "outputSchema" cannot be used: \/if is not supported$/],
    [{ properties: { a: { const: null } } }, /^argument "outputSchema" has null at \/properties\/a\/const: say type/],
    ['text', /^argument "outputSchema" must be an object/],
  ])('an outputSchema that no run could use is refused (%#)', async (outputSchema, error) => {
    expect((await update({ outputSchema })).payload).toEqual({ error: expect.stringMatching(error) });
    expect((await harness.call('create_agent', { name: 'A', outputSchema })).payload).toEqual({
      error: expect.stringMatching(error),
    });
    expect(harness.api.writes).toEqual([]);
  });

  test.each([
    ['large', { title: 'x'.repeat(1_000_000) }, /^it has \d+ bytes/],
    ['deep', nested(1_500), /^it (nests deeper|has \d+ bytes)/],
  ])('a manifest with a %s outputSchema spoils no tool', async (_what, outputSchema, problem) => {
    await harness.api.patch(
      Agents,
      { namespace: 'bw-acme-box', name: 'greeter' },
      { spec: { outputSchema } },
      { type: 'merge' },
    );
    const shown = await harness.call('get_agent', { agentId: AGENT });
    expect(shown.payload['outputSchema']).toEqual({ problem: expect.stringMatching(problem) });
    expect((await update({ soul: 'New' })).payload['updated']).toEqual(['soul']);
    expect((await update({ outputSchema: { type: 'object' } })).payload['updated']).toEqual(['outputSchema']);
    expect(stored()?.spec.outputSchema).toEqual({ type: 'object' });
  });

  test('null sets model, temperature and stepLimit back, and empties the description', async () => {
    await update({ model: 'm', temperature: 0, stepLimit: 7, description: 'd' });
    const { payload } = await update({ model: null, temperature: null, stepLimit: null, description: null });
    expect(payload['updated']).toEqual(['description', 'model', 'temperature', 'stepLimit']);
    expect(stored()?.spec).not.toHaveProperty('model');
    expect((await harness.call('get_agent', { agentId: AGENT })).payload).toMatchObject({
      model: null,
      temperature: null,
      stepLimit: null,
      description: '',
    });
  });

  test('null of any other field is "not given"', async () => {
    await update({ soul: 's', setup: { required: true, prompt: 'p' } });
    harness.api.clearRecords();
    const { payload } = await update({
      name: null,
      handle: null,
      soul: null,
      provider: null,
      tools: null,
      setup: null,
    });
    expect(payload['updated']).toEqual([]);
    expect(harness.requests()).toEqual(['get agents']);
  });

  test('tools and selfImprovement merge by key', async () => {
    await update({ tools: { shell: false }, selfImprovement: { allowSoulEdit: false } });
    const { payload } = await update({ tools: { web: false }, selfImprovement: { allowToolInstall: false } });
    expect(payload['updated']).toEqual(['tools', 'selfImprovement']);
    expect(stored()?.spec.tools).toMatchObject({ shell: false, web: false, files: true });
    expect(stored()?.spec.selfImprovement).toEqual({ allowSoulEdit: false, allowToolInstall: false });
  });

  test('setup is replaced as a whole', async () => {
    await update({ setup: { required: true, prompt: 'p' } });
    await update({ setup: { required: false } });
    expect(stored()?.spec.setup).toEqual({ required: false });
  });

  test('values that are stored already are not updated and not written', async () => {
    await update({ soul: 's', tools: { shell: false }, setup: { required: true, prompt: 'p' }, handle: 'hello' });
    harness.api.clearRecords();
    const same = { soul: 's', tools: { shell: false }, setup: { required: true, prompt: 'p' }, handle: 'hello' };
    expect((await update({ ...same, name: 'greeter', model: null })).payload['updated']).toEqual([]);
    expect((await update({})).payload).toEqual({ agentId: AGENT, updated: [], warnings: [] });
    expect(harness.api.writes).toEqual([]);
  });

  test('name changes the display name only; handle is changed by handle', async () => {
    await update({ name: 'Other name' });
    await update({ handle: 'helper' });
    expect((await harness.call('get_agent', { agentId: AGENT })).payload).toMatchObject({
      id: AGENT,
      name: 'Other name',
      handle: 'helper',
    });
  });

  test('a handle that another agent of the workspace has is refused; one of another workspace is free', async () => {
    harness.seedBox('acme-two', 'acme');
    harness.seedAgent('acme-two', 'helper');
    expect((await update({ handle: 'helper' })).payload).toEqual({
      error: 'argument "handle" is taken by agent acme-two.helper: choose another, or change that agent first',
    });
    expect(harness.api.writes).toEqual([]);
    expect((await update({ handle: 'spy' })).payload['updated']).toEqual(['handle']);
  });

  test.each([
    [{ handle: 'No Handle' }, /^argument "handle" must have a-z/],
    [{ handle: 'a--b' }, /^argument "handle" must have a-z/],
    [{ handle: 'x'.repeat(37) }, /^argument "handle" must have a-z/],
    [{ spaceId: 'acme-box' }, /^argument "spaceId" is not possible here: an agent stays in its Box$/],
    [{ connectors: [] }, /^argument "connectors" is not possible here: use attach_connector and detach_connector$/],
    [{ tools: { shel: true } }, /^unknown key "shel" in argument "tools"; known are: shell, files/],
    [{ temperature: 2.1 }, /^argument "temperature" must be at most 2$/],
    [
      { compactAt: 0.9 },
      /^argument "compactAt".*must be a share of the window from 0.1 to 0.8, or 4000 tokens or more$/,
    ],
    [{ stepLimit: 0 }, /^argument "stepLimit" must be at least 1$/],
    [{ model: 5 }, /^argument "model" must be a string, got a number$/],
    [{ name: '' }, /^argument "name" must have at least 1 character$/],
    [{ setup: { required: true } }, /^argument "setup": setup.prompt is required when setup.required is true$/],
  ])('%j is refused and writes nothing', async (args, error) => {
    const answer = await update(args);
    expect(answer.isError).toBe(true);
    expect(answer.payload['error']).toMatch(error);
    expect(harness.requests()).toEqual([]);
  });

  test('two updates at the same time: neither loses a field', async () => {
    const answers = await Promise.all([
      update({ soul: 'one' }),
      update({ description: 'two' }),
      update({ tools: { shell: false } }),
      update({ tools: { web: false } }),
    ]);
    expect(answers.map(({ payload }) => payload['updated'])).toEqual([['soul'], ['description'], ['tools'], ['tools']]);
    expect(stored()?.spec).toMatchObject({ soul: 'one', description: 'two', tools: { shell: false, web: false } });
  });

  test('somebody who is always faster ends it with an error, not a loop', async () => {
    harness.api.failNext({ verb: 'patch', error: apiError(409, 'Conflict'), times: 100 });
    expect((await update({ soul: 'x' })).payload).toEqual({
      error: 'somebody else changed the object at the same time: try again',
    });
    expect(harness.api.writes).toHaveLength(8);
  });

  test('an agent that was deleted and made again meanwhile is not touched', async () => {
    harness.api.failNext({ verb: 'patch', error: apiError(409, 'Conflict') });
    const call = update({ soul: 'x' });
    harness.api.vanish(Agents, 'bw-acme-box/greeter');
    expect((await call).payload).toEqual({ error: NOT_FOUND });
  });

  test('an agent under GitOps is refused', async () => {
    harness.seedAgent('acme-box', 'greeter', { metadata: { annotations: { 'boxwright.dev/managed-by': 'gitops' } } });
    for (const tool of ['update_agent', 'delete_agent', 'set_mcp_servers']) {
      const args = { agentId: AGENT, soul: 'x', servers: [], confirm: true };
      expect((await harness.call(tool, args)).payload).toEqual({
        error: 'managed by GitOps: change it in its source',
      });
    }
    expect(harness.api.writes).toEqual([]);
  });

  test('warns of a provider without a key and of a model that nobody knows', async () => {
    harness.seedBox('acme-box', 'acme', { status: { availableProviders: [] } });
    expect((await update({ provider: 'openai', model: 'gpt-99' })).payload['warnings']).toEqual([
      'neither Box acme-box nor the installation has a usable key for provider openai: runs will end with the error ModelNotConfigured; list_models says what to do',
      'model is not a known one of provider openai: list_models shows the known ones; its price is unknown',
    ]);
    expect((await update({ model: 'gpt-4.1' })).payload['warnings']).toHaveLength(1);
    harness.seedBox('acme-box', 'acme', { status: { availableProviders: ['openai'] } });
    expect((await update({ model: 'gpt-4.1' })).payload['warnings']).toEqual([]);
    harness.controllerSays({ active: true });
    expect((await harness.call('create_agent', { name: 'Second', provider: 'openai' })).payload['warnings']).toEqual(
      [],
    );
    expect((await harness.call('create_agent', { name: 'Third', provider: 'xai' })).payload['warnings']).toEqual([
      'neither Box acme-box nor the installation has a usable key for provider xai: runs will end with the error ModelNotConfigured; list_models says what to do',
    ]);
  });
});

describe('delete_agent', () => {
  const gone = async () => {
    for (const tool of ['get_agent', 'list_runs', 'list_triggers', 'list_skills', 'update_agent', 'send_message']) {
      expect((await harness.call(tool, { agentId: AGENT, message: 'x' })).payload).toEqual({ error: NOT_FOUND });
    }
    expect((await harness.call('list_agents')).payload).toEqual({ agents: [] });
  };

  test('marks the agent and answers when it is gone for every tool; the rest is the controller’s', async () => {
    harness.seedAgent('acme-box', 'greeter', { metadata: { finalizers: [FINALIZER] } });
    harness.seedTrigger('acme-box', 'greeter', 'hook');
    const { uid } = stored()?.metadata ?? {};
    harness.api.clearRecords();
    expect((await harness.call('delete_agent', { agentId: AGENT, confirm: true })).payload).toEqual({ deleted: AGENT });
    expect(harness.api.writes).toEqual([
      {
        verb: 'delete',
        resource: 'agents',
        key: 'bw-acme-box/greeter',
        body: { uid, propagationPolicy: 'Background' },
      },
    ]);
    expect(harness.barriers).toEqual([{ kind: 'Agent', gone: { key: 'bw-acme-box/greeter', uid } }]);
    await gone();
  });

  test('needs confirm, which the error says', async () => {
    for (const args of [{}, { confirm: false }, { confirm: 'true' }]) {
      expect((await harness.call('delete_agent', { agentId: AGENT, ...args })).payload).toEqual({
        error:
          'delete_agent cannot be undone. Ask the account owner; once they have agreed, call again with confirm: true.',
      });
    }
    expect(harness.requests()).toEqual([]);
  });

  test('says when not every API pod has confirmed', async () => {
    harness.barrierPasses = false;
    expect((await harness.call('delete_agent', { agentId: AGENT, confirm: true })).payload).toEqual({
      deleted: AGENT,
      note: expect.stringContaining('not every API pod has confirmed'),
    });
  });
});

describe('delete_trigger', () => {
  const remove = (slug: string) => harness.call('delete_trigger', { agentId: AGENT, slug, confirm: true });

  test('removes it; a second call does not find it', async () => {
    harness.seedTrigger('acme-box', 'greeter', 'hook');
    expect((await remove('hook')).payload).toEqual({ deleted: 'hook' });
    expect(harness.api.peek(AgentTriggers, 'bw-acme-box/greeter.hook')).toBeUndefined();
    expect(harness.barriers).toEqual([
      { kind: 'AgentTrigger', gone: { key: 'bw-acme-box/greeter.hook', uid: expect.any(String) } },
    ]);
    expect((await remove('hook')).payload).toEqual({
      error: 'trigger not found: this agent has no trigger with this slug; it has none',
    });
  });

  test('is refused under GitOps', async () => {
    harness.seedTrigger('acme-box', 'greeter', 'hook', {
      metadata: { annotations: { 'argocd.argoproj.io/tracking-id': 'x' } },
    });
    expect((await remove('hook')).payload).toEqual({ error: 'managed by GitOps: change it in its source' });
    expect(harness.api.writes).toEqual([]);
  });
});

function nested(depth: number): Record<string, unknown> {
  let schema: Record<string, unknown> = {};
  for (let i = 0; i < depth; i++) schema = { items: schema };
  return schema;
}

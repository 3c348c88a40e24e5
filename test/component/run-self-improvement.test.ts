/** What an agent changes about itself, through the real runner and the real gateway (spec 2). */
import { AgentSkills } from '../../src/api/v1alpha1/agent-skill.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { unpackFiles } from '../../src/skills/archive.js';
import { NAMESPACE } from '../builders/gateway-world.js';
import { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';
import { apiError } from '../builders/recording-api.js';

const temporary = temporaryDirectories();
let pods: PodWorld;
const start = async (agent: Record<string, unknown> = {}, box: Record<string, unknown> = {}) => {
  pods = await PodWorld.start(temporary, { agent, box });
};
afterEach(() => pods.close());

const HOOK = { trigger: { origin: 'trigger' as const, name: 'hook', uid: 'u' } };
const agent = () => pods.world.api.peek(Agents, `${NAMESPACE}/helper`);
const skills = () => pods.world.api.all(AgentSkills);
const edit = (soul: string) => `/tool edit_soul ${JSON.stringify({ soul })}`;
const install = (more: object = {}) =>
  `/tool install_skill ${JSON.stringify({ slug: 'review', name: 'Review', description: 'Reviews.', body: '# How', ...more })}`;

describe('edit_soul', () => {
  test('replaces the soul, and keeps the one before with its run', async () => {
    await start();
    await pods.run('helper-1', { message: `${edit('Be kind.')}\n${edit('Be kind and brief.')}` });
    expect((await pods.calls('helper-1')).map(({ isError }) => isError)).toEqual([false, false]);
    expect(agent()).toMatchObject({
      metadata: { annotations: { 'boxwright.dev/requested-by': 'run:helper-1' } },
      spec: { soul: 'Be kind and brief.', name: 'Helper' },
      status: {
        revisions: [
          { run: 'helper-1', soul: 'Be kind.', at: expect.any(String) },
          { run: 'helper-1', soul: 'Be brief.', at: expect.any(String) },
        ],
      },
    });
    const { json } = await pods.world.claim(pods.gateway, pods.world.addRun('helper-2'));
    expect(json['agent']).toMatchObject({ soul: 'Be kind and brief.' });
  });

  test('the same text again is no revision', async () => {
    await start();
    await pods.run('helper-1', { message: edit('Be brief.') });
    expect(agent()?.status?.revisions).toBeUndefined();
    expect(pods.world.writes('agents')).toBe(0);
  });

  test('a change by somebody else in between is read again, and nothing of it is lost', async () => {
    await start();
    pods.world.api.failNext({ verb: 'patch', resource: 'agents', error: apiError(409, 'Conflict') });
    await pods.run('helper-1', { message: edit('Be kind.') });
    expect(agent()).toMatchObject({ spec: { soul: 'Be kind.' }, status: { revisions: [{ soul: 'Be brief.' }] } });
    expect(agent()?.status?.revisions).toHaveLength(1);
  });
});

describe('install_skill', () => {
  test('creates a skill that names its run, and never replaces one', async () => {
    await start();
    const files = [{ path: 'check.sh', content: 'echo ok' }];
    await pods.run('helper-1', { message: `${install({ files })}\n${install({ body: '# Other' })}` });
    expect(await pods.calls('helper-1')).toMatchObject([
      { isError: false, result: { slug: 'review' } },
      { isError: true, result: { error: expect.stringContaining('you have a skill review already') } },
    ]);
    const [skill] = skills();
    expect(skill).toMatchObject({
      metadata: {
        name: 'helper.review',
        labels: { 'boxwright.dev/agent': 'helper' },
        annotations: { 'boxwright.dev/requested-by': 'run:helper-1' },
      },
      spec: { agent: 'helper', name: 'Review', description: 'Reviews.', body: '# How' },
    });
    expect(skill === undefined ? undefined : unpackFiles(skill.spec).get('check.sh')?.toString()).toBe('echo ok');
  });

  test.each([
    [{ files: [{ path: '../x', content: '' }] }, /the path "..\/x" must not have/],
    [{ body: '---\nname: x\n---\n# How' }, /must not begin with front matter/],
    [{ slug: 'Not A Slug' }, /^The input does not fit install_skill: slug is "Not A Slug"/],
  ])('%j is refused', async (more, error) => {
    await start();
    await pods.run('helper-1', { message: install(more) });
    expect(await pods.calls('helper-1')).toMatchObject([
      { isError: true, result: { error: expect.stringMatching(error) } },
    ]);
    expect(skills()).toEqual([]);
  });
});

describe('install_mcp', () => {
  const add = (more: object) => `/tool install_mcp ${JSON.stringify({ name: 'search', ...more })}`;
  const http = { url: 'https://mcp.example.com/mcp', headers: { Authorization: 'Bearer ${TOKEN}' } };
  const open = { egress: { mode: 'internet' } };
  const refused = async (
    more: object,
    agentSpec: Record<string, unknown> = {},
    box: Record<string, unknown> = open,
  ) => {
    await start(agentSpec, box);
    await pods.run('helper-1', { message: add(more) });
    const [call] = await pods.calls('helper-1');
    expect([call?.isError, agent()?.spec.mcpServers, pods.world.writes('agents')]).toEqual([true, undefined, 0]);
    return JSON.stringify(call?.result);
  };

  test('adds a server that names its run, and never replaces one', async () => {
    await start({}, open);
    const program = add({ name: 'lint', transport: 'stdio', command: 'lint-mcp', args: ['--fast'], env: { A: '1' } });
    await pods.run('helper-1', {
      message: `${add(http)}\n${add(http)}\n${add({ url: 'https://other.example' })}\n${program}`,
    });
    expect(await pods.calls('helper-1')).toMatchObject([
      { isError: false, result: { name: 'search' } },
      { isError: false },
      { isError: true, result: { error: expect.stringContaining('you have an MCP server search already') } },
      { isError: false, result: { name: 'lint' } },
    ]);
    expect(agent()).toMatchObject({
      metadata: { annotations: { 'boxwright.dev/requested-by': 'run:helper-1' } },
      spec: {
        mcpServers: [
          {
            name: 'search',
            transport: 'http',
            url: 'https://mcp.example.com/mcp',
            headers: [{ name: 'Authorization', value: 'Bearer ${TOKEN}' }],
            enabled: true,
          },
          { name: 'lint', transport: 'stdio', command: 'lint-mcp', args: ['--fast'], env: [{ name: 'A', value: '1' }] },
        ],
      },
      status: {
        installedServers: [
          { name: 'lint', run: 'helper-1', at: expect.any(String) },
          { name: 'search', run: 'helper-1', at: expect.any(String) },
        ],
      },
    });
    expect(pods.world.writes('agents')).toBe(2);
  });

  test('a change by somebody else in between is read again', async () => {
    await start({}, open);
    pods.world.api.failNext({ verb: 'patch', resource: 'agents', error: apiError(409, 'Conflict') });
    await pods.run('helper-1', { message: add(http) });
    expect(agent()?.spec.mcpServers).toHaveLength(1);
    expect(agent()?.status?.installedServers).toHaveLength(1);
  });

  test('takes no secret, only a reference to one', async () => {
    expect(await refused({ ...http, headers: { Authorization: 'Bearer abc' } })).toContain(
      'must hold a reference such as ${NAME}',
    );
  });

  test('takes no plain or private scheme', async () => {
    expect(await refused({ url: 'http://mcp.example.com' })).toContain('must be an address that begins with https://');
  });

  test('takes plain http where an operator of the Box allows it, and only there', async () => {
    const trustedHosts = [{ host: 'mcp.corp.internal:8080', http: true }];
    await start({}, { egress: { mode: 'internet', trustedHosts } });
    await pods.run('helper-1', { message: add({ url: 'http://mcp.corp.internal:8081/mcp' }) });
    expect(agent()?.spec.mcpServers).toBeUndefined();
    await pods.run('helper-2', { message: add({ url: 'http://mcp.corp.internal:8080/mcp' }) });
    expect(agent()?.spec.mcpServers).toMatchObject([{ url: 'http://mcp.corp.internal:8080/mcp' }]);
  });

  test('reaches no further than the runs of its Box', async () => {
    expect(await refused(http, {}, {})).toContain('runs of this Box reach no network (spec.egress.mode: none)');
  });

  test('is no way around a shell that is off', async () => {
    const program = { transport: 'stdio', command: 'sh' };
    expect(await refused(program, { tools: { shell: false } })).toContain('you have no shell');
  });

  test('has a limit', async () => {
    const servers = Array.from({ length: 20 }, (_, index) => ({ name: `s${index}`, url: 'https://a.example' }));
    await start({ mcpServers: servers }, open);
    await pods.run('helper-1', { message: add(http) });
    expect(await pods.calls('helper-1')).toMatchObject([
      { isError: true, result: { error: 'you have 20 MCP servers, which is the limit' } },
    ]);
  });

  test('leaves room in the agent for what others write into its status', async () => {
    const args = Array.from({ length: 60 }, () => 'x'.repeat(4096));
    const servers = Array.from({ length: 4 }, (_, n) => ({ name: `s${n}`, transport: 'stdio', command: 'sh', args }));
    await start({ mcpServers: servers }, open);
    await pods.run('helper-1', { message: add({ transport: 'stdio', command: 'sh', args: args.slice(0, 20) }) });
    expect(await pods.calls('helper-1')).toMatchObject([
      { isError: true, result: { error: expect.stringMatching(/at most 1048576 \(1 MiB\) are possible$/) } },
    ]);
    expect(agent()?.spec.mcpServers).toHaveLength(4);
  });
});

test('flags that are off take the tools away, and so does a repository that owns the agent', async () => {
  await start({ selfImprovement: { allowSoulEdit: false, allowToolInstall: false } });
  await pods.run('helper-1', { message: edit('Be kind.') });
  expect(pods.world.run('helper-1').status?.output).toContain('the tool edit_soul is not there');
  const known = agent();
  if (known === undefined) throw new Error('there is no agent');
  pods.world.api.seed(Agents, {
    ...known,
    metadata: { ...known.metadata, annotations: { 'boxwright.dev/managed-by': 'gitops' } },
    spec: { ...known.spec, selfImprovement: { allowSoulEdit: true, allowToolInstall: true } },
  });
  await pods.run('helper-2', { message: install() });
  expect(pods.world.run('helper-2').status?.output).toContain('the tool install_skill is not there');
  expect([agent()?.spec.soul, skills()]).toEqual(['Be brief.', []]);
});

test('what a run from outside wants to change is a proposal; a person approves it in the session', async () => {
  await start();
  const session = { sessionId: 's-1' };
  const proposed = await pods.run('helper-1', { ...HOOK, ...session, message: `${edit('Obey me.')}\n/say Done.` });
  expect(proposed.status?.pending).toMatchObject({
    kind: 'approval',
    tool: 'edit_soul',
    input: '{"soul":"Obey me."}',
  });
  expect(agent()?.spec.soul).toBe('Be brief.');
  const approved = await pods.run('helper-2', { ...session, actor: 'bw_12345678', message: 'approve' }, 'helper-1');
  expect(approved.status).toMatchObject({ untrusted: true, output: 'Done.' });
  expect(agent()).toMatchObject({ spec: { soul: 'Obey me.' }, status: { revisions: [{ soul: 'Be brief.' }] } });
});

/** Connectors, MCP servers and models as the tools show and set them (spec 2; reference docs of the tools). */
import { execFileSync } from 'node:child_process';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { Connectors } from '../../src/api/v1alpha1/connector.js';
import { ConfigMaps } from '../../src/kube/core-types.js';
import { McpHarness } from '../builders/mcp-harness.js';

const AGENT = 'acme-box.greeter';

let harness: McpHarness;
beforeEach(() => {
  harness = new McpHarness();
  harness.seedConnectors();
  harness.api.clearRecords();
});

const stored = () => harness.api.peek(Agents, 'bw-acme-box/greeter');
const attach = (slug: string) => harness.call('attach_connector', { agentId: AGENT, slug });
const connectors = async () => (await harness.call('list_agent_connectors', { agentId: AGENT })).payload;

describe('search_connectors', () => {
  test('shows what a connector is and which credentials it needs', async () => {
    expect((await harness.call('search_connectors', { query: 'HUB' })).payload).toEqual({
      connectors: [
        {
          slug: 'github',
          name: 'GitHub',
          category: 'development',
          description: expect.any(String),
          auth: 'apiKey',
          secrets: ['GITHUB_TOKEN'],
        },
        expect.objectContaining({ slug: 'deepwiki', auth: 'none', secrets: [] }),
      ],
    });
  });

  test.each([
    [{}, ['deepwiki', 'github']],
    [{ category: 'Documentation' }, ['deepwiki']],
    [{ category: 'nope' }, []],
    [{ query: 'pull requests' }, ['github']],
    [{ query: 'nothing like it' }, []],
    [{ limit: 1 }, ['deepwiki']],
  ])('%j finds %j', async (args, slugs) => {
    const { payload } = await harness.call('search_connectors', args);
    expect((payload['connectors'] as { slug: string }[]).map(({ slug }) => slug)).toEqual(slugs);
  });
});

describe('attach and detach', () => {
  test('a connector without credentials is active at once', async () => {
    expect((await attach('deepwiki')).payload).toEqual({
      slug: 'deepwiki',
      name: 'DeepWiki',
      status: 'active',
      missingSecrets: [],
      nextStep: null,
    });
    expect(stored()?.spec.connectors).toEqual(['deepwiki']);
  });

  test('one that needs a credential says which, and the command that gives it', async () => {
    const { payload } = await attach('github');
    expect(payload).toEqual({
      slug: 'github',
      name: 'GitHub',
      status: 'needs_auth',
      missingSecrets: ['GITHUB_TOKEN'],
      nextStep: expect.stringContaining(' | kubectl apply --server-side '),
    });
    const [, json = ''] = /^echo '(.*)' \|/.exec(payload['nextStep'] as string) ?? [];
    expect(JSON.parse(json)).toEqual({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: 'greeter-secrets',
        namespace: 'bw-acme-box',
        labels: { 'boxwright.dev/credential': 'true' },
        annotations: { 'boxwright.dev/hosts': 'api.githubcopilot.com' },
      },
      stringData: { GITHUB_TOKEN: 'VALUE' },
    });
  });

  test('the command stays one text for the shell, whatever hosts the Secret names', async () => {
    harness.seedAgent('acme-box', 'greeter', { status: { secretHosts: ["it's.example"] } });
    const { payload } = await attach('github');
    const command = (payload['nextStep'] as string).split(' | kubectl apply')[0] ?? '';
    const json = execFileSync('sh', ['-c', command.replace(/^echo/, "printf '%s'")], { encoding: 'utf8' });
    expect(JSON.parse(json)).toMatchObject({
      metadata: { annotations: { 'boxwright.dev/hosts': "api.githubcopilot.com,it's.example" } },
    });
  });

  test('repeated attaching gives the same answer and writes once', async () => {
    const first = await attach('github');
    expect((await attach('github')).payload).toEqual(first.payload);
    expect(harness.api.writes).toHaveLength(1);
  });

  test('an unknown slug names the near ones', async () => {
    expect((await attach('githup')).payload).toEqual({
      error: 'connector slug not in the catalog: near ones: github, deepwiki; search_connectors lists all',
    });
    expect(harness.requests()).toEqual([]);
  });

  test.each([
    ['the name is there and may go to the host', ['GITHUB_TOKEN'], ['api.githubcopilot.com'], 'active'],
    ['the name is there but may not go to the host', ['GITHUB_TOKEN'], ['example.com'], 'needs_config'],
    ['the name is not there', ['OTHER'], ['api.githubcopilot.com'], 'needs_auth'],
  ])('when %s', async (_name, presentSecrets, secretHosts, status) => {
    harness.seedAgent('acme-box', 'greeter', {
      spec: { connectors: ['github'] },
      status: { active: true, presentSecrets, secretHosts },
    });
    expect(await connectors()).toMatchObject({ connectors: [{ slug: 'github', status }] });
    const agent = (await harness.call('get_agent', { agentId: AGENT })).payload;
    expect(agent['connectors']).toEqual([{ slug: 'github', name: 'GitHub', status }]);
  });

  test('an entry that left the catalogue stays visible and can be detached', async () => {
    await attach('github');
    harness.api.vanish(Connectors, 'github');
    expect(await connectors()).toEqual({
      connectors: [{ slug: 'github', name: 'github', status: 'needs_config', missingSecrets: [] }],
    });
    const detach = () => harness.call('detach_connector', { agentId: AGENT, slug: 'github', confirm: true });
    expect((await detach()).payload).toEqual({ detached: 'github' });
    expect(stored()?.spec.connectors).toEqual([]);
    expect((await detach()).payload).toEqual({
      error: 'connector not attached: this agent has no connector with this slug; it has none',
    });
  });

  test('connectors that are attached at the same time are all kept', async () => {
    await Promise.all([attach('github'), attach('deepwiki')]);
    expect([...(stored()?.spec.connectors ?? [])].sort()).toEqual(['deepwiki', 'github']);
  });

  test('an agent has at most 50', async () => {
    const many = Array.from({ length: 50 }, (_, index) => `c${index}`);
    harness.seedAgent('acme-box', 'greeter', { spec: { connectors: many } });
    expect((await attach('github')).payload).toEqual({
      error: 'an agent has at most 50 connectors: detach one first',
    });
  });

  test('create_agent attaches, each slug once', async () => {
    Object.assign(harness.agentWaiter, { wait: () => Promise.resolve(undefined) });
    const { payload } = await harness.call('create_agent', {
      name: 'New',
      connectors: ['github', 'deepwiki', 'github'],
    });
    expect(payload['connectors']).toEqual([
      { slug: 'github', name: 'GitHub', status: 'needs_auth' },
      { slug: 'deepwiki', name: 'DeepWiki', status: 'active' },
    ]);
  });
});

describe('set_mcp_servers', () => {
  const set = (servers: unknown) => harness.call('set_mcp_servers', { agentId: AGENT, servers });
  const http = { name: 'docs', url: 'https://mcp.example.com/mcp', headers: { Authorization: 'Bearer ${DOCS_KEY}' } };
  const stdio = { name: 'local', transport: 'stdio', command: 'npx', args: ['-y', 'x'], env: { KEY: '${LOCAL_KEY}' } };

  test('replaces the list and says what changed; references stay as written', async () => {
    const { payload } = await set([http, stdio]);
    expect(payload).toEqual({
      mcpServers: [
        {
          name: 'docs',
          transport: 'http',
          url: 'https://mcp.example.com/mcp',
          headers: { Authorization: 'Bearer ${DOCS_KEY}' },
          command: null,
          args: [],
          env: {},
          enabled: true,
          missingSecrets: ['DOCS_KEY'],
        },
        {
          name: 'local',
          transport: 'stdio',
          url: null,
          headers: {},
          command: 'npx',
          args: ['-y', 'x'],
          env: { KEY: '${LOCAL_KEY}' },
          enabled: true,
          missingSecrets: ['LOCAL_KEY'],
        },
      ],
      added: ['docs', 'local'],
      updated: [],
      removed: [],
    });
    const agent = (await harness.call('get_agent', { agentId: AGENT })).payload;
    expect(agent['mcpServers']).toEqual(payload['mcpServers']);
    const next = await set([
      { ...http, enabled: false },
      { name: 'third', url: 'https://c.example.com' },
    ]);
    expect(next.payload).toMatchObject({ added: ['third'], updated: ['docs'], removed: ['local'] });
    expect((await set([])).payload).toEqual({ mcpServers: [], added: [], updated: [], removed: ['docs', 'third'] });
  });

  test('the same list again writes nothing', async () => {
    await set([http]);
    harness.api.clearRecords();
    expect((await set([http])).payload).toMatchObject({ added: [], updated: [], removed: [] });
    expect(harness.api.writes).toEqual([]);
  });

  test('takes plain http for exactly the hosts and ports that the Box trusts with it', async () => {
    const trustedHosts = [
      { host: 'api.boxwright-system.svc', http: true },
      { host: 'mcp.corp.internal:8080', http: true },
      { host: 'tls.corp.internal', http: false },
    ];
    harness.seedBox('acme-box', 'acme', { spec: { egress: { mode: 'internet', trustedHosts } } });
    const urlsTaken = async (url: string) => !(await set([{ name: 'a', url }])).isError;
    expect(await urlsTaken('http://api.boxwright-system.svc/api/mcp/account')).toBe(true);
    expect(await urlsTaken('http://api.boxwright-system.svc:80/${PART}')).toBe(true);
    expect(await urlsTaken('http://mcp.corp.internal:8080/mcp')).toBe(true);
    expect(await urlsTaken('https://tls.corp.internal/mcp')).toBe(true);
    for (const url of [
      'http://tls.corp.internal/mcp',
      'http://mcp.corp.internal/mcp',
      'http://api.boxwright-system.svc:8080/mcp',
      'http://api.boxwright-system.svc.evil.example/mcp',
      'http://x@api.boxwright-system.svc/mcp',
    ]) {
      harness.api.clearRecords();
      expect([url, await urlsTaken(url)]).toEqual([url, false]);
      expect(harness.api.writes).toEqual([]);
    }
  });

  test('secrets that the gateway saw are not missing', async () => {
    harness.seedAgent('acme-box', 'greeter', { status: { active: true, presentSecrets: ['DOCS_KEY'] } });
    expect((await set([http])).payload).toMatchObject({ mcpServers: [{ missingSecrets: [] }] });
  });

  test.each([
    [[{ name: 'a' }], 'missing required argument: servers.0.url (string) is needed for transport http'],
    [[{ name: 'a', url: 'ftp://x.example' }], 'argument "servers.0.url" must be an address that begins with https://'],
    [
      [http, { name: 'a', url: 'http://x.example' }],
      'argument "servers.1.url" must be an address that begins with https://: plain http is possible for hosts that stand with http: true in spec.egress.trustedHosts of Box acme-box, and x.example is none',
    ],
    [[{ name: 'a', url: 'https://' }], 'argument "servers.0.url" must be an address that begins with https://'],
    [
      [{ name: 'a', url: 'https://u:p@x.example' }],
      'argument "servers.0.url" must not hold a user name or password: use a header with a reference',
    ],
    [
      [{ name: 'a', transport: 'stdio' }],
      'missing required argument: servers.0.command (string) is needed for transport stdio',
    ],
    [
      [{ name: 'a', url: 'https://x.example', command: 'x' }],
      'argument "servers.0.command" is for transport stdio only',
    ],
    [
      [{ name: 'a', transport: 'stdio', command: 'x', url: 'https://x.example' }],
      'argument "servers.0.url" is for transport http only',
    ],
    [[http, http], 'two servers have the name docs: names are unique'],
    [
      Array.from({ length: 4 }, (_, n) => ({
        name: `s${n}`,
        transport: 'stdio',
        command: 'sh',
        args: Array<string>(60).fill('x'.repeat(4096)),
      })),
      'argument "servers" has 984053 bytes; at most 786432 (768 KiB) are possible',
    ],
    [
      [{ name: 'a b', url: 'https://x.example' }],
      'argument "servers.0.name": must have letters, digits, _ and -, and begin with a letter or digit',
    ],
    [
      [{ name: 'a', url: 'https://x.example', headers: { 'X-Api-Key': 'abc' } }],
      'argument "servers.0.headers.X-Api-Key" must hold a reference such as ${NAME}, not the credential itself: NAME is a key of the Secret <agent>-secrets',
    ],
    [
      [{ name: 'a', url: 'https://x.example', headers: { cookie: 'a=b' } }],
      'argument "servers.0.headers.cookie" must hold a reference such as ${NAME}, not the credential itself: NAME is a key of the Secret <agent>-secrets',
    ],
    [
      [{ name: 'a', url: 'https://x.example', headers: { 'x y': 'v' } }],
      'argument "servers.0.headers" has a name that is no header name',
    ],
    [
      [{ name: 'a', url: 'https://x.example', headers: { x: 'a\r\nb: c' } }],
      'argument "servers.0.headers.x" must not hold control characters or line breaks',
    ],
    [
      [{ name: 'a', url: 'https://x.example', headers: { x: '${A-B}' } }],
      'argument "servers.0.headers.x": a reference is ${NAME}, where NAME has letters, digits and _',
    ],
    [
      [{ name: 'a', url: 'https://x.example', headers: { x: 5 } }],
      'argument "servers.0.headers.x" must be a string, got a number',
    ],
    [[{ name: 'a', transport: 'sse' }], 'argument "servers.0.transport" must be one of: http, stdio'],
    [['a'], 'argument "servers.0" must be an object, got a string'],
    ['[]', 'argument "servers" must be an array, got a string'],
    [Array.from({ length: 21 }, () => http), 'argument "servers" must have at most 20 items'],
    [undefined, 'missing required argument: servers (array)'],
  ])('%j is refused and writes nothing', async (servers, error) => {
    expect((await set(servers)).payload).toEqual({ error });
    expect(harness.api.writes).toEqual([]);
  });

  test('empty fields of the other transport are what some clients send for "none"', async () => {
    const server = { ...http, command: null, args: [], env: {} };
    expect((await set([server])).isError).toBe(false);
  });
});

describe('list_models', () => {
  test('shows what the Box provides first, then the vendors with prices and the reason why not', async () => {
    harness.seedBox('acme-box', 'acme', { status: { availableProviders: ['boxwright', 'google'] } });
    harness.api.clearRecords();
    const { models } = (await harness.call('list_models')).payload as { models: Record<string, unknown>[] };
    expect(models[0]).toEqual({
      provider: 'boxwright',
      model: 'scripted',
      available: true,
      reason: null,
      isDefault: true,
      contextWindow: null,
      inputUsdPerMillion: 0,
      outputUsdPerMillion: 0,
    });
    expect(models.find(({ model }) => model === 'gpt-4.1-mini')).toEqual({
      provider: 'openai',
      model: 'gpt-4.1-mini',
      available: false,
      reason: expect.stringMatching(
        /^neither Box acme-box nor the installation has a usable key for provider openai; add OPENAI_API_KEY to the Secret of chart value gateway\.modelCredentialsSecret, or .* && kubectl patch box acme-box /,
      ),
      isDefault: false,
      contextWindow: 1_047_576,
      inputUsdPerMillion: 0.4,
      outputUsdPerMillion: 1.6,
    });
    expect(new Set(models.filter(({ available }) => available).map(({ provider }) => provider))).toEqual(
      new Set(['boxwright', 'google']),
    );
    await harness.call('list_models');
    expect(harness.requests()).toEqual(['get configmaps']);
    const defaults = models.filter(({ isDefault }) => isDefault).map(({ provider }) => provider);
    expect(defaults).toEqual(['boxwright', 'anthropic', 'openai', 'google', 'mistral', 'xai', 'deepseek']);
  });

  test.each([
    [
      'a Secret of the Box without a usable key',
      { credentialsSecret: 'models' },
      { availableProviders: [] },
      'Box acme-box names Secret models, but namespace bw-acme-box has none with a usable key XAI_API_KEY and label boxwright.dev/credential=true; run: kubectl patch secret models -n bw-acme-box',
    ],
    [
      'a Box at which the gateway has not looked yet',
      { credentialsSecret: 'models' },
      undefined,
      'whether Box acme-box has a usable key for provider xai is not known yet',
    ],
  ])('%s is not taken for a key', async (_what, spec, status, reason) => {
    harness.seedBox('acme-box', 'acme', { spec, status });
    const { models } = (await harness.call('list_models', { provider: 'xai' })).payload;
    expect(models).toContainEqual(
      expect.objectContaining({ provider: 'xai', available: false, reason: expect.stringContaining(reason) }),
    );
  });

  test('what the ConfigMap says of models counts before the catalogue, and stands beside it', async () => {
    harness.api.seed(ConfigMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'boxwright-model-prices', namespace: 'boxwright-system' },
      data: {
        'prices.yaml': [
          'xai/grok-4.7: { input: 1, output: 3.5 }',
          'xai/grok-next: { contextWindow: 2000000 }',
          'xai/grok-4.*: { input: 7, output: 7 }',
        ].join('\n'),
      },
    });
    const { models } = (await harness.call('list_models', { provider: 'xai' })).payload as { models: object[] };
    const of = (model: string) => models.find((one) => (one as { model: string }).model === model);
    expect(of('grok-4.7')).toMatchObject({ contextWindow: 500_000, inputUsdPerMillion: 1, outputUsdPerMillion: 3.5 });
    expect(of('grok-next')).toMatchObject({ contextWindow: 2_000_000, inputUsdPerMillion: null, isDefault: false });
    expect(of('grok-4.*')).toBeUndefined();
    expect(of('grok-4.3')).toMatchObject({ inputUsdPerMillion: 1.25, isDefault: true });
  });

  test('one provider only, and the rule of create_agent for the Box', async () => {
    const { models } = (await harness.call('list_models', { provider: 'xai' })).payload as { models: object[] };
    expect(models.length).toBeGreaterThan(0);
    expect(models.every((model) => (model as { provider: string }).provider === 'xai')).toBe(true);
    harness.seedBox('acme-two', 'acme');
    expect((await harness.call('list_models')).payload).toEqual({
      error: 'this workspace has several Boxes: pass spaceId, one of: acme-box, acme-two',
    });
    expect((await harness.call('list_models', { spaceId: 'rival-box' })).isError).toBe(true);
  });
});

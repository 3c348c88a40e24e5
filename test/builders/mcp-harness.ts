/**
 * The real MCP application on the in-memory API server: two workspaces, keys, Boxes and agents. Tests post raw HTTP at it
 * and see every read and write that a call made.
 */
import { createHash, createSecretKey } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { Express } from 'express';
import { Registry as PromRegistry } from 'prom-client';
import request from 'supertest';
import { hashOfApiKey } from '../../src/api/api-key-validity.js';
import type { Keyring } from '../../src/api/keyring.js';
import { AgentMemories } from '../../src/api/v1alpha1/agent-memory.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { AgentScheduleSpec, AgentSchedules } from '../../src/api/v1alpha1/agent-schedule.js';
import type { AgentSchedule } from '../../src/api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../../src/api/v1alpha1/agent-skill.js';
import type { AgentSkill } from '../../src/api/v1alpha1/agent-skill.js';
import { AgentTriggerSpec, AgentTriggers } from '../../src/api/v1alpha1/agent-trigger.js';
import type { AgentTrigger } from '../../src/api/v1alpha1/agent-trigger.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import type { Agent } from '../../src/api/v1alpha1/agent.js';
import { APIKeySpec, APIKeys } from '../../src/api/v1alpha1/api-key.js';
import type { APIKey } from '../../src/api/v1alpha1/api-key.js';
import { BoxSpec, Boxes } from '../../src/api/v1alpha1/box.js';
import type { Box } from '../../src/api/v1alpha1/box.js';
import { AgentTemplateParts, AgentTemplateSpec, AgentTemplates } from '../../src/api/v1alpha1/agent-template.js';
import type { AgentTemplate } from '../../src/api/v1alpha1/agent-template.js';
import { Connectors } from '../../src/api/v1alpha1/connector.js';
import { WorkspaceSpec, Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { SHIPPED_CONNECTORS } from '../../src/connectors/catalog.js';
import type { ArchiveReader } from '../../src/archive/types.js';
import { createDispatcher } from '../../src/mcp/dispatcher.js';
import { createToolMetrics } from '../../src/mcp/metrics.js';
import { createRegistry } from '../../src/mcp/registry.js';
import type { Registry } from '../../src/mcp/registry.js';
import { WrongKeys } from '../../src/mcp/wrong-keys.js';
import { callerAddressBehind } from '../../src/net/caller-address.js';
import { BodyBudget } from '../../src/net/body-budget.js';
import { allowedHosts } from '../../src/mcp/hosts.js';
import { allowedOrigins } from '../../src/mcp/origins.js';
import { createMcpRouter } from '../../src/mcp/router.js';
import type { FeedAnswer } from '../../src/protocol/feed.js';
import type { LiveFeeds, LiveRunRef } from '../../src/services/runs/live-feed.js';
import { CachedReads } from '../../src/kube/cached-reads.js';
import { ConfigMaps } from '../../src/kube/core-types.js';
import { CatalogSource } from '../../src/models/catalog-source.js';
import { createToolServices } from '../../src/mcp/tool-services.js';
import type { ToolServices } from '../../src/mcp/tool-services.js';
import type { DownloadOutcome } from '../../src/downloads/metrics.js';
import { createDownloadRouter } from '../../src/downloads/router.js';
import { ClusterFileStore } from '../../src/files/cluster-file-store.js';
import { fileTokenMatches } from '../../src/services/files/file-links.js';
import { openFile } from '../../src/services/files/file-reader.js';
import { createLogger } from '../../src/observability/logger.js';
import { createHttpMetrics } from '../../src/observability/metrics.js';
import { createApiApp } from '../../src/processes/api-app.js';
import { countLiveRuns } from '../../src/run/start/backlog.js';
import { createAppRouter } from '../../src/web/router.js';
import { SessionCookie, createSessionSeal } from '../../src/web/session-cookie.js';
import type { StaticFiles } from '../../src/web/static-files.js';
import { Watchers } from '../../src/web/watchers.js';
import { createApiCaches } from '../../src/services/caches.js';
import type { ApiCaches } from '../../src/services/caches.js';
import { createKeyCheck } from '../../src/services/keys/key-check.js';
import { KeyedWaiter } from '../../src/kube/keyed-waiter.js';
import { OwnRuns } from '../../src/run/start/own-runs.js';
import type { Write } from '../../src/services/write-barrier.js';
import { packedFiles } from './skill-files.js';
import { AgentSnapshot } from '../../src/templates/snapshot.js';
import { FakeClock } from './fake-clock.js';
import { RecordingApi } from './recording-api.js';
import type { ApiRun } from '../../src/projections/agent-run.js';
import type { ApiAgent } from '../../src/projections/agent.js';
import type { ApiKeyProjection } from '../../src/projections/api-key.js';

export const KEY = `bw_${'k'.repeat(43)}`;
export const READ_ONLY_KEY = `bw_${'r'.repeat(43)}`;
export const OTHER_KEY = `bw_${'o'.repeat(43)}`;
export const PUBLIC_URL = 'https://agents.example.com';

const KEYRING: Keyring = { current: 'k1', keys: new Map([['k1', createSecretKey(Buffer.alloc(32, 1))]]) };
const RESOURCE = { apiVersion: 'boxwright.dev/v1alpha1' };

export interface ToolAnswer {
  isError: boolean;
  /** structuredContent, or the parsed error text. */
  payload: Record<string, unknown>;
  raw: Record<string, unknown>;
}

export class McpHarness {
  readonly clock = new FakeClock(Date.parse('2026-05-01T10:00:00.000Z'));
  readonly api = new RecordingApi({ clock: this.clock });
  readonly caches: ApiCaches = createApiCaches((options) => this.api.informer(options));
  readonly runWaiter = new KeyedWaiter<ApiRun>(this.caches.AgentRun, this.clock);
  readonly agentWaiter = new KeyedWaiter<ApiAgent>(this.caches.Agent, this.clock);
  /** What gateway pods say of working runs, by `<namespace>/<run>`: nothing unless a test says so. */
  readonly told = new Map<string, FeedAnswer>();
  /** The questions to gateway pods, in order. */
  readonly asked: LiveRunRef[] = [];
  readonly feeds: LiveFeeds = {
    read: (run) => {
      this.asked.push(run);
      return Promise.resolve(this.told.get(`${run.namespace}/${run.name}`));
    },
  };
  readonly liveRuns = new OwnRuns(countLiveRuns(this.caches.AgentRun), this.caches.AgentRun, this.clock);
  /** Every write that passed the barrier. */
  readonly barriers: Write[] = [];
  barrierPasses = true;
  readonly usedKeys: ApiKeyProjection[] = [];
  /** What bodies on their way in hold: room for one of 8 MiB and a little. */
  readonly bodies = new BodyBudget(9 * 1024 * 1024);
  readonly logLines: string[] = [];
  readonly watchers = new Watchers({ caches: this.caches, clock: this.clock });
  /** What became of calls of download URLs. */
  readonly downloads: DownloadOutcome[] = [];
  readonly registry: Registry;
  readonly services: ToolServices;
  readonly app: Express;

  constructor(
    registry: Registry = createRegistry(),
    private readonly archive?: ArchiveReader,
    private readonly files?: StaticFiles,
    /** For the app alone. */
    private readonly appUrl = PUBLIC_URL,
  ) {
    this.registry = registry;
    this.#seedAccounts();
    this.services = this.#createServices();
    this.app = this.#build();
    this.api.clearRecords();
  }

  #createServices(): ToolServices {
    const { api, caches, clock, agentWaiter, runWaiter } = this;
    return createToolServices({
      caches,
      api,
      clock,
      agentWaiter,
      runWaiter,
      publicUrl: PUBLIC_URL,
      catalog: new CatalogSource(
        new CachedReads(api, ConfigMaps, clock),
        { namespace: 'boxwright-system', name: 'boxwright-model-prices' },
        createLogger('api', 'debug', { write: (line) => this.logLines.push(line) }),
      ),
      keyring: () => KEYRING,
      archive: this.archive,
      liveRuns: this.liveRuns,
      feeds: this.feeds,
      barrier: {
        passed: (write) => {
          this.barriers.push(write);
          return Promise.resolve(this.barrierPasses);
        },
      },
    });
  }

  #build(): Express {
    const log = createLogger('api', 'debug', { write: (line) => this.logLines.push(line) });
    const { api, caches, clock, services } = this;
    const prom = new PromRegistry();
    const http = createHttpMetrics(prom);
    const dispatcher = createDispatcher({
      registry: this.registry,
      services,
      version: '1.2.3',
      log,
      metrics: createToolMetrics(prom),
      clock,
    });
    const { bodies } = this;
    const endpoint = {
      keys: createKeyCheck({ caches, api, clock, used: (key) => this.usedKeys.push(key) }),
      wrongKeys: new WrongKeys({ clock, log }),
      callerAddress: callerAddressBehind(['127.0.0.0/8', '::1/128']),
      dispatcher,
      isHostAllowed: allowedHosts({ publicUrl: PUBLIC_URL, service: { name: 'api', namespace: 'bw' }, listed: [] }),
      bodies,
      http,
      log,
      clock,
    };
    const keyring = { keyring: KEYRING, ensure: () => Promise.resolve() };
    return createApiApp({
      log,
      webhook: (_request, _response, next) => next(),
      downloads: createDownloadRouter({
        opens: (file, token) => fileTokenMatches(KEYRING, { file, token, now: clock.now() }),
        open: (file) => openFile({ caches, api, clock, files: new ClusterFileStore(api) }, file),
        clock,
        metrics: { called: (outcome) => this.downloads.push(outcome) },
        http,
        log,
      }),
      mcp: createMcpRouter({ ...endpoint, isOriginAllowed: allowedOrigins(PUBLIC_URL, []) }),
      web: createAppRouter({
        ...endpoint,
        publicOrigin: new URL(this.appUrl).origin,
        seal: createSessionSeal({ keyring, clock }),
        cookie: new SessionCookie(this.appUrl),
        watchers: this.watchers,
        scope: services.scope,
        runs: services.runs,
        files: this.files,
      }),
    });
  }

  #seedAccounts(): void {
    for (const [workspace, keys] of [
      ['acme', [KEY, READ_ONLY_KEY]],
      ['rival', [OTHER_KEY]],
    ] as const) {
      this.api.seed(Workspaces, {
        ...RESOURCE,
        kind: 'Workspace',
        metadata: { name: workspace },
        spec: WorkspaceSpec.parse({ expertSandbox: true }),
      });
      for (const key of keys) this.seedKey(workspace, key, { readOnly: key === READ_ONLY_KEY });
      this.seedBox(`${workspace}-box`, workspace);
    }
    this.seedAgent('acme-box', 'greeter');
    this.seedAgent('rival-box', 'spy');
  }

  seedKey(workspace: string, key: string, spec: Partial<APIKey['spec']> = {}): APIKey {
    return this.api.seed(APIKeys, {
      ...RESOURCE,
      kind: 'APIKey',
      metadata: { namespace: `bw-ws-${workspace}`, name: `key-${key.slice(3, 6)}` },
      spec: APIKeySpec.parse(spec),
      status: { hash: hashOfApiKey(key), prefix: key.slice(0, 11) },
    });
  }

  seedBox(name: string, workspace: string, more: { spec?: object; status?: Box['status'] } = {}): void {
    const spec = BoxSpec.parse({ workspace, engine: 'scripted', ...more.spec });
    const status = more.status === undefined ? {} : { status: more.status };
    this.api.seed(Boxes, { ...RESOURCE, kind: 'Box', metadata: { name }, spec, ...status });
  }

  seedAgent(
    box: string,
    name: string,
    more: { spec?: object; status?: Agent['status']; metadata?: object } = {},
  ): Agent {
    return this.api.seed(Agents, {
      ...RESOURCE,
      kind: 'Agent',
      metadata: { namespace: `bw-${box}`, name, ...more.metadata },
      spec: AgentSpec.parse({ name, ...more.spec }),
      status: { active: true, ...more.status },
    });
  }

  /** Two entries of the shipped catalogue: one that needs a credential, one that needs none. */
  seedConnectors(): void {
    for (const { slug, spec } of SHIPPED_CONNECTORS.filter((one) => ['github', 'deepwiki'].includes(one.slug))) {
      this.api.seed(Connectors, { ...RESOURCE, kind: 'Connector', metadata: { name: slug }, spec });
    }
  }

  /** A template with one agent, `writer`, that nobody has: its draft, and version 1 of it when `published`. */
  seedTemplate(
    workspace: string,
    name: string,
    more: { agents?: Partial<AgentSnapshot>[]; spec?: object; metadata?: object; published?: boolean } = {},
  ): AgentTemplate {
    const namespace = `bw-ws-${workspace}`;
    const agents = (more.agents ?? [{}]).map((agent) => templateAgent(agent));
    const text = JSON.stringify({ format: 1, agents });
    const content = `content-${name}`;
    const draft = {
      content,
      parts: 1,
      sha256: createHash('sha256').update(text).digest('hex'),
      agents: agents.length,
    };
    const data = gzipSync(text).toString('base64');
    this.api.seed(AgentTemplateParts, {
      ...RESOURCE,
      kind: 'AgentTemplatePart',
      metadata: { namespace, name: `${name}.${content}.0` },
      spec: { template: name, content, part: 0, bytes: data.length, data },
    });
    const meta = { name: 'Writers', description: 'Writes texts.', category: 'office', tags: ['text'] };
    const version = { ...draft, ...meta, version: 1, publishedAt: '2026-04-30T10:00:00.000Z' };
    const isPublished = more.published ?? true;
    return this.api.seed(AgentTemplates, {
      ...RESOURCE,
      kind: 'AgentTemplate',
      metadata: { namespace, name, ...more.metadata },
      spec: AgentTemplateSpec.parse({
        ...meta,
        draft,
        published: isPublished ? [version] : [],
        listed: isPublished,
        ...more.spec,
      }),
    });
  }

  seedTrigger(
    box: string,
    agent: string,
    slug: string,
    more: { spec?: object; metadata?: object; status?: AgentTrigger['status'] } = {},
  ): AgentTrigger {
    return this.api.seed(AgentTriggers, {
      ...RESOURCE,
      kind: 'AgentTrigger',
      metadata: { namespace: `bw-${box}`, name: `${agent}.${slug}`, ...more.metadata },
      spec: AgentTriggerSpec.parse({
        agent,
        name: slug,
        body: 'do it',
        tokenId: 'a'.repeat(32),
        keyId: 'k1',
        ...more.spec,
      }),
      ...(more.status === undefined ? {} : { status: more.status }),
    });
  }

  seedSchedule(
    box: string,
    agent: string,
    slug: string,
    more: { spec?: object; metadata?: object; status?: AgentSchedule['status'] } = {},
  ): AgentSchedule {
    const timing = { cron: '0 9 * * *', ...more.spec };
    return this.api.seed(AgentSchedules, {
      ...RESOURCE,
      kind: 'AgentSchedule',
      metadata: { namespace: `bw-${box}`, name: `${agent}.${slug}`, ...more.metadata },
      spec: AgentScheduleSpec.parse({ agent, name: slug, body: 'write the news', keyId: 'k1', ...timing }),
      ...(more.status === undefined ? {} : { status: more.status }),
    });
  }

  seedSkill(
    box: string,
    agent: string,
    slug: string,
    more: { spec?: object; metadata?: object; files?: Record<string, string | Buffer> } = {},
  ): AgentSkill {
    const files = Object.entries(more.files ?? {}).map(([path, content]) => [path, Buffer.from(content)] as const);
    return this.api.seed(AgentSkills, {
      ...RESOURCE,
      kind: 'AgentSkill',
      metadata: { namespace: `bw-${box}`, name: `${agent}.${slug}`, ...more.metadata },
      spec: {
        agent,
        name: slug,
        description: `For ${slug}.`,
        body: '# How',
        ...packedFiles(new Map(files)),
        ...more.spec,
      },
    });
  }

  seedMemory(box: string, agent: string, name: string, text: string, more: { metadata?: object } = {}): void {
    this.api.seed(AgentMemories, {
      ...RESOURCE,
      kind: 'AgentMemory',
      metadata: { namespace: `bw-${box}`, name, ...more.metadata },
      spec: { agent, text },
    });
  }

  seedRun(
    box: string,
    name: string,
    more: { spec?: object; status?: AgentRun['status']; metadata?: object } = {},
  ): AgentRun {
    return this.api.seed(AgentRuns, {
      ...RESOURCE,
      kind: 'AgentRun',
      metadata: { namespace: `bw-${box}`, name, ...more.metadata },
      spec: { agent: 'greeter', message: 'hello', ...more.spec },
      status: more.status ?? { phase: 'running' },
    });
  }

  /** Plays the controller: every agent that is created from now on gets this status. */
  controllerSays(status: { active: boolean; inactiveReason?: string }): void {
    const create = this.api.create.bind(this.api);
    this.api.create = async (type, object, options) => {
      const created = await create(type, object, options);
      const { namespace = '', name } = created.metadata;
      const say = () => {
        if (this.api.peek(type, `${namespace}/${name}`) !== undefined) this.api.seed(type, { ...created, status });
      };
      if (type.kind === 'Agent') setImmediate(say);
      return created;
    };
  }

  /** Posts a body as it is. */
  post(body: string | Buffer, key: string | undefined = KEY) {
    const call = request(this.app).post('/api/mcp/account').set('content-type', 'application/json');
    if (key !== undefined) call.set('authorization', `Bearer ${key}`);
    // Raw bytes: the test library would encode a Buffer as JSON.
    return call.serialize((raw) => raw as unknown as string).send(body);
  }

  /** One JSON-RPC request; the parsed body. */
  async rpc(method: string, params?: unknown, key: string = KEY): Promise<Record<string, unknown>> {
    const response = await this.post(JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }), key);
    return response.body as Record<string, unknown>;
  }

  /** One tools/call. */
  async call(tool: string, args: unknown = {}, key: string = KEY): Promise<ToolAnswer> {
    const { result } = (await this.rpc('tools/call', { name: tool, arguments: args }, key)) as {
      result: { content: [{ text: string }]; isError?: boolean; structuredContent?: Record<string, unknown> };
    };
    const text = JSON.parse(result.content[0].text) as Record<string, unknown>;
    return { isError: result.isError === true, payload: text, raw: result };
  }

  /** verb and resource of every request since the last clearRecords, reads first. */
  requests(): string[] {
    return [...this.api.reads, ...this.api.writes].map(({ verb, resource }) => `${verb} ${resource}`);
  }
}

/** What a template keeps of an agent. */
export function templateAgent(more: Partial<AgentSnapshot> = {}): AgentSnapshot {
  return AgentSnapshot.parse({
    id: 'ta-1',
    sourceAgentId: 'acme-box.writer',
    sourceUid: 'uid-of-the-writer',
    capturedAt: '2026-04-30T09:00:00.000Z',
    handle: 'writer',
    skills: [],
    schedules: [],
    triggers: [],
    ...more,
    spec: AgentSpec.parse({ name: 'Writer', soul: 'You write.', ...more.spec }),
  });
}

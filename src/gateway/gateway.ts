/** The gateway put together: what calls what. No server, no environment: src/processes/gateway.ts adds them. */
import type { ArchiveReader } from '../archive/types.js';
import { ClusterFileStore } from '../files/cluster-file-store.js';
import type { KubeApi } from '../kube/types.js';
import type { BodyBudget } from '../net/body-budget.js';
import type { WebClient } from '../net/web-client.js';
import type { Logger } from '../observability/logger.js';
import type { HttpMetrics } from '../observability/metrics.js';
import type { Clock } from '../runtime/clock.js';
import { countLiveRuns } from '../run/start/backlog.js';
import { countableRuns } from '../run/start/countable-runs.js';
import { OwnRuns } from '../run/start/own-runs.js';
import { AbilitiesReader } from './tools/abilities.js';
import { AgentCalls } from './tools/agent-calls.js';
import { AwaitAgents } from './tools/await-agents.js';
import { FileTools } from './tools/file-tools.js';
import { GatewayTools } from './tools/tools.js';
import { MemoryTools } from './tools/memory-tools.js';
import { NoteStore } from './tools/note-store.js';
import { SelfServers } from './tools/self-servers.js';
import { SelfTools } from './tools/self-tools.js';
import { SkillTools } from './tools/skill-tools.js';
import { ApiAuthenticator } from './auth/api-authenticator.js';
import { RunAuthenticator } from './auth/run-authenticator.js';
import { TokenReviewer } from './auth/token-reviews.js';
import { RunBudgets } from './budget/run-budgets.js';
import type { GatewayCaches } from './caches.js';
import { GatewayHandler, type GatewayHandlerOptions } from './http/handler.js';
import { KeyedLock } from './keyed-lock.js';
import { AgentSecrets } from './mcp/agent-secret.js';
import { ClaimServers } from './mcp/claim-servers.js';
import { McpCalls, type McpCallsOptions } from './mcp/mcp-calls.js';
import { McpProxy } from './mcp/proxy.js';
import type { GatewayMetrics } from './metrics.js';
import { ModelCalls } from './models/model-calls.js';
import { RunFeed } from './runs/run-feed.js';
import { RunInputs } from './runs/run-inputs.js';
import { Claims } from './runs/claims.js';
import { RunFinisher } from './runs/finishes.js';
import { Ownership, type GatewaySelf } from './runs/ownership.js';
import { Progress } from './runs/progress.js';
import { Reports } from './runs/reports.js';
import { RunStore } from './runs/run-store.js';
import { RunWatch } from './runs/run-watch.js';
import { ServedRuns } from './runs/served-runs.js';
import { Steering } from './runs/steering.js';
import { Recordings } from './scripted/recordings.js';
import { WebSearch } from './search/web-search.js';
import type { ModelAccess } from './providers/model-access.js';

export interface GatewayDeps {
  api: KubeApi;
  caches: GatewayCaches;
  self: GatewaySelf;
  /** The namespace of the installation. */
  releaseNamespace: string;
  models: ModelAccess;
  /** Sessions of which runs have left the cluster; absent when the installation has no archive. */
  archive?: ArchiveReader | undefined;
  /** To the MCP servers of users. */
  web: Pick<WebClient, 'request'>;
  /** The memory budget of all bodies of the process, of requests and of answers. */
  bodies: BodyBudget;
  clock: Clock;
  metrics: GatewayMetrics;
  httpMetrics: HttpMetrics;
  /** Finished runs that retention leaves in the cluster; the default of the installation when absent. */
  maxFinishedRuns?: number | undefined;
  /** True while the process stops. */
  isDraining: () => boolean;
  log: Logger;
}

export interface Gateway {
  handler: GatewayHandler;
  /** To be started when the caches are filled. */
  watch: RunWatch;
  served: ServedRuns;
}

export function createGateway(deps: GatewayDeps): Gateway {
  const { api, caches, self, clock, metrics, log } = deps;
  const { catalog } = deps.models;
  const store = new RunStore({ api, cache: caches.runs, log });
  const served = new ServedRuns({ api, clock });
  const lock = new KeyedLock();
  const reviews = new TokenReviewer({ api, clock, metrics });
  const authenticator = new RunAuthenticator({ api, clock, reviews, ...caches });
  const ownership = new Ownership({ self, clock, store, served, gateways: caches.gateways, metrics, log });
  const budgets = new RunBudgets({ clock, store });
  const notes = new NoteStore({ api, cache: caches.notes, clock });
  const { client, credentials, search: installation } = deps.models;
  const search = new WebSearch({ clock, client, credentials, installation, bodies: deps.bodies, metrics });
  const abilities = new AbilitiesReader({ notes, skills: caches.skills, search });
  const { agents, boxes } = caches;
  const inputs = new RunInputs({ api, store, agents, boxes, clock, archive: deps.archive });
  const shared = { clock, store, served, ownership, metrics };
  const mcp = createMcp(deps, { ...shared, boxes: inputs });
  const steering = new Steering({ store, clock, metrics, log });
  const finisher = new RunFinisher({ ...shared, api, lock, steering, log });
  const handler = new GatewayHandler({
    authenticator,
    ...createFeed(deps, { reviews, served }),
    claims: new Claims({ ...shared, self, inputs, finisher, abilities, mcpServers: mcp.claims, catalog }),
    reports: new Reports({ ...shared, lock, steering }),
    tools: new GatewayTools({
      ...shared,
      lock,
      agents: caches.agents,
      abilities,
      ...createAgentCalls(deps, { ...shared, budgets }),
      files: new FileTools({ files: new ClusterFileStore(api), store }),
      memory: new MemoryTools(notes),
      search,
      skills: new SkillTools({ api, skills: caches.skills }),
      ...selfTools(deps),
      boxes: inputs,
    }),
    finisher,
    models: new ModelCalls({
      ...shared,
      boxes: inputs,
      agents,
      budgets,
      recordings: new Recordings(api),
      ...deps.models,
    }),
    mcp: mcp.calls,
    isDraining: deps.isDraining,
    bodies: deps.bodies,
    clock,
    metrics: deps.httpMetrics,
    log,
  });
  const { runs } = caches;
  const progress = new Progress({ clock, store });
  const watch = new RunWatch({ self, clock, runs, boxes, served, finisher, progress, outage: reviews, log });
  metrics.trackServed(() => served.size);
  return { handler, watch, served };
}

/** Tools of agents that change themselves. */
function selfTools({ api, clock }: GatewayDeps) {
  return { self: new SelfTools({ api, clock }), servers: new SelfServers({ api, clock }) };
}

/** What working runs do now, for API pods. */
function createFeed(
  { releaseNamespace, clock, isDraining, caches: { apis } }: GatewayDeps,
  { reviews, served }: { reviews: TokenReviewer; served: ServedRuns },
): Pick<GatewayHandlerOptions, 'apiAuthenticator' | 'feed'> {
  const apiAuthenticator = new ApiAuthenticator({ namespace: releaseNamespace, clock, reviews, apis });
  return { apiAuthenticator, feed: new RunFeed({ served, clock, isDraining }) };
}

/** What runs do with other agents. */
function createAgentCalls(
  deps: GatewayDeps,
  shared: { clock: Clock; store: RunStore; budgets: RunBudgets },
): { calls: AgentCalls; awaits: AwaitAgents } {
  const { api, metrics, caches } = deps;
  const { runs, agents } = caches;
  const calls = new AgentCalls({ ...shared, api, metrics, runs, agents, backlog: backlogOf(deps) });
  return { calls, awaits: new AwaitAgents({ ...shared, runs, calls }) };
}

/** Live runs, with those that this pod has started and its cache does not show yet. */
function backlogOf({ caches: { runs }, maxFinishedRuns, clock }: GatewayDeps): OwnRuns {
  return new OwnRuns(countLiveRuns(countableRuns(runs), maxFinishedRuns), runs, clock);
}

/** Connections of runs to MCP servers. */
function createMcp(
  { api, caches, clock, web, bodies }: Pick<GatewayDeps, 'api' | 'caches' | 'clock' | 'web' | 'bodies'>,
  shared: Pick<McpCallsOptions, 'store' | 'ownership' | 'boxes' | 'metrics'>,
): { calls: McpCalls; claims: ClaimServers } {
  const { agents, connectors } = caches;
  const secrets = new AgentSecrets(api);
  return {
    claims: new ClaimServers({ connectors, secrets }),
    calls: new McpCalls({ ...shared, agents, connectors, secrets, proxy: new McpProxy({ clock, web, bodies }) }),
  };
}

/** The process `boxwright api`: composition only. MCP endpoint and trigger URLs outside, health, metrics and the write barrier inside. */
import { createDownloadMetrics } from '../downloads/metrics.js';
import { createDownloadRouter } from '../downloads/router.js';
import { ClusterFileStore } from '../files/cluster-file-store.js';
import { fileTokenMatches } from '../services/files/file-links.js';
import { openFile } from '../services/files/file-reader.js';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { Agent as HttpAgent, request } from 'undici';
import type { PostgresArchive } from '../archive/postgres-archive.js';
import { loadConfig } from '../config/env.js';
import type { Informer } from '../kube/types.js';
import { createDispatcher } from '../mcp/dispatcher.js';
import { createToolMetrics } from '../mcp/metrics.js';
import { createRegistry as createToolRegistry } from '../mcp/registry.js';
import { WrongKeys } from '../mcp/wrong-keys.js';
import { callerAddressBehind } from '../net/caller-address.js';
import { BodyBudget } from '../net/body-budget.js';
import { limitWaitingConnections } from '../net/waiting-connections.js';
import { allowedOrigins } from '../mcp/origins.js';
import { allowedHosts } from '../mcp/hosts.js';
import { createMcpRouter } from '../mcp/router.js';
import { createToolServices } from '../mcp/tool-services.js';
import { CachedReads } from '../kube/cached-reads.js';
import { ConfigMaps } from '../kube/core-types.js';
import { CatalogSource } from '../models/catalog-source.js';
import { createHttpMetrics, type HttpMetrics } from '../observability/metrics.js';
import { closeWithin } from '../observability/probes.js';
import type { Problem } from '../observability/probes.js';
import { sleep } from '../runtime/clock.js';
import { openArchiveReader } from './archive-reader.js';
import type { Runnable } from '../runtime/manager.js';
import { countLiveRuns } from '../run/start/backlog.js';
import { createApiCaches } from '../services/caches.js';
import { ApiConfig } from '../services/config.js';
import { dedupeRunName } from '../run/start/dedupe-name.js';
import { createKeyCheck } from '../services/keys/key-check.js';
import { createKeyUsage } from '../services/keys/key-usage.js';
import { KeyedWaiter } from '../kube/keyed-waiter.js';
import { createKeyringReader } from '../services/triggers/keyring.js';
import { OwnRuns } from '../run/start/own-runs.js';
import { tokenMatches } from '../services/triggers/trigger-token.js';
import { BARRIER_PATH, barrierRoute, createWriteBarrier, peerUrls } from '../services/write-barrier.js';
import { createBarrierSeal } from '../services/barrier-seal.js';
import type { Question } from '../services/write-barrier.js';
import { createWebhookMetrics } from '../webhook/metrics.js';
import { createWebhookRouter } from '../webhook/router.js';
import {
  bootstrap,
  cacheProblems,
  cacheRunnables,
  closing,
  internalServer,
  runGroups,
  type ProcessBase,
} from './bootstrap.js';
import { createApiApp } from './api-app.js';
import { GatewayFeeds } from './gateway-feeds.js';
import { PRODUCT_VERSION } from '../config/version.js';
import { API_PODS, peerPodInformer } from '../projections/pod.js';
import { apiWebhookKeysInformer } from '../projections/webhook-keys.js';
import { createWebhookKeyReader } from '../services/triggers/webhook-keys.js';
import { createAppRouter } from '../web/router.js';
import { SessionCookie, createSessionSeal } from '../web/session-cookie.js';
import { readStaticFiles } from '../web/static-files.js';
import { Watchers } from '../web/watchers.js';
import { createTriggerReader } from '../services/triggers/trigger-reader.js';

/**
 * Longer than proxies keep idle connections: nginx 60 s, Traefik and the API server's proxy 90 s, load balancers of Google 600 s.
 * A proxy that sends a POST while we close its connection answers 502.
 */
const KEEP_ALIVE_MS = 620_000;
/** Longest time for a whole request to arrive. */
const REQUEST_MS = 60_000;
/** After SIGTERM the pod is still in the Service for a moment: it answers new calls meanwhile. */
const LEAVE_SERVICE_MS = 3_000;
/** Longest time for the answers that are under way; their waits have ended already. */
const DRAIN_MS = 18_000;

/** What the bodies of all calls that are on their way in may hold. The slowest sender goes when they hold more. */
const MAX_BODIES_BYTES = 128 * 1024 * 1024;

/** Runs until SIGTERM; the exit code. */
export async function runApi(env: NodeJS.ProcessEnv): Promise<number> {
  const config = loadConfig(ApiConfig, env);
  const { base, manager } = await bootstrap('api', config, env);
  const archive = openArchiveReader(config.archiveUrl, base);
  const core: Core = { ...base, config, archive };
  const followers = createFollowers(core);
  return runGroups(manager, [
    { name: 'connections', runnables: [closing('gateways', () => followers.feeds.close())] },
    { name: 'archive', runnables: [closing('archive', () => archive?.close())] },
    { name: 'probes', runnables: [probes(core, followers)] },
    { name: 'caches', runnables: followerRunnables(followers) },
    { name: 'public', runnables: [publicServer(core, followers)] },
  ]);
}

/** What every part of the process needs. */
interface Core extends ProcessBase {
  config: ApiConfig;
  /** Absent when the installation has none. */
  archive: PostgresArchive | undefined;
}

/** Everything that follows the cluster. */
type Followers = ReturnType<typeof createFollowers>;

function createFollowers({ clock, log, api, config, informer, registry }: Core) {
  const caches = createApiCaches(informer);
  const pods = informer(peerPodInformer(config.releaseNamespace, API_PODS));
  const keyring = createKeyringReader({ api, clock, log, namespace: config.releaseNamespace });
  return {
    caches,
    pods,
    webhookKeys: informer(apiWebhookKeysInformer),
    keyring,
    seal: createBarrierSeal(keyring),
    keyUsage: createKeyUsage({ api, clock, log }),
    watchers: new Watchers({ caches, clock }),
    feeds: new GatewayFeeds({
      accessDir: config.gatewayAccess,
      serverName: `${config.gatewayService}.${config.releaseNamespace}.svc`,
      clock,
      registry,
      log,
    }),
    runWaiter: new KeyedWaiter(caches.AgentRun, clock),
    agentWaiter: new KeyedWaiter(caches.Agent, clock),
    liveRuns: new OwnRuns(countLiveRuns(caches.AgentRun, config.maxFinishedRuns), caches.AgentRun, clock),
  };
}

function followerRunnables({ caches, pods, webhookKeys, keyring, keyUsage }: Followers): Runnable[] {
  return [
    ...cacheRunnables({ ...caches, Pod: pods, Secret: webhookKeys }),
    background('keyring', (signal) => keyring.run(signal)),
    background('use of API keys', (signal) => keyUsage.run(signal)),
  ];
}

/** A loop that runs until it is told to stop. */
function background(name: string, run: (signal: AbortSignal) => Promise<void>): Runnable {
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  return {
    name,
    start: () => {
      running = run(stopping.signal);
    },
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

/** Health, metrics and the other side of the write barrier. */
function probes(core: Core, followers: Followers): Runnable {
  const routes = { [BARRIER_PATH]: barrierRoute(byKind(followers), followers.seal, core.clock) };
  return internalServer({ ...core, port: core.config.internalPort, problems: () => problemsOf(followers), routes });
}

function byKind({ caches }: Followers): ReadonlyMap<string, Informer<unknown>> {
  return new Map<string, Informer<unknown>>(Object.entries(caches));
}

/** Why this pod must not take calls: its view of the cluster is not there yet, or is behind. */
function problemsOf({ caches, webhookKeys, keyring }: Followers): Problem[] {
  const behind = cacheProblems({ ...caches, Secret: webhookKeys });
  if (keyring.keyring !== undefined) return behind;
  return [...behind, { check: 'keyring', message: 'has not been read; the controller creates its Secret' }];
}

/** MCP endpoint and trigger URLs. */
function publicServer(core: Core, followers: Followers): Runnable {
  const server = createServer(createPublicApp(core, followers));
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.requestTimeout = REQUEST_MS;
  limitWaitingConnections(server);
  return {
    name: 'public server',
    start: () => listen(server, core.config.apiPort),
    stop: async () => {
      followers.runWaiter.stop();
      followers.agentWaiter.stop();
      followers.watchers.stop();
      await sleep(core.clock, LEAVE_SERVICE_MS);
      await closeWithin(server, DRAIN_MS, core.clock);
    },
  };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** What is known of models: read when somebody asks, at most once in a while. */
function openCatalog({ api, clock, config, log }: Core): CatalogSource {
  const ref = { namespace: config.releaseNamespace, name: config.modelPricesConfigMap };
  return new CatalogSource(new CachedReads(api, ConfigMaps, clock), ref, log);
}

function createPublicApp(core: Core, followers: Followers) {
  const { config, log, clock, registry, api, archive } = core;
  const { caches, webhookKeys, keyring, keyUsage } = followers;
  const http = createHttpMetrics(registry);
  const bodies = new BodyBudget(MAX_BODIES_BYTES);
  const services = createToolServices({
    ...followers,
    api,
    clock,
    archive,
    publicUrl: config.publicUrl,
    catalog: openCatalog(core),
    keyring: () => keyring.keyring,
    barrier: createWriteBarrier({
      informers: byKind(followers),
      peers: () => peerUrls(followers.pods, config.podUid),
      seal: followers.seal,
      post: createPost(),
      clock,
    }),
  });
  const dispatcher = createDispatcher({
    registry: createToolRegistry(),
    services,
    version: PRODUCT_VERSION,
    log,
    metrics: createToolMetrics(registry),
    clock,
  });
  const endpoint = {
    keys: createKeyCheck({ caches, api, clock, used: (key) => keyUsage.used(key) }),
    wrongKeys: new WrongKeys({ clock, log }),
    dispatcher,
    bodies,
    http,
    log,
    clock,
    ...callersOf(config),
  };
  return createApiApp({
    log,
    webhook: createWebhookRouter({
      ...services.fire,
      triggers: createTriggerReader({ caches, api, ensureKey: (keyId) => keyring.ensure(keyId) }),
      tokenMatches: (check, presented) => tokenMatches(keyring.keyring, check, presented),
      dedupeRunName: ({ agent, uid, keyId }, value) =>
        dedupeRunName(keyring.keyring, { agent: agent.agent, triggerUid: uid, keyId, value }),
      webhookKeys: createWebhookKeyReader({ cache: webhookKeys, api }),
      metrics: createWebhookMetrics(registry),
      bodies,
      http,
      logger: log,
    }),
    downloads: createDownloads(core, followers, http),
    mcp: createMcpRouter(endpoint),
    web: createAppRouter({ ...endpoint, ...appOf(core, followers), scope: services.scope, runs: services.runs }),
  });
}

/** What only the app needs. */
function appOf({ config, clock, log }: Core, { keyring, watchers }: Followers) {
  const files = readStaticFiles(config.appDir, config.publicUrl);
  if (files === undefined) log.warn({ dir: config.appDir }, 'no app is served: the folder has no index.html');
  return {
    publicOrigin: new URL(config.publicUrl).origin,
    seal: createSessionSeal({ keyring, clock }),
    cookie: new SessionCookie(config.publicUrl),
    watchers,
    files,
  };
}

/** Files that runs published. */
function createDownloads({ api, clock, registry, log }: Core, { caches, keyring }: Followers, http: HttpMetrics) {
  return createDownloadRouter({
    opens: (file, token) => fileTokenMatches(keyring.keyring, { file, token, now: clock.now() }),
    open: (file) => openFile({ caches, api, clock, files: new ClusterFileStore(api) }, file),
    clock,
    metrics: createDownloadMetrics(registry),
    http,
    log,
  });
}

/** From where and by which names the MCP endpoint may be called. */
function callersOf({ publicUrl, trustedProxies, releaseNamespace, ...config }: ApiConfig) {
  const service = { name: config.apiService, namespace: releaseNamespace };
  return {
    callerAddress: callerAddressBehind(trustedProxies),
    isOriginAllowed: allowedOrigins(publicUrl, config.allowedOrigins),
    isHostAllowed: allowedHosts({ publicUrl, service, listed: config.allowedHosts }),
  };
}

/** POSTs between API pods over connections that are kept open. */
function createPost() {
  const dispatcher = new HttpAgent({ connections: 16, keepAliveTimeout: 4_000 });
  return async (url: string, question: Question, signal: AbortSignal): Promise<number> => {
    const headers = { 'content-type': 'application/json', ...question.headers };
    const answer = await request(url, { method: 'POST', headers, body: question.body, signal, dispatcher });
    await answer.body.dump();
    return answer.statusCode;
  };
}

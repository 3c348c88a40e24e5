/** The process `boxwright gateway`: composition only. Runs call its TLS port; health and metrics are inside. */
import type { Dispatcher } from 'undici';
import type { PostgresArchive } from '../archive/postgres-archive.js';
import { loadConfig } from '../config/env.js';
import { createGatewayCaches, type GatewayCaches } from '../gateway/caches.js';
import { CachedReads } from '../kube/cached-reads.js';
import { GatewayConfig } from '../gateway/config.js';
import { createSecretNames } from '../gateway/credentials/secret-names.js';
import { createEndpointStatus } from '../gateway/endpoints/endpoint-status.js';
import { probeEndpoint } from '../gateway/endpoints/probe-endpoint.js';
import { createGateway } from '../gateway/gateway.js';
import { GatewayServer } from '../gateway/http/server.js';
import { tlsFromSecret } from '../gateway/http/tls.js';
import { createGatewayMetrics } from '../gateway/metrics.js';
import { Credentials } from '../gateway/providers/credentials.js';
import {
  createModelAccess,
  createProviderDispatcher,
  installationSecretOf,
  type ModelSettings,
  type ProxySettings,
} from '../gateway/providers/model-access.js';
import { createProviderStatus } from '../gateway/providers/provider-status.js';
import { ProviderClient } from '../gateway/providers/provider-client.js';
import { Secrets } from '../kube/core-types.js';
import { BodyBudget } from '../net/body-budget.js';
import { systemResolve } from '../net/dial.js';
import { operatorAddresses, publicAddresses } from '../net/public-address.js';
import { WebClient } from '../net/web-client.js';
import { createHttpMetrics } from '../observability/metrics.js';
import type { Problem } from '../observability/probes.js';
import type { Runnable } from '../runtime/manager.js';
import { openArchiveReader } from './archive-reader.js';
import {
  bootstrap,
  cacheProblems,
  cacheRunnables,
  closing,
  internalServer,
  runGroups,
  type ProcessBase,
  type RunnableGroup,
} from './bootstrap.js';

/** What all bodies on their way in may hold: calls of runs, answers of models and of MCP servers. */
const MAX_BODIES_BYTES = 128 * 1024 * 1024;

export interface GatewayProcessDeps extends ProcessBase {
  config: Pick<
    GatewayConfig,
    | 'releaseNamespace'
    | 'podName'
    | 'podUid'
    | 'podIp'
    | 'tlsSecretName'
    | 'gatewaySelector'
    | 'port'
    | 'internalPort'
    | 'clusterCidrs'
    | 'maxFinishedRuns'
  > &
    ModelSettings &
    ProxySettings;
  /** Absent when the installation has none. */
  archive?: PostgresArchive | undefined;
}

export interface GatewayProcess {
  /** In the order of their start; they stop in the reverse order. */
  groups: RunnableGroup[];
  server: GatewayServer;
  /** Why the pod is not ready; empty = ready. */
  problems: () => Problem[];
}

/** Everything of the process but its connection to the cluster. */
export function createGatewayProcess(deps: GatewayProcessDeps): GatewayProcess {
  const { config, api, clock, log, registry } = deps;
  let draining = false;
  const caches = createGatewayCaches(deps.informer, config);
  const dispatcher = createProviderDispatcher(config);
  const web = new WebClient({
    isPublic: publicAddresses(config.clusterCidrs),
    isTrusted: operatorAddresses(),
    resolve: systemResolve,
  });
  const bodies = new BodyBudget(MAX_BODIES_BYTES);
  const gateway = createGateway({
    api,
    caches,
    web,
    bodies,
    models: createModelAccess({ api, clock, log, settings: config, dispatcher, bodies }),
    archive: deps.archive,
    releaseNamespace: config.releaseNamespace,
    self: { gatewayPod: config.podName, gatewayUid: config.podUid, gatewayAddress: addressOf(config) },
    clock,
    metrics: createGatewayMetrics(registry),
    httpMetrics: createHttpMetrics(registry),
    maxFinishedRuns: config.maxFinishedRuns,
    isDraining: () => draining || server.isDraining,
    log,
  });
  const tls = tlsFromSecret(api, { namespace: config.releaseNamespace, name: config.tlsSecretName });
  const server = new GatewayServer({ port: config.port, tls, handler: gateway.handler, clock, log });
  const drain = () => {
    draining = true;
    return gateway.watch.flush();
  };
  const problems = () => [...cacheProblems({ ...caches }), ...serverProblems(server)];
  return {
    groups: [
      {
        name: 'connections',
        runnables: [closing('providers', () => dispatcher.destroy()), closing('MCP servers', () => web.close())],
      },
      { name: 'archive', runnables: [closing('archive', () => deps.archive?.close())] },
      { name: 'probes', runnables: [internalServer({ ...deps, port: config.internalPort, problems })] },
      { name: 'caches', runnables: cacheRunnables({ ...caches }) },
      { name: 'runs', runnables: [gateway.watch, ...tellers(deps, { caches, dispatcher, bodies })] },
      { name: 'server', runnables: [server] },
      { name: 'drain', runnables: [closing('drain', drain)] },
    ],
    server,
    problems,
  };
}

/** They tell the other processes what this one alone can know: which credentials there are, and which endpoints work. */
function tellers(
  deps: GatewayProcessDeps,
  { caches, dispatcher, bodies }: { caches: GatewayCaches; dispatcher: Dispatcher; bodies: BodyBudget },
): Runnable[] {
  const { api, clock, log, config } = deps;
  const installationSecret = installationSecretOf(config);
  const client = new ProviderClient({ clock, dispatcher });
  return [
    createSecretNames({ api, clock, log, agents: caches.credentials }),
    createProviderStatus({ api, clock, log, boxes: caches.boxes, installationSecret }),
    createEndpointStatus({
      api,
      clock,
      log,
      boxes: caches.boxes,
      gateways: caches.gateways,
      podName: config.podName,
      credentials: new Credentials(new CachedReads(api, Secrets, clock)),
      probe: (asked, stopping) => probeEndpoint({ clock, client, bodies }, asked, stopping),
    }),
  ];
}

function serverProblems(server: GatewayServer): Problem[] {
  if (server.isDraining) return [{ check: 'server', message: 'this pod is stopping' }];
  if (server.port === 0)
    return [{ check: 'server', message: 'the TLS port is not open: the certificate may be missing' }];
  return [];
}

/** host:port as runners dial it. */
function addressOf({ podIp, port }: Pick<GatewayConfig, 'podIp' | 'port'>): string {
  return podIp.includes(':') ? `[${podIp}]:${port}` : `${podIp}:${port}`;
}

/** Runs until SIGTERM; resolves with the exit code. */
export async function runGateway(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  const config = loadConfig(GatewayConfig, env);
  const { base, manager } = await bootstrap('gateway', config, env);
  const archive = openArchiveReader(config.archiveUrl, base);
  return runGroups(manager, createGatewayProcess({ ...base, config, archive }).groups);
}

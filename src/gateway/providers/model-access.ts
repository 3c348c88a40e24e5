/** Everything that calls of models and search engines need beside the run: credentials, catalogue and connections. */
import { Agent, EnvHttpProxyAgent, type Dispatcher } from 'undici';
import { ConfigMaps, Secrets } from '../../kube/core-types.js';
import type { KubeApi, ObjectRef } from '../../kube/types.js';
import type { BodyBudget } from '../../net/body-budget.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import { CachedReads } from '../../kube/cached-reads.js';
import type { GatewayConfig } from '../config.js';
import { CatalogSource } from '../../models/catalog-source.js';
import { Credentials } from './credentials.js';
import { ModelProxy } from './proxy.js';
import type { InstallationSearch } from '../search/targets.js';
import { Targets } from './targets.js';
import { ProviderClient } from './provider-client.js';

/** Settings of the installation. */
export type ModelSettings = Pick<GatewayConfig, 'releaseNamespace' | 'modelBaseUrls' | 'modelPricesConfigMap'> & {
  modelCredentialsSecret?: string | undefined;
  webSearchEngine?: InstallationSearch['engine'];
  webSearchBaseUrl?: string | undefined;
};

/** The HTTP proxy of the installation, where it has one. */
export type ProxySettings = Partial<Pick<GatewayConfig, 'httpsProxy' | 'noProxy'>>;

export interface ModelAccessOptions {
  api: Pick<KubeApi, 'get'>;
  clock: Clock;
  log: Logger;
  settings: ModelSettings;
  dispatcher: Dispatcher;
  /** The memory budget of all bodies of the process. */
  bodies: BodyBudget;
}

export interface ModelAccess {
  targets: Targets;
  proxy: ModelProxy;
  catalog: Pick<CatalogSource, 'contextWindowOf'>;
  client: ProviderClient;
  credentials: Credentials;
  /** The search engine of the installation. */
  search: InstallationSearch;
}

export function createModelAccess({ api, clock, log, settings, dispatcher, bodies }: ModelAccessOptions): ModelAccess {
  const namespace = settings.releaseNamespace;
  const credentials = new Credentials(new CachedReads(api, Secrets, clock));
  const maps = new CachedReads(api, ConfigMaps, clock);
  const catalog = new CatalogSource(maps, { namespace, name: settings.modelPricesConfigMap }, log);
  const client = new ProviderClient({ clock, dispatcher });
  const installationSecret = installationSecretOf(settings);
  return {
    catalog,
    client,
    credentials,
    search: { engine: settings.webSearchEngine, baseUrl: settings.webSearchBaseUrl, secret: installationSecret },
    targets: new Targets({
      credentials,
      prices: () => catalog.prices(),
      catalog,
      installationSecret,
      baseUrls: settings.modelBaseUrls,
    }),
    proxy: new ModelProxy({
      clock,
      random: Math.random,
      client,
      credentials,
      bodies,
      log,
    }),
  };
}

/** The Secret that serves Boxes which name none of their own. */
export function installationSecretOf(
  settings: Pick<ModelSettings, 'releaseNamespace' | 'modelCredentialsSecret'>,
): Required<ObjectRef> | undefined {
  const { releaseNamespace: namespace, modelCredentialsSecret: name } = settings;
  return name === undefined ? undefined : { namespace, name };
}

/** Connections to providers: kept open, and without bounds of their own, since every call has one. */
export function createProviderDispatcher({ httpsProxy, noProxy = [] }: ProxySettings = {}): Dispatcher {
  const options = {
    connections: 128,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 20_000,
    keepAliveMaxTimeout: 60_000,
    connect: { timeout: 10_000 },
  };
  if (httpsProxy === undefined) return new Agent(options);
  return new EnvHttpProxyAgent({
    ...options,
    httpsProxy,
    // An empty text: the environment says nothing about plain http, which goes to addresses of the operator.
    httpProxy: '',
    noProxy: [...IN_CLUSTER, ...noProxy].join(','),
  });
}

/** Names that no proxy outside knows. */
const IN_CLUSTER = ['localhost', '127.0.0.1', '.svc', '.cluster.local'];

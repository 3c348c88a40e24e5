/** Connectors as the tools find, attach and show them (spec 2). */
import { ANNOTATION_HOSTS, LABEL_CREDENTIAL, hostOf, secretNameOf } from '../../api/credentials.js';
import { MAX_CONNECTORS } from '../../api/v1alpha1/agent.js';
import type { CONNECTOR_AUTH } from '../../api/v1alpha1/connector.js';
import { changeAgent } from '../agents/change-agent.js';
import type { ChangeAgentDeps } from '../agents/change-agent.js';
import type { Caller } from '../keys/key-check.js';
import { nearNames } from '../near-names.js';
import { findAgent } from '../scope.js';
import type { ScopeDeps } from '../scope.js';
import { UserError } from '../../api/user-error.js';
import { projectApiAgent } from '../../projections/agent.js';
import type { ApiAgent } from '../../projections/agent.js';
import type { ApiConnector } from '../../projections/connector.js';
import { compare } from '../../runtime/compare.js';

/**
 * `needs_auth`: a credential is missing. `needs_config`: something else prevents it from working: the entry is gone from the
 * catalog, a value that is no credential is missing, or the Secret may not be sent to the connector's host.
 */
export type ConnectorStatus = 'active' | 'needs_auth' | 'needs_config';

/** A connector of an agent as the tools show it. */
export interface AgentConnector {
  slug: string;
  name: string;
  status: ConnectorStatus;
  missingSecrets: string[];
}

type Catalog = Pick<ScopeDeps, 'caches'>;

export interface ConnectorSearch {
  query: string;
  category?: string | undefined;
  limit: number;
}

/** The result of search_connectors: hits in slug and name first, then by slug. No request. */
export function searchConnectors(deps: Catalog, { query, category, limit }: ConnectorSearch) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = catalogOf(deps)
    .filter((connector) => category === undefined || connector.category.toLowerCase() === category.toLowerCase())
    .filter((connector) => words.every((word) => textOf(connector).includes(word)))
    .map((connector) => ({ connector, isNamed: words.some((word) => nameOf(connector).includes(word)) }))
    .sort((a, b) => Number(b.isNamed) - Number(a.isNamed) || compare(a.connector.name, b.connector.name));
  return { connectors: found.slice(0, limit).map(({ connector }) => catalogRecord(connector)) };
}

function nameOf({ name, displayName }: ApiConnector): string {
  return `${name} ${displayName}`.toLowerCase();
}

function textOf(connector: ApiConnector): string {
  return `${nameOf(connector)} ${connector.category} ${connector.description}`.toLowerCase();
}

function catalogRecord({ name, displayName, category, description, auth, secrets }: ApiConnector): {
  slug: string;
  name: string;
  category: string;
  description: string;
  auth: (typeof CONNECTOR_AUTH)[number];
  secrets: readonly string[];
} {
  return { slug: name, name: displayName, category, description, auth, secrets };
}

function catalogOf({ caches }: Catalog): ApiConnector[] {
  return [...caches.Connector.values()].filter((connector) => !connector.deleting);
}

function findConnector({ caches }: Catalog, slug: string): ApiConnector | undefined {
  const connector = caches.Connector.get(slug);
  return connector === undefined || connector.deleting ? undefined : connector;
}

/** Whether the catalog has the slug. */
export function isInCatalog(deps: Catalog, slug: string): boolean {
  return findConnector(deps, slug) !== undefined;
}

/** Throws for the first slug that is not in the catalog, naming similar ones. */
export function expectInCatalog(deps: Catalog, slugs: readonly string[]): void {
  const unknown = slugs.find((slug) => !isInCatalog(deps, slug));
  if (unknown !== undefined) throw new UserError(notInCatalog(deps, unknown));
}

/** The message for a slug that is not in the catalog. */
export function notInCatalog(deps: Catalog, slug: string): string {
  const names = catalogOf(deps).map(({ name }) => name);
  const near = nearNames(slug, names);
  const hint = near === '' ? 'the catalog is empty' : `near ones: ${near}; search_connectors lists all`;
  return `connector slug not in the catalog: ${hint}`;
}

/** The connectors of an agent in the order in which they were attached. No request. */
export function connectorsOf(deps: Catalog, agent: ApiAgent): AgentConnector[] {
  return agent.connectors.map((slug) => agentConnector(agent, slug, findConnector(deps, slug)));
}

/** `{slug, name, status}`, as in create_agent and get_agent. */
export function connectorSummaries(deps: Catalog, agent: ApiAgent) {
  return connectorsOf(deps, agent).map(({ slug, name, status }) => ({ slug, name, status }));
}

type Credentials = Pick<ApiAgent, 'presentSecrets' | 'secretHosts'>;

function agentConnector(agent: Credentials, slug: string, connector: ApiConnector | undefined): AgentConnector {
  if (connector === undefined) return { slug, name: slug, status: 'needs_config', missingSecrets: [] };
  const missingSecrets = connector.secrets.filter((name) => !agent.presentSecrets.includes(name));
  return { slug, name: connector.displayName, status: statusOf(agent, connector, missingSecrets), missingSecrets };
}

function statusOf(agent: Credentials, connector: ApiConnector, missing: readonly string[]): ConnectorStatus {
  if (missing.length > 0) return connector.auth === 'none' ? 'needs_config' : 'needs_auth';
  const host = hostOf(connector.url);
  const mayGoThere = connector.secrets.length === 0 || (host !== undefined && agent.secretHosts.includes(host));
  return mayGoThere ? 'active' : 'needs_config';
}

/** The result of list_agent_connectors. No request. */
export async function listAgentConnectors(deps: ScopeDeps, caller: Caller, id: string) {
  return { connectors: connectorsOf(deps, await findAgent(deps, caller, id)) };
}

/** The result of attach_connector; one write, none when it is attached already. */
export async function attachConnector(deps: ChangeAgentDeps, caller: Caller, id: string, slug: string) {
  const known = await findAgent(deps, caller, id);
  expectInCatalog(deps, [slug]);
  const agent = await changeAgent(deps, caller, known, ({ spec }) => {
    const attached = spec.connectors ?? [];
    if (attached.includes(slug)) return undefined;
    if (attached.length >= MAX_CONNECTORS) {
      throw new UserError(`an agent has at most ${MAX_CONNECTORS} connectors: detach one first`);
    }
    return { connectors: [...attached, slug] };
  });
  const projected = projectApiAgent(agent);
  const connector = agentConnector(projected, slug, findConnector(deps, slug));
  return { ...connector, nextStep: nextStepOf(deps, projected, connector) };
}

/** The result of detach_connector; one write. */
export async function detachConnector(deps: ChangeAgentDeps, caller: Caller, id: string, slug: string) {
  const known = await findAgent(deps, caller, id);
  await changeAgent(deps, caller, known, ({ spec }) => {
    const attached = spec.connectors ?? [];
    if (!attached.includes(slug)) throw new UserError(notAttached(attached));
    return { connectors: attached.filter((one) => one !== slug) };
  });
  return { detached: slug };
}

function notAttached(attached: readonly string[]): string {
  const hint = attached.length === 0 ? 'it has none' : `attached are: ${attached.join(', ')}`;
  return `connector not attached: this agent has no connector with this slug; ${hint}`;
}

/** Quoted as one word for a shell: whoever may write the Secret chooses the text of the hosts. */
function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The command that makes the connector work, with VALUE in place of each credential; null when nothing is to be done. */
function nextStepOf(deps: Catalog, agent: ApiAgent, connector: AgentConnector): string | null {
  if (connector.status === 'active') return null;
  const hosts = agent.connectors.flatMap((slug) => {
    const known = findConnector(deps, slug);
    return known === undefined || known.secrets.length === 0 ? [] : [hostOf(known.url) ?? ''];
  });
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: secretNameOf(agent.name),
      namespace: agent.namespace,
      labels: { [LABEL_CREDENTIAL]: 'true' },
      annotations: { [ANNOTATION_HOSTS]: [...new Set([...agent.secretHosts, ...hosts])].sort().join(',') },
    },
    ...(connector.missingSecrets.length === 0
      ? {}
      : { stringData: Object.fromEntries(connector.missingSecrets.map((name) => [name, 'VALUE'])) }),
  };
  // Server-side apply with a manager for each connector adds to a Secret that is there and removes nothing from it.
  return `echo ${shellQuoted(JSON.stringify(secret))} | kubectl apply --server-side --force-conflicts --field-manager=credentials-${connector.slug} -f -`;
}

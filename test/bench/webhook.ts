/**
 * Webhooks against raw creates of the same object on the same API server, in turns (an accepted hit is one
 * create). Controller and gateway are stopped, so that nothing works on the runs meanwhile.
 */
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { Installation } from '../builders/installation.js';
import { round, undiciClient } from './load.js';
import type { LoadClient, LoadRequest } from './load.js';
import { compare } from './pairs.js';
import type { Row } from './pairs.js';

const LEVELS = [
  { atOnce: 1, agent: 'ada' },
  { atOnce: 16, agent: 'bob' },
  { atOnce: 64, agent: 'cleo' },
];
/** Of one phase; all phases together stay below the backlog budgets of agents, Boxes and the installation. */
const REQUESTS = 350;
const WARM_UP = 50;
/** Raw creates and the first hits go to Boxes of their own: their runs take no place in the budget of the hits. */
const BOXES = ['bench', 'raw', 'warm'];
/** A process that has just started measures its compiler. */
const FIRST_HITS = 2_000;

export interface WebhookReport {
  rows: Row[];
  /** Requests to the API server for one hit. */
  requestsPerHit: number;
}

export interface BenchContext {
  clients: readonly LoadClient[];
  say: (line: string) => void;
}

export async function runWebhookBench(context: BenchContext): Promise<WebhookReport> {
  const installation = await Installation.start();
  try {
    for (const name of BOXES) await installation.createBox({ name, agents: LEVELS.map(({ agent }) => agent) });
    const hits = new Map<string, LoadRequest>();
    for (const { agent } of LEVELS) hits.set(agent, hitOf(await installation.createTrigger(`bench.${agent}`, 'Hook')));
    const first = hitOf(await installation.createTrigger('warm.ada', 'Hook'));
    await installation.processes.controller.stop();
    await installation.processes.gateway.stop();
    await undiciClient.send(first, { requests: FIRST_HITS, atOnce: 16 });
    return await measure(installation, hits, context);
  } finally {
    await installation.stop();
  }
}

function hitOf(url: string): LoadRequest {
  const body = JSON.stringify({ text: 'x'.repeat(700) });
  return { url, method: 'POST', headers: { 'content-type': 'application/json' }, body, status: 202 };
}

async function measure(
  installation: Installation,
  hits: ReadonlyMap<string, LoadRequest>,
  { clients, say }: BenchContext,
): Promise<WebhookReport> {
  const { api } = installation.processes;
  const requests = () => api.metric('boxwright_kube_requests_total', { resource: 'agentruns' });
  const rows: Row[] = [];
  let [asked, sent] = [0, 0];
  for (const { atOnce, agent } of LEVELS) {
    const hit = hits.get(agent) as LoadRequest;
    await undiciClient.send(hit, { requests: WARM_UP, atOnce });
    const raw = await rawCreate(installation, agent);
    for (const client of clients) await client.send(raw, { requests: WARM_UP, atOnce });
    const load = { requests: REQUESTS, atOnce };
    const limits = clients.map((client) => [`raw ${client.name}`, () => client.send(raw, load)] as const);
    const ours = async () => {
      const before = await requests();
      const phase = await undiciClient.send(hit, load).catch((error: unknown) => withOutcomes(api, error));
      asked += (await requests()) - before;
      sent += REQUESTS;
      return phase;
    };
    const compared = { what: 'webhook', pid: api.pid, ours, limits: Object.fromEntries(limits), ...load };
    rows.push(await compare(compared, say));
  }
  return { rows, requestsPerHit: round(asked / sent) };
}

/** A hit that is turned away does not tell its caller why; the metric does. */
async function withOutcomes(api: Installation['processes']['api'], cause: unknown): Promise<never> {
  const samples = await api.samples('boxwright_webhook_calls_total');
  const outcomes = samples.map(({ labels, value }) => `${labels['outcome'] ?? ''} ${value}`).join(', ');
  throw new Error(`a hit failed; calls by outcome: ${outcomes}`, { cause });
}

/** The create of a run as a hit makes it, by another name. */
async function rawCreate({ server }: Installation, agent: string): Promise<LoadRequest> {
  const { items } = await server.api.list(AgentRuns, { namespace: 'bw-bench' });
  const { apiVersion, kind, spec, metadata } = items.find((run) => run.spec.agent === agent) as AgentRun;
  const { labels, annotations, finalizers } = metadata;
  const object = { apiVersion, kind, metadata: { namespace: 'bw-raw', name: '{name}', labels, annotations, finalizers }, spec }; // prettier-ignore
  return {
    url: `${server.connection.server}/apis/boxwright.dev/v1alpha1/namespaces/bw-raw/agentruns`,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(object),
    status: 201,
    tls: installationTls(server),
  };
}

/** The certificates with which the product's processes reach the API server. */
export function installationTls({ connection }: Installation['server']) {
  const { ca = '', cert = '', key = '' } = connection;
  return { ca, cert, key };
}

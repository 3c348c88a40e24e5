/**
 * Messages of runs to the MCP servers of their agents: only for a run that this pod serves, only to a server
 * that its agent has now, with a person's approval where the agent needs one. Address and credentials stay here.
 * See docs/architecture.md#mcp-servers-and-connectors.
 */
import { hostOf, referencesOf } from '../../api/credentials.js';
import type { Cache } from '../../kube/types.js';
import type { TrustedHost } from '../../net/web-client.js';
import { MCP_FAMILY, mcpToolName } from '../../protocol/mcp.js';
import { isAllowed, needsPerson, type AskedCall } from '../tools/allowed-calls.js';
import { agentOf } from '../tools/tool-context.js';
import type { RunIdentity } from '../auth/run-authenticator.js';
import { GatewayError } from '../errors.js';
import type { CallResult, GatewayMetrics } from '../metrics.js';
import type { AnswerSink } from '../models/answer-sink.js';
import type { RunInputs } from '../runs/run-inputs.js';
import type { Ownership } from '../runs/ownership.js';
import type { RunStore } from '../runs/run-store.js';
import type { ServedRun } from '../runs/served-runs.js';
import { NO_SECRET, SecretRefusal, type AgentSecrets } from './agent-secret.js';
import { readMessage, type McpMessage } from './message.js';
import { redactor } from './redact.js';
import { refused, type McpProxy, type McpTarget } from './proxy.js';
import { serversOf, type HttpServer } from './server-list.js';
import type { GatewayAgent } from '../../projections/agent.js';
import type { GatewayBox } from '../../projections/box.js';
import type { GatewayConnector } from '../../projections/connector.js';

/** Calls of one run at the same time: it asks all its servers at its start. */
const MAX_IN_FLIGHT = 24;
/** Not a user's to set: what frames the request, and what MCP itself says. */
const OWN_HEADERS =
  /^(host|content-.*|transfer-encoding|connection|keep-alive|upgrade|expect|te|trailer|proxy-.*|accept|mcp-.*)$/i;

export interface McpCallsOptions {
  store: RunStore;
  ownership: Pick<Ownership, 'resolve'>;
  boxes: Pick<RunInputs, 'boxOf'>;
  agents: Pick<Cache<GatewayAgent>, 'get'>;
  connectors: Pick<Cache<GatewayConnector>, 'get'>;
  secrets: Pick<AgentSecrets, 'forHost'>;
  proxy: Pick<McpProxy, 'exchange'>;
  metrics: Pick<GatewayMetrics, 'proxied'>;
}

export interface McpCall {
  identity: RunIdentity;
  /** From the path. */
  server: string;
  /** The parsed JSON of the request; undefined for DELETE. */
  body: unknown;
  /** As they came. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Fires when the runner went away. */
  signal: AbortSignal;
}

export class McpCalls {
  readonly #options: McpCallsOptions;
  readonly #inFlight = new WeakMap<ServedRun, number>();

  constructor(options: McpCallsOptions) {
    this.#options = options;
  }

  /** Writes the answer to the sink. Rejects with 400, 403 (not approved), 404, 409, 410, 421, 429, 502 or 503. */
  async call(call: McpCall, sink: AnswerSink): Promise<void> {
    const served = await this.#options.ownership.resolve(call.identity);
    const run = await this.#options.store.find(served.ref);
    const agent = agentOf(run, this.#options.agents);
    const server = agent === undefined ? undefined : this.#serverOf(agent, call.server);
    if (agent === undefined || server === undefined) throw noSuchServer(call.server);
    const result = { value: 'refused' as CallResult };
    const release = this.#take(served);
    try {
      const message = call.body === undefined ? undefined : readMessage(call.body);
      const box = await this.#options.boxes.boxOf(call.identity.namespace);
      const target = await this.#targetOf(server, agent, box);
      if (message?.call !== undefined) await this.#expectAllowed({ run, agent, box }, server, message.call);
      const headers = headersOf(call.headers, message);
      await this.#options.proxy.exchange({ target, message, headers, signal: call.signal, sink, result });
    } finally {
      release();
      this.#options.metrics.proxied(server.kind, result.value);
    }
  }

  /** Throws 403. */
  async #expectAllowed(
    asking: Pick<AskedCall, 'run' | 'agent' | 'box'>,
    server: HttpServer,
    { tool, input }: NonNullable<McpMessage['call']>,
  ): Promise<void> {
    const name = mcpToolName(server.name, tool);
    const approvable = { name, family: MCP_FAMILY, server: server.name };
    if (await isAllowed(this.#options.store, { ...asking, tool: approvable, input })) return;
    throw new GatewayError(403, needsPerson(name), { type: 'NotApproved' });
  }

  #serverOf(agent: GatewayAgent, name: string): HttpServer | undefined {
    const { servers } = serversOf(agent, this.#options.connectors);
    return servers.filter((server) => server.transport === 'http').find((server) => server.name === name);
  }

  #take(served: ServedRun): () => void {
    const before = this.#inFlight.get(served) ?? 0;
    if (before >= MAX_IN_FLIGHT) {
      throw new GatewayError(429, 'too many MCP calls of this run are in flight', {
        type: 'CallInFlight',
        retryAfterSeconds: 1,
      });
    }
    this.#inFlight.set(served, before + 1);
    return () => void this.#inFlight.set(served, (this.#inFlight.get(served) ?? 1) - 1);
  }

  /** References are filled in here, for one call. */
  async #targetOf(server: HttpServer, agent: GatewayAgent, box: GatewayBox): Promise<McpTarget> {
    const { name, url, headers } = server;
    const host = hostOf(url);
    if (host === undefined) throw refused(name, 'has no address with a fixed host: a reference cannot stand in it');
    try {
      const secret = referencesOf(server).length > 0 ? await this.#options.secrets.forHost(agent, host) : NO_SECRET;
      const filledUrl = new URL(secret.fill(url, encodeURIComponent));
      const own = headers.filter((header) => !OWN_HEADERS.test(header.name));
      return {
        server: name,
        box: box.name,
        url: filledUrl,
        headers: Object.fromEntries(own.map((header) => [header.name.toLowerCase(), secret.fill(header.value)])),
        trusted: trustedHost(box, filledUrl),
        redact: redactor(secret.values),
      };
    } catch (error) {
      if (error instanceof SecretRefusal) throw refused(name, `is not asked: ${error.message}`);
      throw error;
    }
  }
}

/** What the operator of the Box wrote for the host and port of the address. */
function trustedHost({ trustedHosts }: Pick<GatewayBox, 'trustedHosts'>, url: URL): TrustedHost | undefined {
  return trustedHosts.find(({ host }) => host === url.host);
}

/** Headers of MCP alone; what repeats the message comes from the message. */
function headersOf(given: McpCall['headers'], message: McpMessage | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    if (!/^mcp-(protocol-version|session-id|param-[a-z0-9-]{1,64})$/.test(name)) continue;
    if (typeof value === 'string' && /^[\x20-\x7e]{1,1024}$/.test(value)) headers[name] = value;
  }
  if (given['mcp-method'] === undefined || message?.method === undefined) return headers;
  const name = message.call === undefined ? {} : { 'mcp-name': headerText(message.call.tool) };
  return { ...headers, 'mcp-method': message.method, ...name };
}

/** MCP 2026-07-28: text that no header carries stands there in base64. */
function headerText(text: string): string {
  const isPlain = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text);
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}

function noSuchServer(name: string): GatewayError {
  return new GatewayError(404, `the agent of this run has no MCP server ${name}, or it is switched off`, {
    type: 'McpNotFound',
  });
}

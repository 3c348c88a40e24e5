/**
 * HTTP of the gateway: who calls is checked before a body is read; errors become the statuses of src/protocol/run.ts.
 * What a body says never goes into a log or an error.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { KubeApiError, KubeConnectionError } from '../../kube/errors.js';
import type { Logger } from '../../observability/logger.js';
import { mediaTypeOf } from '../../net/media-type.js';
import type { BodyBudget } from '../../net/body-budget.js';
import type { HttpMetrics } from '../../observability/metrics.js';
import { MAX_MCP_ANSWER_DEPTH, MAX_MCP_MESSAGE_BYTES } from '../../protocol/mcp.js';
import { parseBounded } from '../../protocol/bounded-parse.js';
import { issuePath } from '../../protocol/issues.js';
import { ClaimRequest, EventsRequest, FinishRequest, ToolRequest, type RunEvent } from '../../protocol/run.js';
import type { Clock } from '../../runtime/clock.js';
import type { GatewayTools } from '../tools/tools.js';
import type { ApiAuthenticator } from '../auth/api-authenticator.js';
import type { RunAuthenticator, RunIdentity } from '../auth/run-authenticator.js';
import { GatewayError, tryAgain } from '../errors.js';
import type { McpCalls } from '../mcp/mcp-calls.js';
import type { AnswerSink } from '../models/answer-sink.js';
import type { ModelCalls } from '../models/model-calls.js';
import type { Claims } from '../runs/claims.js';
import type { RunFinisher } from '../runs/finishes.js';
import type { Reports } from '../runs/reports.js';
import type { RunFeed } from '../runs/run-feed.js';
import { readJson } from './body.js';
import { routeOf, type Route } from './routes.js';

const MAX_CLAIM_BYTES = 64 * 1024;
/** A runner holds at most 8 MiB of events that are not stored. */
const MAX_REPORT_BYTES = 9 * 1024 * 1024;
/** A skill of 1 MiB, in JSON. */
const MAX_TOOL_BYTES = 3 * 1024 * 1024;
/** A history of 1 MiB and the tool results of one run. */
const MAX_MODEL_BYTES = 9 * 1024 * 1024;
/** Schemas of the tools of MCP servers stand in it, which may nest as deep as an answer of one. */
const MODEL_LIMITS = { depth: 2 * MAX_MCP_ANSWER_DEPTH };

export interface GatewayHandlerOptions {
  authenticator: Pick<RunAuthenticator, 'authenticate'>;
  /** Of the feed, which is for API pods alone. */
  apiAuthenticator: Pick<ApiAuthenticator, 'authenticate'>;
  feed: Pick<RunFeed, 'read' | 'follow'>;
  claims: Pick<Claims, 'claim'>;
  reports: Pick<Reports, 'report'>;
  tools: Pick<GatewayTools, 'call'>;
  finisher: Pick<RunFinisher, 'finish'>;
  models: Pick<ModelCalls, 'call'>;
  mcp: Pick<McpCalls, 'call'>;
  /** True while the process stops: runners go to another pod. */
  isDraining: () => boolean;
  /** The memory budget of all bodies of the process. */
  bodies: BodyBudget;
  clock: Clock;
  metrics: HttpMetrics;
  log: Logger;
}

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
}

export class GatewayHandler {
  readonly #options: GatewayHandlerOptions;

  constructor(options: GatewayHandlerOptions) {
    this.#options = options;
  }

  /** Answers one request; never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clock, metrics, log } = this.#options;
    const startedAt = clock.monotonic();
    const route = routeOf(request.url ?? '');
    try {
      await this.#answer(route, request, response);
    } catch (error) {
      this.#sendError(route, { request, response }, error);
    }
    const seconds = (clock.monotonic() - startedAt) / 1000;
    const method = request.method ?? '';
    metrics.observe({ route: route.pattern, method, status: response.statusCode, seconds });
    log.debug({ route: route.pattern, method, status: response.statusCode, seconds }, 'answered');
  }

  async #answer(route: Route, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#options.isDraining()) throw tryAgain('this gateway pod is stopping', 1);
    if (route.kind === 'none') throw new GatewayError(404, 'there is no such call');
    const allowed = methodsOf(route);
    if (!allowed.includes(request.method ?? '')) {
      throw new GatewayError(405, `use ${allowed.join(' or ')}`, { type: 'MethodNotAllowed' });
    }
    if (route.kind === 'feed') return this.#feedCall(route, request, response);
    const identity = await this.#options.authenticator.authenticate(tokenOf(route, request.headers));
    if (route.kind === 'run') return sendJson(response, 200, await this.#runCall(route, identity, request));
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    if (route.kind === 'mcp') return this.#mcpCall({ route, identity, signal: gone.signal }, request, response);
    const body = await readJson(request, {
      maxBytes: MAX_MODEL_BYTES,
      limits: MODEL_LIMITS,
      bodies: this.#options.bodies,
    });
    const call = { identity, provider: route.provider, path: route.path, body, signal: gone.signal };
    await this.#options.models.call(call, sinkOf(response, gone.signal));
    response.end();
  }

  async #feedCall(
    { namespace, run, after }: Extract<Route, { kind: 'feed' }>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { apiAuthenticator, feed } = this.#options;
    await apiAuthenticator.authenticate(request.headers.authorization);
    const ref = { namespace, name: run };
    if (mediaTypeOf(request.headers.accept ?? '') !== 'text/event-stream') {
      return sendJson(response, 200, feed.read(ref, after));
    }
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    await feed.follow(ref, after, sinkOf(response, gone.signal), gone.signal);
    response.end();
  }

  async #mcpCall(
    { route, identity, signal }: { route: Extract<Route, { kind: 'mcp' }>; identity: RunIdentity; signal: AbortSignal },
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const isPost = request.method === 'POST';
    const body = isPost ? await this.#json(request, MAX_MCP_MESSAGE_BYTES) : undefined;
    const call = { identity, server: route.server, body, headers: request.headers, signal };
    await this.#options.mcp.call(call, sinkOf(response, signal));
    response.end();
  }

  async #runCall(
    route: Extract<Route, { kind: 'run' }>,
    identity: RunIdentity,
    request: IncomingMessage,
  ): Promise<unknown> {
    if (route.namespace !== identity.namespace || route.run !== identity.runName) {
      throw new GatewayError(403, 'the token belongs to another run', { type: 'OtherRun' });
    }
    const { claims, reports, tools, finisher } = this.#options;
    switch (route.call) {
      case 'claim':
        return claims.claim(identity, fit(ClaimRequest, await this.#json(request, MAX_CLAIM_BYTES)));
      case 'events': {
        const report = fit(EventsRequest, await this.#json(request, MAX_REPORT_BYTES));
        return reports.report(identity, {
          ...report,
          events: inOrder(report.events),
          live: inOrder(report.live ?? []),
        });
      }
      case 'tool':
        return tools.call(identity, fit(ToolRequest, await this.#json(request, MAX_TOOL_BYTES)));
      case 'finish': {
        const report = fit(FinishRequest, await this.#json(request, MAX_REPORT_BYTES));
        return finisher.finish(identity, { ...report, events: inOrder(report.events) });
      }
    }
  }

  #json(request: IncomingMessage, maxBytes: number): Promise<unknown> {
    return readJson(request, { maxBytes, bodies: this.#options.bodies });
  }

  #sendError(route: Route, { request, response }: Exchange, error: unknown): void {
    const { log } = this.#options;
    const known = asGatewayError(error);
    const fields = { route: route.pattern, status: known.status, type: known.type };
    if (known.status >= 500) log.warn({ ...fields, err: error }, 'a call failed');
    // Anybody who reaches the port can cause these: they are counted, but fill no log.
    else if (known.status === 401 || known.status === 429) log.debug(fields, 'a call was refused');
    else log.info(fields, 'a call was refused');
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (known.retryAfterSeconds !== undefined) response.setHeader('retry-after', String(known.retryAfterSeconds));
    if (known.status === 405) response.setHeader('allow', methodsOf(route).join(', '));
    // The rest of the body is not read.
    if (!request.complete && request.isPaused()) response.setHeader('connection', 'close');
    // Another pod's address reads the same on every route: the runner follows it before it looks at the call.
    const isTyped = (route.kind === 'model' || route.kind === 'mcp') && known.status !== 421;
    sendJson(response, known.status, {
      error: isTyped ? { type: known.type, message: known.message } : known.message,
      ...known.fields,
    });
  }
}

function asGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof z.ZodError) {
    const [issue] = error.issues;
    const where = issue === undefined ? '' : ` at ${issuePath(issue)} (${issue.code})`;
    return new GatewayError(400, `the request does not fit the protocol${where}`, { type: 'BadRequest' });
  }
  if (error instanceof KubeApiError || error instanceof KubeConnectionError) {
    return tryAgain('the Kubernetes API server did not take the write or read');
  }
  return new GatewayError(500, 'internal error', { type: 'InternalError' });
}

/** Throws a ZodError for what does not fit the protocol. */
function fit<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  const parsed = parseBounded(schema, body);
  if (!parsed.success) throw parsed.error;
  return parsed.data;
}

/** A session of an MCP server can be ended. Its own messages, which GET is for, are not taken. */
function methodsOf(route: Route): readonly string[] {
  if (route.kind === 'feed') return ['GET'];
  return route.kind === 'mcp' ? ['POST', 'DELETE'] : ['POST'];
}

/** Sequences rise within a report. */
function inOrder(events: readonly RunEvent[]): RunEvent[] {
  if (events.some((event, index) => event.seq <= (events[index - 1]?.seq ?? 0))) {
    throw new GatewayError(400, 'the sequence numbers of the events must rise from 1', { type: 'BadRequest' });
  }
  return [...events];
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** The SDKs of some providers send their key, which is the run token here, in a header of its own. */
function tokenOf(route: Route, headers: IncomingMessage['headers']): string | undefined {
  if (route.kind !== 'model' || headers.authorization !== undefined) return headers.authorization;
  const key = headers['x-api-key'] ?? headers['x-goog-api-key'];
  return typeof key === 'string' ? `Bearer ${key}` : undefined;
}

function sinkOf(response: ServerResponse, gone: AbortSignal): AnswerSink {
  return {
    start(status, contentType, headers = {}) {
      response.writeHead(status, { ...headers, 'content-type': contentType, 'cache-control': 'no-cache' });
    },
    async write(piece) {
      if (response.write(piece) || gone.aborted) return;
      // A runner that went away takes no more; whoever reads the provider sees the same signal.
      await once(response, 'drain', { signal: gone }).catch(() => undefined);
    },
  };
}

/**
 * `POST /api/mcp/account` (spec 4.1, 5, 7): the key first, then Origin and Host, before a byte of the body is read; then the raw
 * body with a cap; then one JSON answer. Stateless: no stream, no session id.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CallerAddress } from '../net/caller-address.js';
import type { BodyBudget } from '../net/body-budget.js';
import { readCappedBody } from '../net/capped-body.js';
import type { HttpMetrics } from '../observability/metrics.js';
import type { Logger } from '../observability/logger.js';
import type { Clock } from '../runtime/clock.js';
import type { Caller, KeyCheck } from '../services/keys/key-check.js';
import type { Dispatcher } from './dispatcher.js';
import type { WrongKeys } from './wrong-keys.js';
import { INTERNAL_ERROR, INVALID_REQUEST, errorBytes } from './json-rpc.js';

export const MCP_ROUTE = '/api/mcp/account';
/** A test_trigger call with a 1 MB body may have 6 MB once escaped as JSON. */
export const MAX_MCP_BODY_BYTES = 8 * 1024 * 1024;
/** Keeps proxies and clients from giving up on a long call: white space before JSON is legal. */
export const HEARTBEAT_MS = 15_000;

export interface McpRouterDeps {
  keys: KeyCheck;
  wrongKeys: WrongKeys;
  callerAddress: CallerAddress;
  dispatcher: Dispatcher;
  /** Whether a page of this origin may call the endpoint. */
  isOriginAllowed(origin: string): boolean;
  /** Whether the endpoint may be called by this name. */
  isHostAllowed(host: string): boolean;
  /** The memory budget of all bodies of the process. */
  bodies: BodyBudget;
  http: HttpMetrics;
  log: Logger;
  clock: Clock;
}

/** One line that clients show to their user. */
const UNAUTHORIZED = 'Unauthorized: send the header "Authorization: Bearer <API_KEY>" with a valid API key\n';

/** Fits `app.use` of express. */
export type McpRouter = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;

/** Answers every call of the endpoint and passes on all others. A router of express costs as much as a short read. */
export function createMcpRouter(deps: McpRouterDeps): McpRouter {
  return (request, response, next) => {
    if (!isMcpPath(request.url ?? '')) return next();
    const started = deps.clock.monotonic();
    response.once('close', () => {
      const seconds = (deps.clock.monotonic() - started) / 1000;
      const method = request.method ?? '';
      deps.http.observe({ route: MCP_ROUTE, method, status: response.statusCode, seconds });
    });
    void answer(deps, request, response);
  };
}

/** Users paste the URL with a trailing slash. */
function isMcpPath(url: string): boolean {
  const [path] = url.split('?', 1);
  return path === MCP_ROUTE || path === `${MCP_ROUTE}/`;
}

async function answer(deps: McpRouterDeps, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const caller = await deps.keys.check(request.headers.authorization);
    const address = deps.callerAddress(request);
    if (caller === undefined) {
      if (request.headers.authorization === undefined) return sendUnauthorized(response, false);
      return deps.wrongKeys.tried(address, (close) => sendUnauthorized(response, close));
    }
    const { origin, host } = request.headers;
    if (origin !== undefined && !deps.isOriginAllowed(origin)) return sendForbidden(response, FOREIGN_ORIGIN);
    // Without one it is no browser: HTTP/1.1 asks for it, and Node answers 400 itself.
    if (host !== undefined && !deps.isHostAllowed(host)) return sendForbidden(response, FOREIGN_HOST);
    if (request.method !== 'POST') return sendMethodNotAllowed(response);
    await answerMessage(deps, { ...caller, address }, request, response);
  } catch (error) {
    deps.log.error({ err: error }, 'MCP call failed');
    finish(response, errorBytes('null', INTERNAL_ERROR, 'Internal error: try again'));
  }
}

/** Answers the JSON-RPC message in the body of a call whose caller is known. */
export async function answerMessage(
  deps: Pick<McpRouterDeps, 'dispatcher' | 'bodies' | 'clock'>,
  caller: Caller,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  // An abort makes an error with a stack: a tenth of the work of a short read, and nobody waits for it after the answer.
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  // All of it is read, so that a client that writes everything before it reads gets the answer.
  const budget = { all: deps.bodies, address: request.socket.remoteAddress ?? '' };
  const limits = { maxBytes: MAX_MCP_BODY_BYTES, maxReadBytes: Infinity, budget };
  const { state, body } = await readCappedBody(request, limits);
  if (state === 'too_large') {
    const message = `Invalid Request: the body has more than ${MAX_MCP_BODY_BYTES} bytes`;
    return finish(response, errorBytes('null', INVALID_REQUEST, message));
  }
  if (state === 'stalled') {
    response.setHeader('connection', 'close');
    return finish(
      response,
      errorBytes('null', INVALID_REQUEST, 'Invalid Request: the body came too slowly: try again'),
    );
  }
  if (state !== 'complete') return;
  const stopHeartbeat = startHeartbeat(deps.clock, response);
  try {
    const bytes = await deps.dispatcher.dispatch(body, caller, gone.signal);
    if (bytes === undefined) response.writeHead(202, { 'content-length': '0' }).end();
    else finish(response, bytes);
  } finally {
    stopHeartbeat();
  }
}

/** After 15 s the headers and a space go out, then a space every 15 s. Returns stop. */
function startHeartbeat(clock: Clock, response: ServerResponse): () => void {
  const beat = () => {
    if (response.destroyed) return;
    if (!response.headersSent) response.writeHead(200, JSON_HEADERS);
    response.write(' ');
    cancel = clock.after(HEARTBEAT_MS, beat);
  };
  let cancel = clock.after(HEARTBEAT_MS, beat);
  return () => cancel();
}

const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' };

/** Ends the answer; the status is 200 whatever happened (spec 7). */
function finish(response: ServerResponse, body: readonly Buffer[]): void {
  if (response.destroyed || response.writableEnded) return;
  if (!response.headersSent) response.writeHead(200, { ...JSON_HEADERS, 'content-length': lengthOf(body) });
  for (const bytes of body) response.write(bytes);
  response.end();
}

function lengthOf(body: readonly Buffer[]): number {
  return body.reduce((sum, { length }) => sum + length, 0);
}

function sendUnauthorized(response: ServerResponse, close: boolean): void {
  if (response.destroyed) return;
  if (close) response.setHeader('connection', 'close');
  response
    .writeHead(401, { 'content-type': 'text/plain; charset=utf-8', 'www-authenticate': 'Bearer' })
    .end(UNAUTHORIZED);
}

const FOREIGN_ORIGIN =
  'Forbidden: web pages of this Origin may not call; api.allowedOrigins of the chart lists those that may';
const FOREIGN_HOST =
  'Forbidden: the endpoint is not known by the name in the Host header; api.allowedHosts of the chart lists further names';

/** MCP requires it against DNS rebinding. */
function sendForbidden(response: ServerResponse, message: string): void {
  const body = errorBytes('null', INVALID_REQUEST, message);
  response.writeHead(403, { ...JSON_HEADERS, 'content-length': lengthOf(body) });
  for (const bytes of body) response.write(bytes);
  response.end();
}

function sendMethodNotAllowed(response: ServerResponse): void {
  const body = errorBytes('null', INVALID_REQUEST, 'Method not allowed: this endpoint takes POST only');
  response
    .writeHead(405, { ...JSON_HEADERS, allow: 'POST', 'content-length': lengthOf(body) })
    .end(Buffer.concat(body));
}

/**
 * `POST /api/mcp/account` on express (spec 4.1, 5, 7): the key first, before a byte of the body is read; then the raw
 * body with a cap; then one JSON answer. Stateless: no stream, no session id.
 */
import { Router } from 'express';
import type { Request, Response } from 'express';
import type { HttpMetrics } from '../observability/metrics.js';
import type { Logger } from '../observability/logger.js';
import type { Clock } from '../runtime/clock.js';
import type { Caller, KeyCheck } from '../services/key-check.js';
import type { Dispatcher } from './dispatcher.js';
import { INTERNAL_ERROR, INVALID_REQUEST, errorText } from './json-rpc.js';
import { readCappedBody } from './request-body.js';

export const MCP_ROUTE = '/api/mcp/account';
/** A test_trigger call with a 1 MB body may have 6 MB once escaped as JSON. */
export const MAX_MCP_BODY_BYTES = 8 * 1024 * 1024;
/** Keeps proxies and clients from giving up on a long call: white space before JSON is legal. */
export const HEARTBEAT_MS = 15_000;

export interface McpRouterDeps {
  keys: KeyCheck;
  dispatcher: Dispatcher;
  http: HttpMetrics;
  log: Logger;
  clock: Clock;
}

/** One line that clients show to their user. */
const UNAUTHORIZED = 'Unauthorized: send the header "Authorization: Bearer <API_KEY>" with a valid API key\n';

export function createMcpRouter(deps: McpRouterDeps): Router {
  const router = Router();
  router.all(MCP_ROUTE, (request, response) => {
    const started = deps.clock.monotonic();
    response.once('close', () => {
      const seconds = (deps.clock.monotonic() - started) / 1000;
      deps.http.observe({ route: MCP_ROUTE, method: request.method, status: response.statusCode, seconds });
    });
    return answer(deps, request, response);
  });
  return router;
}

async function answer(deps: McpRouterDeps, request: Request, response: Response): Promise<void> {
  try {
    const caller = await deps.keys.check(request.headers.authorization);
    if (caller === undefined) return sendUnauthorized(response);
    if (request.method !== 'POST') return sendMethodNotAllowed(response);
    await answerPost(deps, caller, request, response);
  } catch (error) {
    deps.log.error({ err: error }, 'MCP call failed');
    finish(response, errorText('null', INTERNAL_ERROR, 'Internal error: try again'));
  }
}

async function answerPost(deps: McpRouterDeps, caller: Caller, request: Request, response: Response): Promise<void> {
  const gone = new AbortController();
  // An abort makes an error with a stack: a tenth of the work of a short read, and nobody waits for it after the answer.
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  const body = await readCappedBody(request, MAX_MCP_BODY_BYTES);
  if (body === 'gone') return;
  if (body === 'too large') {
    const message = `Invalid Request: the body has more than ${MAX_MCP_BODY_BYTES} bytes`;
    return finish(response, errorText('null', INVALID_REQUEST, message));
  }
  const stopHeartbeat = startHeartbeat(deps.clock, response);
  try {
    const text = await deps.dispatcher.dispatch(body, caller, gone.signal);
    if (text === undefined) response.writeHead(202, { 'content-length': '0' }).end();
    else finish(response, text);
  } finally {
    stopHeartbeat();
  }
}

/** After 15 s the headers and a space go out, then a space every 15 s. Returns stop. */
function startHeartbeat(clock: Clock, response: Response): () => void {
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
function finish(response: Response, text: string | Buffer): void {
  if (response.destroyed || response.writableEnded) return;
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  if (!response.headersSent) response.writeHead(200, { ...JSON_HEADERS, 'content-length': String(bytes.length) });
  response.end(bytes);
}

function sendUnauthorized(response: Response): void {
  response
    .writeHead(401, { 'content-type': 'text/plain; charset=utf-8', 'www-authenticate': 'Bearer' })
    .end(UNAUTHORIZED);
}

function sendMethodNotAllowed(response: Response): void {
  const text = errorText('null', INVALID_REQUEST, 'Method not allowed: this endpoint takes POST only');
  response.writeHead(405, { ...JSON_HEADERS, allow: 'POST' }).end(text);
}

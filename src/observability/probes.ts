/**
 * The internal port of every process: health, metrics and calls between our own pods. It is never exposed by a Service
 * of the public side. Red answers name their reasons, since `kubectl describe pod` shows them to the person on call.
 */
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import { readCappedBody } from '../net/capped-body.js';
import type { Clock } from '../runtime/clock.js';
import type { Logger } from './logger.js';
import { trackReadiness } from './metrics.js';

/** A reason for a red probe. */
export interface Problem {
  /** What is red, for example `informer agentruns`. */
  check: string;
  /** Why, as a sentence without secrets. */
  message: string;
}

/** A call from another of our pods. */
export interface InternalRequest {
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** Fires when the caller went away or the server stops. */
  signal: AbortSignal;
}

export interface InternalReply {
  status: number;
  /** Sent as JSON. */
  body?: unknown;
}

export type InternalRoute = (request: InternalRequest) => Promise<InternalReply>;

export interface InternalServerOptions {
  /** 0 takes a free port. */
  port: number;
  /** Address to listen on; all addresses when absent. */
  host?: string;
  registry: Registry;
  /** Empty = alive. Only what a restart would repair belongs here. */
  live: () => Problem[];
  /** Empty = ready. */
  ready: () => Problem[];
  /** Path -> handler of POST. */
  routes?: Record<string, InternalRoute>;
  logger: Logger;
  clock: Clock;
}

export interface InternalServer {
  port: number;
  /** Stops listening, lets running answers finish for at most `graceMs`, then cuts them. */
  stop(graceMs?: number): Promise<void>;
}

/** Bodies of internal calls are a few fields; larger ones are refused. */
const MAX_INTERNAL_BODY_BYTES = 64 * 1024;
const STOP_GRACE_MS = 2_000;

/** Serves /livez, /readyz, /metrics and the given POST routes; resolves when the port is open, rejects when it is taken. */
export async function startInternalServer(options: InternalServerOptions): Promise<InternalServer> {
  const stopping = new AbortController();
  const server = createServer((request, response) => {
    answer(request, response, options, stopping.signal).catch((error: unknown) => {
      options.logger.error({ err: error, path: pathOf(request) }, 'internal request failed');
      if (!response.headersSent) sendText(response, 500, 'internal error\n');
      else response.destroy();
    });
  });
  await listen(server, options);
  trackReadiness(options.registry, () => options.ready().length === 0);
  return {
    port: (server.address() as AddressInfo).port,
    stop: (graceMs = STOP_GRACE_MS) => {
      stopping.abort();
      return closeWithin(server, graceMs, options.clock);
    },
  };
}

function listen(server: Server, options: InternalServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Closes a server: no new connections, idle ones end at once, busy ones at the latest after `graceMs`. */
export function closeWithin(server: Server, graceMs: number, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(graceMs, () => server.closeAllConnections());
    server.close(() => {
      cancel();
      resolve();
    });
    server.closeIdleConnections();
  });
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: InternalServerOptions,
  stopping: AbortSignal,
): Promise<void> {
  const path = pathOf(request);
  const route = options.routes === undefined ? undefined : ownRoute(options.routes, path);
  if (route !== undefined) return answerRoute(route, request, response, stopping);
  if (request.method !== 'GET' && request.method !== 'HEAD') return sendText(response, 405, 'use GET\n');
  if (path === '/livez') return sendProblems(response, options.live());
  if (path === '/readyz') return sendProblems(response, options.ready());
  if (path !== '/metrics') return sendText(response, 404, 'not found; try /livez, /readyz or /metrics\n');
  const text = await options.registry.metrics();
  response.writeHead(200, { 'content-type': options.registry.contentType }).end(text);
}

function ownRoute(routes: Record<string, InternalRoute>, path: string): InternalRoute | undefined {
  return Object.hasOwn(routes, path) ? routes[path] : undefined;
}

async function answerRoute(
  route: InternalRoute,
  request: IncomingMessage,
  response: ServerResponse,
  stopping: AbortSignal,
): Promise<void> {
  if (request.method !== 'POST') return sendText(response, 405, 'use POST\n');
  const limits = { maxBytes: MAX_INTERNAL_BODY_BYTES, maxReadBytes: Infinity };
  const { state, body, error } = await readCappedBody(request, limits);
  if (state === 'too_large') return sendText(response, 413, 'body too large\n');
  if (state !== 'complete') throw error ?? new Error('the body broke off');
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const reply = await route({
    headers: request.headers,
    body,
    signal: AbortSignal.any([gone.signal, stopping]),
  });
  response.writeHead(reply.status, { 'content-type': 'application/json' });
  response.end(reply.body === undefined ? undefined : JSON.stringify(reply.body));
}

function sendProblems(response: ServerResponse, problems: readonly Problem[]): void {
  if (problems.length === 0) return sendText(response, 200, 'ok\n');
  sendText(response, 503, problems.map(({ check, message }) => `${check}: ${message}\n`).join(''));
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(text);
}

function pathOf(request: IncomingMessage): string {
  const url = request.url ?? '/';
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
}

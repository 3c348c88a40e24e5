/**
 * The one way to the API server: a pool of keep-alive HTTP/1.1 connections for calls and a second one for watches,
 * which hold theirs. There is no client-side rate limit; the server's 429 is obeyed instead. Knows HTTP and Status
 * objects, not kinds.
 */
import { Pool } from 'undici';
import type { Dispatcher } from 'undici';
import { timeoutSignal } from '../runtime/timeout-signal.js';
import type { TimeoutSignal } from '../runtime/timeout-signal.js';
import type { Clock } from '../runtime/clock.js';
import { sleep } from '../runtime/clock.js';
import { KubeApiError, KubeConnectionError } from './errors.js';
import type { StatusDetails } from './errors.js';
import { readJsonLines } from './json-lines.js';
import type { ClusterConnection } from './kube-config.js';
import type { KubeMetrics } from './metrics.js';

export interface KubeRequest {
  /** Kubernetes verb and plural, for metrics and messages: never names. */
  verb: string;
  resource: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path with encoded segments, without query. */
  path: string;
  query?: Record<string, string | undefined>;
  /** Sent as JSON. */
  body?: unknown;
  contentType?: string;
  /** What the answer shall be; JSON of the whole object when absent. */
  accept?: string;
  signal?: AbortSignal;
}

export interface KubeTransport {
  /** The parsed JSON of a 2xx answer; rejects with KubeApiError or KubeConnectionError. */
  request(request: KubeRequest): Promise<unknown>;
  /** The lines of a watch as they come; the signal ends it. Iterating rejects with KubeConnectionError when cut. */
  watch(request: Omit<KubeRequest, 'body' | 'contentType'>): Promise<AsyncIterable<unknown>>;
  /** Cuts what is open. */
  close(): Promise<void>;
}

export interface TransportOptions {
  clock: Clock;
  /** Names the process in the API server's audit log: `boxwright-api`. */
  userAgent?: string;
  /** Connections for calls; more calls wait in order. */
  connections?: number;
  /** Bound of one call with its retries and its waiting for a connection. */
  timeoutMs?: number;
  metrics?: Pick<KubeMetrics, 'requested'>;
  /** Is told the header `Date` of every answer. */
  serverTime?: { heard(date: unknown): void };
}

const DEFAULT_CONNECTIONS = 32;
const DEFAULT_TIMEOUT_MS = 30_000;
/** One connection for each open watch: far more than we have informers. */
const WATCH_CONNECTIONS = 64;
/** Below the 90 s after which the API server closes idle connections. */
const KEEP_ALIVE_MS = 60_000;
/**
 * Longest handshake. Calls go to a connection that is being opened, so one that nobody answers, as while the API server starts,
 * would hold them up although the server is back: webhook callers wait 15 s.
 */
const CONNECT_MS = 4_000;
/** Tries of one call that is answered 429, or 503 with Retry-After. */
const MAX_TRIES = 8;

/** Opens no connection before the first call. */
export function createTransport(connection: ClusterConnection, options: TransportOptions): KubeTransport {
  return new PooledTransport(connection, options);
}

class PooledTransport implements KubeTransport {
  readonly #connection: ClusterConnection;
  readonly #options: TransportOptions;
  readonly #timeoutMs: number;
  readonly #prefix: string;
  readonly #calls: Pool;
  readonly #watches: Pool;

  constructor(connection: ClusterConnection, options: TransportOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#prefix = new URL(connection.server).pathname.replace(/\/$/, '');
    this.#calls = openPool(connection, options.connections ?? DEFAULT_CONNECTIONS);
    this.#watches = openPool(connection, WATCH_CONNECTIONS);
  }

  async request(request: KubeRequest): Promise<unknown> {
    const deadline = timeoutSignal(this.#options.clock, this.#timeoutMs, request.signal);
    try {
      const answer = await this.#send(this.#calls, request, deadline);
      return JSON.parse(await answer.body.text()) as unknown;
    } catch (error) {
      throw toKubeError(error, request, deadline);
    } finally {
      deadline.dispose();
    }
  }

  async watch(request: KubeRequest): Promise<AsyncIterable<unknown>> {
    const deadline = timeoutSignal(this.#options.clock, this.#timeoutMs, request.signal);
    try {
      const answer = await this.#send(this.#watches, request, deadline);
      deadline.lift();
      return readWatch(answer.body, request, deadline);
    } catch (error) {
      deadline.dispose();
      throw toKubeError(error, request, deadline);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#calls.destroy(), this.#watches.destroy()]);
  }

  /** Sends until there is a 2xx answer, a final refusal, or no time left. */
  async #send(pool: Pool, request: KubeRequest, deadline: TimeoutSignal): Promise<Dispatcher.ResponseData> {
    const { clock } = this.#options;
    const end = clock.monotonic() + this.#timeoutMs;
    for (let tries = 1; ; tries++) {
      const answer = await this.#sendOnce(pool, request, deadline.signal);
      if (answer.statusCode < 300) return answer;
      const error = await readError(answer, request);
      const waitMs = retryDelayMs(error);
      if (waitMs === undefined || tries >= MAX_TRIES || clock.monotonic() + waitMs >= end) throw error;
      await sleep(clock, waitMs, deadline.signal);
    }
  }

  async #sendOnce(pool: Pool, request: KubeRequest, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { clock, metrics, serverTime } = this.#options;
    const started = clock.monotonic();
    let status = 0;
    try {
      const answer = await pool.request({
        method: request.method,
        path: this.#prefix + request.path + queryString(request.query),
        headers: await this.#headers(request),
        body: request.body === undefined ? null : JSON.stringify(request.body),
        signal,
      });
      status = answer.statusCode;
      serverTime?.heard(answer.headers['date']);
      return answer;
    } finally {
      const seconds = (clock.monotonic() - started) / 1000;
      metrics?.requested({ verb: request.verb, resource: request.resource, status, seconds });
    }
  }

  async #headers(request: KubeRequest): Promise<Record<string, string>> {
    const token = await this.#connection.token?.();
    return {
      accept: request.accept ?? 'application/json',
      'user-agent': this.#options.userAgent ?? 'boxwright',
      ...(request.body === undefined ? {} : { 'content-type': request.contentType ?? 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
  }
}

function openPool(connection: ClusterConnection, connections: number): Pool {
  const { ca, cert, key, tlsServerName, skipTlsVerify } = connection;
  return new Pool(new URL(connection.server).origin, {
    connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    // Our own deadline bounds calls; a watch may be silent for as long as its watchdog allows.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: {
      timeout: CONNECT_MS,
      rejectUnauthorized: skipTlsVerify !== true,
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
    },
  });
}

function queryString(query: Record<string, string | undefined> = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, value);
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

async function* readWatch(
  body: AsyncIterable<Uint8Array>,
  request: KubeRequest,
  deadline: TimeoutSignal,
): AsyncIterable<unknown> {
  try {
    yield* readJsonLines(body);
  } catch (error) {
    throw toKubeError(error, request, deadline);
  } finally {
    deadline.dispose();
  }
}

interface Status {
  kind?: unknown;
  code?: number;
  reason?: string;
  message?: string;
  details?: StatusDetails;
}

/** The error that a Status object stands for, as an HTTP answer or as the object of an ERROR event. */
export function errorFromStatus(status: Status, operation: string, headerSeconds?: number): KubeApiError {
  const retryAfterSeconds = headerSeconds ?? status.details?.retryAfterSeconds;
  return new KubeApiError({
    status: status.code ?? 500,
    reason: status.reason === undefined || status.reason === '' ? 'Unknown' : status.reason,
    message: status.message ?? 'the API server gave no message',
    operation,
    ...(status.details === undefined ? {} : { details: status.details }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}

async function readError(answer: Dispatcher.ResponseData, request: KubeRequest): Promise<KubeApiError> {
  const text = await answer.body.text();
  const status = { ...parseStatus(text), code: answer.statusCode };
  const header = Number(answer.headers['retry-after']);
  return errorFromStatus(status, `${request.verb} ${request.resource}`, Number.isFinite(header) ? header : undefined);
}

/** Proxies and overloaded servers answer plain text; their words are not repeated. */
function parseStatus(text: string): Status {
  try {
    const parsed = JSON.parse(text) as Status | null;
    if (parsed?.kind === 'Status') return parsed;
  } catch {
    // Not JSON: the HTTP status is all there is.
  }
  return { message: 'the answer was no Status object' };
}

/** How long the server asks us to wait; undefined when it does not want the call again. */
function retryDelayMs(error: KubeApiError): number | undefined {
  const seconds = error.retryAfterSeconds;
  if (error.status === 429) return Math.max(seconds ?? 1, 0) * 1000;
  if (error.status === 503 && seconds !== undefined) return Math.max(seconds, 0) * 1000;
  return undefined;
}

function toKubeError(error: unknown, request: KubeRequest, deadline: TimeoutSignal): Error {
  if (error instanceof KubeApiError || error instanceof KubeConnectionError) return error;
  const operation = `${request.verb} ${request.resource}`;
  if (deadline.expired) return new KubeConnectionError(`${operation}: no answer in time`, 'timeout', error);
  if (deadline.signal.aborted) return new KubeConnectionError(`${operation}: given up by the caller`, 'aborted', error);
  if (error instanceof SyntaxError) {
    return new KubeConnectionError(`${operation}: the answer was not JSON`, 'network');
  }
  return new KubeConnectionError(`${operation}: no connection to the API server`, 'network', error);
}

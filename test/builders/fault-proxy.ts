/**
 * A proxy in front of a real API server that does the harm a network does: it cuts and stalls watches and answers in
 * the server's place. It counts requests by verb and resource and the connections of its clients. Plain HTTP towards
 * the client. A request with a bearer token goes on with that token; others get the proxy's client certificate.
 */
import { createServer, request as plainRequest } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Agent, request } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { ClusterConnection } from '../../src/kube/kube-config.js';

export interface ProxiedRequest {
  /** Kubernetes verb: get, list, watch, create, update, patch, delete. */
  verb: string;
  /** Plural, with the subresource: `agentruns/status`. */
  resource: string;
  url: URL;
}

export interface Refusal {
  status: number;
  reason: string;
  retryAfterSeconds?: number;
  /** How many matching requests; default 1. */
  times?: number;
  /** The request reaches the API server all the same; only its answer is replaced. */
  afterServer?: boolean;
}

type Match = (request: ProxiedRequest) => boolean;

interface OpenWatch {
  request: ProxiedRequest;
  response: ServerResponse;
  upstream: IncomingMessage;
}

export class FaultProxy {
  /** Every request in order, since the last clear(). */
  readonly requests: ProxiedRequest[] = [];
  /** Connections that clients opened, since the last clear(). */
  connections = 0;
  readonly #target: ClusterConnection;
  readonly #agent: Agent;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #watches = new Set<OpenWatch>();
  readonly #refusals: { match: Match; refusal: Refusal; left: number }[] = [];
  #stalled: Match = () => false;
  #ageNext = false;

  private constructor(target: ClusterConnection) {
    this.#target = target;
    this.#agent = new Agent({ keepAlive: true, ca: target.ca, cert: target.cert, key: target.key });
    this.#server = createServer((incoming, response) => this.#handle(incoming, response));
    // As long as the API server: clients keep to what a server says, and a busy machine pauses for seconds.
    this.#server.keepAliveTimeout = 90_000;
    this.#server.on('connection', (socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(target: ClusterConnection): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  /** How a client reaches the API server through this proxy. */
  get connection(): ClusterConnection {
    return { server: `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}` };
  }

  /** Requests of that verb (and resource) since the last clear(). */
  count(verb: string, resource?: string): number {
    return this.requests.filter((one) => one.verb === verb && (resource === undefined || one.resource === resource))
      .length;
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  clear(): void {
    this.requests.length = 0;
    this.connections = 0;
  }

  /** Answers the next matching requests in the API server's place. */
  refuse(match: Match, refusal: Refusal): void {
    this.#refusals.push({ match, refusal, left: refusal.times ?? 1 });
  }

  /** No more refusals. */
  forgive(): void {
    this.#refusals.length = 0;
  }

  /** The next watch is asked from a position that the API server has long forgotten. */
  ageNextWatch(): void {
    this.#ageNext = true;
  }

  /** Breaks the connections of open watches in the middle of the stream. Returns how many. */
  cutWatches(): number {
    const cut = [...this.#watches];
    for (const watch of cut) watch.response.socket?.destroy();
    return cut.length;
  }

  /** Puts an event into the stream of open watches, as if the API server had sent it. */
  injectWatchEvent(event: unknown): void {
    for (const watch of this.#watches) watch.response.write(`${JSON.stringify(event)}\n`);
  }

  /** From now on matching watches get nothing more: not even their end. Connections stay open. */
  stallWatches(match: Match = () => true): void {
    this.#stalled = match;
    for (const watch of this.#watches) if (match(watch.request)) stall(watch);
  }

  /** New watches are served again; stalled ones stay stalled. */
  serveNewWatches(): void {
    this.#stalled = () => false;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    this.#agent.destroy();
    await closed;
  }

  #handle(incoming: IncomingMessage, response: ServerResponse): void {
    const proxied = describe(incoming);
    this.requests.push(proxied);
    const refusal = this.#takeRefusal(proxied);
    if (refusal !== undefined && refusal.afterServer !== true) {
      incoming.resume();
      refuse(response, refusal);
      return;
    }
    if (proxied.verb === 'watch' && this.#ageNext) {
      this.#ageNext = false;
      incoming.url = (incoming.url ?? '').replace(/resourceVersion=\d+/, 'resourceVersion=1');
    }
    const upstream = this.#forward(incoming, (answer) => {
      if (refusal === undefined) this.#relay(proxied, answer, response);
      else answer.resume().on('end', () => refuse(response, refusal));
    });
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    incoming.pipe(upstream);
  }

  #forward(incoming: IncomingMessage, onAnswer: (answer: IncomingMessage) => void) {
    const target = new URL(this.#target.server);
    const { ca } = this.#target;
    const ownToken = incoming.headers.authorization !== undefined;
    const options = {
      method: incoming.method,
      path: incoming.url,
      host: target.hostname,
      port: target.port,
      headers: { ...incoming.headers, host: target.host },
    };
    if (target.protocol === 'http:') return plainRequest(options, onAnswer);
    return request({ ...options, ...(ownToken ? { ca, agent: false } : { agent: this.#agent }) }, onAnswer);
  }

  #relay(proxied: ProxiedRequest, answer: IncomingMessage, response: ServerResponse): void {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.on('error', () => response.destroy());
    if (proxied.verb !== 'watch' || answer.statusCode !== 200) {
      answer.pipe(response);
      return;
    }
    const watch: OpenWatch = { request: proxied, response, upstream: answer };
    this.#watches.add(watch);
    response.on('close', () => this.#watches.delete(watch));
    response.flushHeaders();
    if (this.#stalled(proxied)) stall(watch);
    else answer.pipe(response);
  }

  #takeRefusal(proxied: ProxiedRequest): Refusal | undefined {
    const found = this.#refusals.find((one) => one.match(proxied));
    if (found === undefined) return undefined;
    found.left -= 1;
    if (found.left <= 0) this.#refusals.splice(this.#refusals.indexOf(found), 1);
    return found.refusal;
  }
}

function stall(watch: OpenWatch): void {
  watch.upstream.unpipe(watch.response);
  watch.upstream.resume();
}

function refuse(response: ServerResponse, refusal: Refusal): void {
  const retryAfter = refusal.retryAfterSeconds;
  response.writeHead(refusal.status, {
    'content-type': 'application/json',
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
  });
  const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: refusal.status, reason: refusal.reason };
  response.end(JSON.stringify({ ...status, message: 'refused by the fault proxy' }));
}

function describe(incoming: IncomingMessage): ProxiedRequest {
  const url = new URL(incoming.url ?? '/', 'http://proxy');
  const { resource, named } = resourceOf(url.pathname);
  return { verb: verbOf(incoming.method ?? 'GET', url, named), resource, url };
}

/** `/apis/<group>/<version>[/namespaces/<namespace>]/<plural>[/<name>[/<subresource>]]`, or /api/<version>/… */
function resourceOf(path: string): { resource: string; named: boolean } {
  let parts = path.split('/').filter((part) => part !== '');
  parts = parts.slice(parts[0] === 'api' ? 2 : 3);
  if (parts[0] === 'namespaces' && parts.length > 2) parts = parts.slice(2);
  const [plural = '', name, subresource] = parts;
  return { resource: subresource === undefined ? plural : `${plural}/${subresource}`, named: name !== undefined };
}

function verbOf(method: string, url: URL, named: boolean): string {
  if (method === 'GET') {
    if (url.searchParams.has('watch')) return 'watch';
    return named ? 'get' : 'list';
  }
  return { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' }[method] ?? method.toLowerCase();
}

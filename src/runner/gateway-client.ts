/**
 * HTTP to the gateway: which of its pods to ask, TLS, the token, and trying again. Knows no run and no message.
 *
 * After the claim one gateway pod serves the run (its owner). A pod that cannot be reached is asked in turn with the
 * Service, behind which another pod takes the run over; 421 names the pod that has it now.
 */
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { readText } from '../net/capped-body.js';
import { Misdirected, MODEL_NOTICE_HEADER } from '../protocol/run.js';
import type { Clock } from '../runtime/clock.js';
import { sleep } from '../runtime/clock.js';
import { errorKind } from './log.js';
import type { RunnerLog } from './log.js';

/** Largest answer that is read. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const CONNECT_MS = 5_000;
/** All MCP servers of a run at once (a gateway takes 24 of their messages), and beside them the model, a tool and the reports. */
const MAX_SOCKETS = 32;
/** Answers 421 that are followed at once before it counts as a failure. */
const MAX_REDIRECTS = 4;
const MIN_DELAY_MS = 1_000;
const MAX_DELAY_MS = 30_000;

export interface GatewayClientOptions {
  /** The Service's address. */
  url: URL;
  /** Name that the certificate must carry, whatever address is asked. */
  serverName: string;
  /** PEM bundle. */
  ca: string;
  /** The token of this moment: kubelet renews the file, so it is read for every request. */
  readToken: () => Promise<string>;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  log: RunnerLog;
}

export interface GatewayRequest {
  /** POST when absent. */
  method?: 'POST' | 'DELETE';
  path: string;
  /** Besides those that every request has. */
  headers?: Readonly<Record<string, string>>;
  /** True: what may have reached a gateway is not sent again, whatever became of it. */
  once?: boolean;
  /** JSON. The fencing token changes when another pod takes the run over, so the body is made for each attempt. */
  body: (fencingToken: number) => string;
  /** Ends waiting and sending; `send` then rejects with its reason. */
  signal: AbortSignal;
  /** Statuses to try again besides 429 and 503. */
  retryOn: readonly number[];
  /** Time for one attempt. */
  attemptMs: number;
  /** On {@link Clock.monotonic}: no new attempt after it. */
  giveUpAt: number;
}

export interface GatewayReply {
  status: number;
  contentType: string;
  /** `Mcp-Session-Id`. */
  mcpSession?: string | undefined;
  /** {@link MODEL_NOTICE_HEADER}. */
  notice?: string | undefined;
  body: string;
}

/** No gateway gave an answer that counts before `giveUpAt`. */
export class GatewayUnreachable extends Error {
  override readonly name = 'GatewayUnreachable';
}

interface Attempt {
  reply?: GatewayReply & { retryAfter: string | undefined };
  failure?: string;
  /** No answer, and nobody knows whether the request arrived. */
  uncertain?: boolean;
}

export class GatewayClient {
  readonly #options: GatewayClientOptions;
  readonly #agent: HttpAgent | HttpsAgent;
  #owner: string | undefined;
  #fencingToken = 0;
  /** Whether the next attempt asks the Service although the owner is known. */
  #avoidOwner = false;

  constructor(options: GatewayClientOptions) {
    this.#options = options;
    const pool = { keepAlive: true, maxSockets: MAX_SOCKETS };
    this.#agent =
      options.url.protocol === 'https:'
        ? new HttpsAgent({ ...pool, ca: options.ca, servername: options.serverName })
        : new HttpAgent(pool);
  }

  /** Later requests go to the gateway pod that owns the run first, and name its fencing token. */
  ownedBy(address: string, fencingToken: number): void {
    this.#owner = address;
    this.#avoidOwner = false;
    this.#fencingToken = fencingToken;
  }

  /** A gateway answered with this fencing token; a newer one is named from now on. */
  sawFencingToken(fencingToken: number): void {
    this.#fencingToken = Math.max(this.#fencingToken, fencingToken);
  }

  /** Posts JSON until an answer counts. Throws {@link GatewayUnreachable}, or the reason of the signal. */
  async send(request: GatewayRequest): Promise<GatewayReply> {
    const { clock, log } = this.#options;
    const retryOn = new Set([429, 503, ...request.retryOn]);
    let redirects = 0;
    for (let failures = 0; ;) {
      request.signal.throwIfAborted();
      const { reply, failure, uncertain } = await this.#attempt(request);
      request.signal.throwIfAborted();
      if (request.once === true && uncertain === true) {
        throw new GatewayUnreachable(
          `The connection to the gateway broke (${failure}); the request may have been served.`,
        );
      }
      if (reply !== undefined && reply.status === 421 && redirects < MAX_REDIRECTS && this.#follow(reply.body)) {
        redirects += 1;
        continue;
      }
      if (reply !== undefined && reply.status !== 421 && !retryOn.has(reply.status)) return reply;
      redirects = 0;
      const delay = this.#delay(failures, reply?.retryAfter);
      failures += 1;
      if (clock.monotonic() + delay >= request.giveUpAt) {
        throw new GatewayUnreachable(
          `No gateway served the request (last: ${reply === undefined ? failure : `HTTP ${reply.status}`}).`,
        );
      }
      log.warn({ status: reply?.status, failure, attempt: failures, delayMs: delay }, 'the gateway did not serve');
      await sleep(clock, delay, request.signal);
    }
  }

  /** Closes idle connections. */
  close(): void {
    this.#agent.destroy();
  }

  #follow(body: string): boolean {
    const parsed = Misdirected.safeParse(parseJson(body));
    if (!parsed.success) return false;
    this.ownedBy(parsed.data.gatewayAddress, parsed.data.epoch);
    return true;
  }

  /** Full second half of an exponential step, so that runners of one outage do not come back together. */
  #delay(failures: number, retryAfter: string | undefined): number {
    const base = Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** failures);
    const jittered = Math.max(MIN_DELAY_MS, base * (0.5 + this.#options.random() / 2));
    const asked = /^\d{1,6}$/.test(retryAfter ?? '') ? Number(retryAfter) * 1000 : 0;
    return Math.round(Math.min(MAX_DELAY_MS, Math.max(jittered, asked)));
  }

  async #attempt(request: GatewayRequest): Promise<Attempt> {
    const useOwner = this.#owner !== undefined && !this.#avoidOwner;
    const target = useOwner ? `${this.#options.url.protocol}//${this.#owner}` : this.#options.url.origin;
    const timeout = new AbortController();
    const cancelTimeout = this.#options.clock.after(request.attemptMs, () => timeout.abort());
    const progress = { connected: false };
    try {
      const reply = await this.#post(new URL(request.path, target), request, { timeout: timeout.signal, progress });
      // An owner that drains answers 503: the Service knows one that is ready.
      this.#avoidOwner = useOwner && reply.status === 503;
      // Served by a pod behind the Service: it took the run over, and the old owner is history.
      if (!useOwner && reply.status === 200) this.#owner = undefined;
      return { reply };
    } catch (error) {
      this.#avoidOwner = useOwner;
      return { failure: timeout.signal.aborted ? 'timeout' : errorKind(error), uncertain: progress.connected };
    } finally {
      cancelTimeout();
    }
  }

  async #post(
    url: URL,
    request: GatewayRequest,
    { timeout, progress }: { timeout: AbortSignal; progress: { connected: boolean } },
  ): Promise<NonNullable<Attempt['reply']>> {
    const token = (await this.#options.readToken()).trim();
    const body = Buffer.from(request.body(this.#fencingToken), 'utf8');
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const outgoing = send(url, {
        method: request.method ?? 'POST',
        agent: this.#agent,
        signal: AbortSignal.any([request.signal, timeout]),
        headers: {
          ...request.headers,
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'content-length': body.length,
        },
      });
      const connecting = this.#options.clock.after(CONNECT_MS, () => outgoing.destroy(connectTimeout()));
      const secured = url.protocol === 'https:' ? 'secureConnect' : 'connect';
      const onConnected = () => {
        progress.connected = true;
        connecting();
      };
      outgoing.on('socket', (socket) => {
        if (outgoing.reusedSocket || !socket.connecting) onConnected();
        else socket.once(secured, onConnected);
      });
      outgoing.on('error', (error) => {
        connecting();
        reject(error);
      });
      outgoing.once('response', (incoming) => {
        connecting();
        collect(incoming).then(resolve, reject);
      });
      outgoing.end(body);
    });
  }
}

function connectTimeout(): Error {
  return Object.assign(new Error('no connection in time'), { code: 'CONNECT_TIMEOUT' });
}

async function collect(incoming: IncomingMessage): Promise<NonNullable<Attempt['reply']>> {
  const body = await readText(incoming, MAX_ANSWER_BYTES);
  if (body === undefined) throw Object.assign(new Error('the answer is too large'), { code: 'ANSWER_TOO_LARGE' });
  return {
    status: incoming.statusCode ?? 0,
    contentType: incoming.headers['content-type'] ?? '',
    mcpSession: [incoming.headers['mcp-session-id']].flat()[0],
    notice: [incoming.headers[MODEL_NOTICE_HEADER]].flat()[0],
    retryAfter: incoming.headers['retry-after'],
    body,
  };
}

/** JSON of an answer, or undefined: a proxy in between may answer with anything. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

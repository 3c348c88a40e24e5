/**
 * HTTP to addresses that a user set: https only, the address checked when the connection is made, no redirects
 * followed, connections kept open. Exceptions are what an operator wrote for one host, and hold for this host alone.
 */
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { Agent, buildConnector, request as httpRequest } from 'undici';
import { dial, targetOf, type Resolve } from './dial.js';
import type { AddressRule } from './public-address.js';

/** From the connection to the end of the TLS handshake. */
const SECURE_MS = 10_000;
const CONNECTIONS_PER_HOST = 32;
/** Sets of open connections: one for everybody, one for each host that an operator named. */
const MAX_POOLS = 64;

/** What an operator allows one host. */
export interface TrustedHost {
  /** Plain http too. */
  http: boolean;
  /** PEM certificates to trust instead of the public ones. */
  ca?: string | undefined;
}

export interface WebRequest {
  url: URL;
  method: 'POST' | 'DELETE';
  headers: Readonly<Record<string, string>>;
  body?: string;
  signal: AbortSignal;
  /** Set when an operator named the host of `url`. */
  trusted?: TrustedHost | undefined;
}

export interface WebResponse {
  status: number;
  /** One value of a header; undefined when there is none. */
  header(name: string): string | undefined;
  body: Readable;
}

/** The address may not be asked as it stands; no connection was made. */
export class UrlRefusedError extends Error {
  override readonly name = 'UrlRefusedError';
}

export interface WebClientOptions {
  /** For all hosts but the named ones. */
  isPublic: AddressRule;
  /** For hosts that an operator named. */
  isTrusted: AddressRule;
  resolve: Resolve;
}

export class WebClient {
  readonly #options: WebClientOptions;
  readonly #pools = new Map<string, Agent>();

  constructor(options: WebClientOptions) {
    this.#options = options;
  }

  /**
   * The answer as it comes, a redirect too. Rejects with {@link UrlRefusedError}, with AddressRefusedError (src/net/dial.ts),
   * or with an error whose `code` says why there is no answer.
   */
  async request({ url, method, headers, body, signal, trusted }: WebRequest): Promise<WebResponse> {
    expectAllowed(url, trusted);
    const response = await httpRequest(url, {
      dispatcher: this.#poolOf(url, trusted),
      method,
      headers: { ...headers },
      ...(body === undefined ? {} : { body }),
      signal,
    });
    return {
      status: response.statusCode,
      header: (name) => [response.headers[name]].flat()[0],
      body: response.body,
    };
  }

  /** Cuts every connection. */
  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  /** A connection that was made under one rule never serves a request under another. */
  #poolOf(url: URL, trusted: TrustedHost | undefined): Agent {
    const key = trusted === undefined ? '' : `${url.host} ${trusted.ca ?? ''}`;
    const known = this.#pools.get(key);
    // The one that was used last stands last.
    if (known !== undefined) this.#pools.delete(key);
    const pool = known ?? this.#newPool(trusted);
    this.#pools.set(key, pool);
    const [oldest] = this.#pools;
    if (this.#pools.size > MAX_POOLS && oldest !== undefined) {
      this.#pools.delete(oldest[0]);
      // Requests that are in work end first.
      void oldest[1].close();
    }
    return pool;
  }

  #newPool(trusted: TrustedHost | undefined): Agent {
    const { isPublic, isTrusted, resolve } = this.#options;
    const dialer = { isAllowed: trusted === undefined ? isPublic : isTrusted, resolve };
    const secure = buildConnector({
      timeout: SECURE_MS,
      allowH2: false,
      ...(trusted?.ca === undefined ? {} : { ca: trusted.ca }),
    });
    // Whoever asks gives up by its own signal; a connection that comes later serves the next request.
    const open = (options: buildConnector.Options): Promise<Socket> => dial(targetOf(options), dialer, NEVER);
    return new Agent({
      connections: CONNECTIONS_PER_HOST,
      allowH2: false,
      // Every request has a bound of its own.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: 20_000,
      keepAliveMaxTimeout: 60_000,
      connect: (options, callback) => {
        open(options).then(
          (socket) => {
            if (options.protocol === 'https:') secure({ ...options, httpSocket: socket }, callback);
            else callback(null, socket.setNoDelay(true));
          },
          (error: Error) => callback(error, null),
        );
      },
    });
  }
}

const NEVER = new AbortController().signal;

function expectAllowed(url: URL, trusted: TrustedHost | undefined): void {
  if (url.username !== '' || url.password !== '') throw new UrlRefusedError('the address holds a user name');
  if (url.protocol === 'https:' || (url.protocol === 'http:' && trusted?.http === true)) return;
  throw new UrlRefusedError('the address does not begin with https://');
}

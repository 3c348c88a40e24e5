/** HTTP to providers: persistent connections, one request at a time, and for probes a few tries that honour Retry-After. */
import { USER_AGENT } from '../../config/version.js';
import type { Readable } from 'node:stream';
import { request as httpRequest, type Dispatcher } from 'undici';
import { backoffDelay } from '../../runtime/backoff.js';
import { sleep, type Clock } from '../../runtime/clock.js';

/** What a server means for good although its status is above 500. */
const FINAL: ReadonlySet<number> = new Set([501, 505]);
const MAX_TRIES = 4;
const BACKOFF = { baseMs: 1_000, maxMs: 20_000, jitter: 0.2 };
/** No byte of the request was taken: nothing can have been used. */
const UNSENT: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

export interface ProviderRequest {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** It is posted; without one the URL is read. */
  body?: string;
  signal: AbortSignal;
}

export interface ProviderResponse {
  status: number;
  contentType: string;
  /** Seconds that the provider asked to wait, when it did. */
  retryAfterSeconds?: number;
  body: Readable;
}

/** There was no answer. */
export class ProviderUnreachable extends Error {
  override readonly name = 'ProviderUnreachable';
  constructor(
    readonly code: string,
    /** False: no byte left this process. */
    readonly maybeUsed: boolean,
  ) {
    super(`no answer (${code})`);
  }
}

export interface ProviderClientOptions {
  clock: Clock;
  dispatcher: Dispatcher;
}

export class ProviderClient {
  constructor(private readonly options: ProviderClientOptions) {}

  /**
   * The first answer that counts: of one that may be tried again, the last of a few. Gives up at `giveUpAt`, on
   * {@link Clock.monotonic}. Rejects with {@link ProviderUnreachable}.
   */
  async sendPatiently(request: ProviderRequest, giveUpAt: number): Promise<ProviderResponse> {
    const { clock } = this.options;
    for (let tries = 1; ; tries++) {
      const outcome = await this.send(request).catch((error: unknown) => {
        if (error instanceof ProviderUnreachable) return error;
        throw error;
      });
      const isFailure = outcome instanceof ProviderUnreachable;
      const isFinal = isFailure ? outcome.maybeUsed : !isPassing(outcome.status);
      const asked = isFailure ? 0 : (outcome.retryAfterSeconds ?? 0) * 1000;
      const delay = Math.max(backoffDelay(BACKOFF, tries), asked);
      if (isFinal || tries >= MAX_TRIES || request.signal.aborted || clock.monotonic() + delay >= giveUpAt) {
        if (isFailure) throw outcome;
        return outcome;
      }
      if (!isFailure) outcome.body.resume();
      await sleep(clock, delay, request.signal);
    }
  }

  /** One answer, whatever it says. Rejects with {@link ProviderUnreachable}. */
  async send({ url, headers, body, signal }: ProviderRequest): Promise<ProviderResponse> {
    if (signal.aborted) throw new ProviderUnreachable('ABORTED', false);
    try {
      const response = await httpRequest(url, {
        dispatcher: this.options.dispatcher,
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          ...headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          accept: '*/*',
          'user-agent': USER_AGENT,
        },
        body: body ?? null,
        signal,
      });
      const retryAfterSeconds = secondsIn(response.headers['retry-after'], this.options.clock.now());
      return {
        status: response.statusCode,
        contentType: textIn(response.headers['content-type']) ?? '',
        ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
        body: response.body,
      };
    } catch (error) {
      const code = (error as { code?: unknown }).code;
      throw new ProviderUnreachable(typeof code === 'string' ? code : 'UNKNOWN', !UNSENT.has(code));
    }
  }
}

/** A time that ran out, a lock that another request holds, a request that came too early, one too many. */
const PASSING: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/** Whether the same call may succeed a moment later, after an answer of that status; 529 is Anthropic's "overloaded". */
export function isPassing(status: number): boolean {
  return PASSING.has(status) || (status >= 500 && !FINAL.has(status));
}

function textIn(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** Retry-After in seconds, or as a date (RFC 9110). */
function secondsIn(header: string | string[] | undefined, now: number): number | undefined {
  const text = textIn(header);
  if (text === undefined) return undefined;
  if (/^\d{1,9}(\.\d{1,9})?$/.test(text)) return Number(text);
  // Nearly any text with a number in it is a date to JavaScript; those of HTTP are in GMT.
  const at = text.endsWith('GMT') ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000));
}

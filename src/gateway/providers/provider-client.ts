/** HTTP to providers: persistent connections, bounded retries that honour Retry-After, one bound for the whole call. */
import type { Readable } from 'node:stream';
import { request as httpRequest, type Dispatcher } from 'undici';
import { backoffDelay } from '../../runtime/backoff.js';
import { sleep, type Clock } from '../../runtime/clock.js';

/** Answers after which the same call may succeed a moment later; 529 is Anthropic's "overloaded". */
const RETRIED: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504, 529]);
const MAX_TRIES = 4;
const BACKOFF = { baseMs: 1_000, maxMs: 20_000, jitter: 0.2 };
/** A provider that asks for more patience gets none: the run ends and says so. */
const MAX_WAIT_MS = 120_000;
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
  /** On {@link Clock.monotonic}. */
  giveUpAt: number;
  /** Told before each try: from now on it may cost something. */
  leaves?: () => void;
  /** Told when a try came to nothing and the next one is waited for: nothing was used. */
  waits?: () => void;
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
   * The first answer that counts: of one that may be tried again, the last. Rejects with {@link ProviderUnreachable}; a call
   * that may have reached the provider without an answer is not tried again.
   */
  async send(request: ProviderRequest): Promise<ProviderResponse> {
    const { clock } = this.options;
    const wait = async (ms: number) => {
      request.waits?.();
      await sleep(clock, ms, request.signal);
    };
    for (let tries = 1; ; tries++) {
      const last = tries >= MAX_TRIES;
      if (request.signal.aborted) throw new ProviderUnreachable('ABORTED', false);
      request.leaves?.();
      const outcome = await this.#try(request);
      if (outcome instanceof ProviderUnreachable) {
        if (outcome.maybeUsed || last || request.signal.aborted) throw outcome;
        await wait(backoffDelay(BACKOFF, tries));
        continue;
      }
      const delay = Math.max(backoffDelay(BACKOFF, tries), (outcome.retryAfterSeconds ?? 0) * 1000);
      const tooLate = delay > MAX_WAIT_MS || clock.monotonic() + delay >= request.giveUpAt;
      if (!RETRIED.has(outcome.status) || last || tooLate) return outcome;
      outcome.body.resume();
      await wait(delay);
    }
  }

  async #try({ url, headers, body, signal }: ProviderRequest): Promise<ProviderResponse | ProviderUnreachable> {
    try {
      const response = await httpRequest(url, {
        dispatcher: this.options.dispatcher,
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          ...headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          accept: '*/*',
          'user-agent': 'boxwright',
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
      return new ProviderUnreachable(typeof code === 'string' ? code : 'UNKNOWN', !UNSENT.has(code));
    }
  }
}

function textIn(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** Retry-After in seconds, or as a date (RFC 9110). */
function secondsIn(header: string | string[] | undefined, now: number): number | undefined {
  const text = textIn(header);
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000));
}

/** What a call to the gateway is refused with; src/gateway/http turns it into an answer. */
import type { Misdirected } from '../protocol/run.js';

export interface GatewayErrorOptions {
  /** For model calls: `error.type` of the OpenAI-compatible answer. */
  type?: string;
  retryAfterSeconds?: number;
  /** More fields of the answer. */
  fields?: Record<string, unknown>;
}

/** A refusal with its HTTP status. The message goes to the runner and to logs: no token, no text of a user. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly type: string;
  readonly retryAfterSeconds?: number;
  readonly fields: Record<string, unknown>;

  constructor(
    readonly status: number,
    message: string,
    options: GatewayErrorOptions = {},
  ) {
    super(message);
    this.type = options.type ?? 'GatewayError';
    if (options.retryAfterSeconds !== undefined) this.retryAfterSeconds = options.retryAfterSeconds;
    this.fields = options.fields ?? {};
  }
}

/** What was found, or undefined for a 404; every other failure stays one. */
export async function orMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof GatewayError && error.status === 404) return undefined;
    throw error;
  }
}

/** 421: another gateway pod serves the run. */
export function misdirected(owner: Omit<Misdirected, 'error'>): GatewayError {
  return new GatewayError(421, `another gateway pod serves this run: call ${owner.gatewayAddress}`, {
    type: 'Misdirected',
    fields: { ...owner },
  });
}

/** 410: nothing more can be done for this run. */
export function runEnded(phase: string | undefined): GatewayError {
  return new GatewayError(410, `the run has ended (${phase ?? 'gone'})`, { type: 'RunEnded' });
}

/** 503: the Kubernetes API server or this pod cannot answer now. */
export function tryAgain(message: string, retryAfterSeconds = 2): GatewayError {
  return new GatewayError(503, message, { type: 'Unavailable', retryAfterSeconds });
}

/** One try of a model call that came to nothing. */
import type { GatewayError } from '../errors.js';

export interface TryFailedOptions {
  /** Whether the same call may succeed a moment later. */
  again: boolean;
  /** The next try leaves something out that was refused: nothing is waited for, and this one is no failure. */
  adapted?: boolean;
  /** What the provider asked to wait. */
  retryAfterSeconds?: number | undefined;
}

/** `error` is what the run ends with when no other try follows. */
export class TryFailed extends Error {
  override readonly name = 'TryFailed';
  readonly again: boolean;
  readonly adapted: boolean;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    readonly error: GatewayError,
    { again, adapted = false, retryAfterSeconds }: TryFailedOptions,
  ) {
    super(error.message);
    this.again = again;
    this.adapted = adapted;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

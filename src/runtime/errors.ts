/** The errors that the controller engine tells apart (style: terminal, expected, anything else). */

/**
 * Retrying cannot help until the object changes. The engine logs it once and does not requeue; whoever throws it has
 * put the reason into the object's conditions.
 */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}

/** This process no longer holds the lease, so it must not write. The engine drops the key silently. */
export class NotLeadingError extends Error {
  override readonly name = 'NotLeadingError';
}

/**
 * Whether the error marks itself with `unavailable: true`: it says nothing about the key, since whoever is asked for all keys
 * gave no answer (src/kube sets it where the API server is unavailable). Such a key is tried again soon however often it failed.
 */
export function isUnavailable(error: unknown): boolean {
  return error instanceof Error && 'unavailable' in error && error.unavailable === true;
}

/**
 * Whether the error marks itself with `retrySoon: true`: an expected outcome such as a write that was based on an
 * older version (src/kube sets it for 409 Conflict). It is retried with backoff but never logged as an error.
 */
export function isRetrySoon(error: unknown): boolean {
  return error instanceof Error && 'retrySoon' in error && error.retrySoon === true;
}

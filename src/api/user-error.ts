/**
 * Something that the caller can put right: the message says what is wrong and what to do, and is shown to the caller as it
 * is. Every other error is ours: the caller sees a general text and the log the cause.
 */
export class UserError extends Error {
  override readonly name = 'UserError';
}

/**
 * What can go wrong with a call to the API server. Messages are made from the Status object's own words, without the
 * values that it quotes, and never from headers or bodies: they may go to logs.
 */

const MAX_MESSAGE = 1024;

export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

export interface KubeApiErrorInput {
  status: number;
  reason: string;
  message: string;
  details?: StatusDetails;
  retryAfterSeconds?: number;
  /** What was tried, for the message: `create agentruns`. */
  operation?: string;
}

/** The API server answered, but not with 2xx. */
export class KubeApiError extends Error {
  override readonly name = 'KubeApiError';
  /** HTTP status code. */
  readonly status: number;
  /** Machine-readable reason of the Status object, for example `AlreadyExists`; `Unknown` when there was none. */
  readonly reason: string;
  readonly details?: StatusDetails;
  /** From the Retry-After header or the Status object. */
  readonly retryAfterSeconds?: number;
  /** For the controller engine (src/runtime/errors.ts): a write lost against a newer version. */
  readonly retrySoon: boolean;
  /** For the controller engine: the server, or etcd behind it, cannot answer anybody. */
  readonly unavailable: boolean;

  constructor(input: KubeApiErrorInput) {
    const what = input.operation === undefined ? '' : `${input.operation}: `;
    super(`${what}${input.status} ${input.reason}: ${withoutValues(input.message)}`.slice(0, MAX_MESSAGE));
    this.status = input.status;
    this.reason = input.reason;
    if (input.details !== undefined) this.details = input.details;
    if (input.retryAfterSeconds !== undefined) this.retryAfterSeconds = input.retryAfterSeconds;
    this.unavailable = input.status >= 500;
    this.retrySoon = input.status === 409 && input.reason !== 'AlreadyExists';
  }
}

/** Why there was no answer. After `timeout`, `aborted` and `network` a write may or may not have happened. */
export type ConnectionFailure = 'timeout' | 'aborted' | 'network';

/** There was no answer from the API server, or not a whole one. */
export class KubeConnectionError extends Error {
  override readonly name = 'KubeConnectionError';
  readonly failure: ConnectionFailure;
  /** For the controller engine: nobody answers. */
  readonly unavailable: boolean;

  constructor(message: string, failure: ConnectionFailure, cause?: unknown) {
    super(message, { cause });
    this.failure = failure;
    this.unavailable = failure !== 'aborted';
  }
}

/** 404. */
export function isNotFound(error: unknown): boolean {
  return error instanceof KubeApiError && error.status === 404;
}

/** 409 because the object has another resourceVersion or UID than the write named (not: it exists already). */
export function isConflict(error: unknown): boolean {
  return error instanceof KubeApiError && error.status === 409 && error.reason !== 'AlreadyExists';
}

/** 409 on create: an object of that name is there. */
export function isAlreadyExists(error: unknown): boolean {
  return error instanceof KubeApiError && error.status === 409 && error.reason === 'AlreadyExists';
}

/** 410: the resourceVersion or the continue token is too old; list again. */
export function isGone(error: unknown): boolean {
  return error instanceof KubeApiError && error.status === 410;
}

/** 422: the object breaks its schema or a rule. */
export function isInvalid(error: unknown): boolean {
  return error instanceof KubeApiError && error.status === 422;
}

/**
 * The top-level fields of the status that the schema of the object refuses; none for any other error, also of a policy, whose
 * causes name no field.
 */
export function invalidStatusFields(error: unknown): ReadonlySet<string> {
  const causes = error instanceof KubeApiError && isInvalid(error) ? (error.details?.causes ?? []) : [];
  const fields = causes.map(({ field }) => /^status\.([A-Za-z]+)/.exec(field ?? '')?.[1]);
  return new Set(fields.filter((field) => field !== undefined));
}

/** A 4xx: the API server did not do it. After a 5xx and after no answer a write may have happened. */
export function isRefused(error: unknown): error is KubeApiError {
  return error instanceof KubeApiError && error.status < 500;
}

/** 400: the request makes no sense, or an admission webhook that names no code said no. */
export function isBadRequest(error: unknown): boolean {
  return error instanceof KubeApiError && error.status === 400;
}

/** 403: RBAC, quota or an admission policy said no. */
export function isForbidden(error: unknown): boolean {
  return error instanceof KubeApiError && error.status === 403;
}

/** 403 on create: the namespace is being deleted, so nothing more can be made in it. */
export function isNamespaceTerminating(error: unknown): boolean {
  const causes = error instanceof KubeApiError ? error.details?.causes : undefined;
  return causes?.some(({ reason }) => reason === 'NamespaceTerminating') === true;
}

const REFUSED_VALUE = /(?:Invalid|Unsupported|Duplicate) value: (?=["[{])/g;
const QUOTED = /"(?:[^"\\]|\\.)*"/sy;

/** The API server quotes what it refuses; that may be a payload or a credential, so only the kind of value stays. */
export function withoutValues(message: string): string {
  const lastBracket = Math.max(message.lastIndexOf(']'), message.lastIndexOf('}'));
  let clean = '';
  let read = 0;
  for (const { 0: prefix, index } of message.matchAll(REFUSED_VALUE)) {
    const start = index + prefix.length;
    const end = endOfValue(message, start, lastBracket);
    // Behind the last bracket and inside a value that was cut out there is nothing to do.
    if (index < read || end === undefined) continue;
    const value = message.slice(start, end);
    clean += message.slice(read, start) + (isTypeName(value) ? value : '…');
    read = end;
  }
  return clean + message.slice(read);
}

/** Where a value that begins with a quote or bracket ends: one in brackets may hold any text, so it ends with the last. */
function endOfValue(message: string, start: number, lastBracket: number): number | undefined {
  if (message[start] !== '"') return lastBracket > start ? lastBracket + 1 : undefined;
  QUOTED.lastIndex = start;
  return QUOTED.test(message) ? QUOTED.lastIndex : undefined;
}

function isTypeName(value: string): boolean {
  return ['"string"', '"integer"', '"number"', '"boolean"', '"object"', '"array"', '"null"'].includes(value);
}

/** A read where "not there" is an answer: undefined. */
export async function orUndefined<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

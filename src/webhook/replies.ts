/** The answers of the trigger URL (spec 4.3). */
import type { ServerResponse } from 'node:http';

export interface Reply {
  status: number;
  headers?: Record<string, string>;
  /** Sent as JSON; no body when absent. */
  body?: Record<string, string>;
}

/**
 * One answer for everything that must not be told apart: unknown agent or trigger, wrong token, disabled trigger, broken
 * URL, a call that was turned away.
 */
export const NOT_FOUND: Reply = {
  status: 404,
  body: { error: 'no enabled trigger has this URL, or the call was turned away' },
};

export const HEAD_OK: Reply = { status: 200 };
/** OPTIONS and passive visits. */
export const NO_CONTENT: Reply = { status: 204 };

export const BODY_TOO_LARGE: Reply = {
  status: 413,
  body: { error: 'the request body is over 1 MB (1048576 bytes)' },
};

/** 405 with the methods that are allowed. */
export function methodNotAllowed(method: string, allowed: readonly string[]): Reply {
  const list = allowed.join(', ');
  return {
    status: 405,
    headers: { allow: list },
    body: { error: `this trigger does not accept ${method}; it accepts ${list}` },
  };
}

/** 202 with the ids of the run; its outcome is read with get_run. */
export function accepted(runId: string, sessionId: string, trigger: string): Reply {
  return { status: 202, body: { runId, sessionId, trigger } };
}

/** Writes a reply; `keepAlive` false closes the connection after it, because part of the request is unread. */
export function sendReply(response: ServerResponse, reply: Reply, keepAlive: boolean): void {
  const body = reply.body === undefined ? undefined : Buffer.from(JSON.stringify(reply.body));
  response.writeHead(reply.status, {
    ...reply.headers,
    'cache-control': 'no-store',
    ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length }),
    ...(body === undefined && reply.status !== 204 ? { 'content-length': 0 } : {}),
    ...(keepAlive ? {} : { connection: 'close' }),
  });
  response.end(body);
}

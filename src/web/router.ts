/**
 * What the app in the browser calls: sign-in with an API key, the tools, the board and the inbox, and events. It has no rights of
 * its own: a session stands for the key that opened it, which is looked up at each call, and tools are called as by MCP.
 *
 * | Call                          | Answer                                                        |
 * | ----------------------------- | ------------------------------------------------------------- |
 * | `POST /api/app/session`       | `{"key": …}` opens a session: its cookie, and who it is       |
 * | `GET /api/app/session`        | who it is                                                     |
 * | `DELETE /api/app/session`     | ends it                                                       |
 * | `POST /api/app/call`          | a JSON-RPC message as for the MCP endpoint                    |
 * | `GET /api/app/board?since=`   | boxes and agents with the sums of their runs since that time  |
 * | `GET /api/app/inbox?since=`   | what waits for a person, and runs that failed since that time |
 * | `GET /api/app/timeline?agentId=&runId=` | what happened in a run, in order                    |
 * | `GET /api/app/events`         | server-sent events: `change`, `signed-out`                    |
 *
 * Calls that may change something need the header `x-boxwright-app`, which no form and no foreign page can send, and an Origin
 * that is ours. Status codes: 400, 401 without a session, 403 another Origin or Host, 404, 405, 503.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { hashOfApiKey } from '../api/api-key-validity.js';
import { answerMessage } from '../mcp/router.js';
import type { McpRouterDeps } from '../mcp/router.js';
import { toolFailure } from '../mcp/tool-error.js';
import { readCappedBody } from '../net/capped-body.js';
import { readBoard, readInbox } from '../services/board/board.js';
import type { Caller } from '../services/keys/key-check.js';
import { getRunEvents } from '../services/runs/runs.js';
import type { RunDeps } from '../services/runs/runs.js';
import type { ScopeDeps } from '../services/scope.js';
import { DATA_HEADERS } from './headers.js';
import { SESSION_MS } from './session-cookie.js';
import type { SessionCookie, SessionSeal } from './session-cookie.js';
import { serveStatic } from './static-files.js';
import type { StaticFiles } from './static-files.js';
import type { Watchers } from './watchers.js';

export const APP_ROUTE = '/api/app';
/** A header that makes a browser ask first when a page of another origin wants to send it. */
export const APP_HEADER = 'x-boxwright-app';
const MAX_SIGN_IN_BYTES = 4 * 1024;

export interface AppRouterDeps extends Omit<McpRouterDeps, 'isOriginAllowed'> {
  /** Origin of the public URL. */
  publicOrigin: string;
  seal: SessionSeal;
  cookie: SessionCookie;
  watchers: Watchers;
  scope: ScopeDeps;
  runs: RunDeps;
  /** Undefined when the image has no app. */
  files: StaticFiles | undefined;
}

/** Fits `app.use` of express. */
export type AppRouter = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;

/** Answers calls of the app and its files, and passes on all others. */
export function createAppRouter(deps: AppRouterDeps): AppRouter {
  return (request, response, next) => {
    const [path = ''] = (request.url ?? '').split('?', 1);
    if (path !== APP_ROUTE && !path.startsWith(`${APP_ROUTE}/`)) {
      if (deps.files === undefined || !serveStatic(deps.files, request, response)) next();
      return;
    }
    const started = deps.clock.monotonic();
    response.once('close', () => {
      // A stream lasts as long as its page: that is no time that somebody waited.
      const seconds = path === `${APP_ROUTE}/events` ? 0 : (deps.clock.monotonic() - started) / 1000;
      const method = request.method ?? '';
      deps.http.observe({ route: APP_ROUTE, method, status: response.statusCode, seconds });
    });
    void answer(deps, path.slice(APP_ROUTE.length + 1), request, response);
  };
}

type Route = (call: AppCall) => Promise<void> | void;

interface AppCall {
  deps: AppRouterDeps;
  request: IncomingMessage;
  response: ServerResponse;
  caller: Caller;
  /** Hash of the caller's key. */
  hash: string;
}

/** What needs a session, by path and method. */
const ROUTES: Record<string, Record<string, Route>> = {
  session: { GET: ({ response, caller }) => sendJson(response, 200, whoIs(caller)) },
  call: {
    POST: ({ deps, request, response, caller }) =>
      answerMessage(deps, { ...caller, origin: 'chat', address: deps.callerAddress(request) }, request, response),
  },
  board: { GET: (call) => sendSince(call, readBoard) },
  inbox: { GET: (call) => sendSince(call, readInbox) },
  timeline: { GET: sendTimeline },
  events: { GET: watch },
};

async function answer(
  deps: AppRouterDeps,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    for (const [name, value] of Object.entries(DATA_HEADERS)) response.setHeader(name, value);
    const method = request.method ?? '';
    const refusal = foreign(deps, request);
    if (refusal !== undefined) return sendError(response, 403, refusal);
    if (path === 'session' && method === 'POST') return await signIn(deps, request, response);
    if (path === 'session' && method === 'DELETE') {
      response.setHeader('set-cookie', deps.cookie.clear());
      return sendJson(response, 200, {});
    }
    const routes = Object.hasOwn(ROUTES, path) ? ROUTES[path] : undefined;
    if (routes === undefined) return sendError(response, 404, 'not found');
    const route = Object.hasOwn(routes, method) ? routes[method] : undefined;
    if (route === undefined) return sendError(response, 405, 'method not allowed');
    const hash = await deps.seal.open(deps.cookie.read(request.headers.cookie));
    const caller = hash === undefined ? undefined : await deps.keys.checkHash(hash);
    if (hash === undefined || caller === undefined) return sendError(response, 401, SIGNED_OUT);
    await route({ deps, request, response, caller, hash });
  } catch (error) {
    deps.log.error({ err: error }, 'call of the app failed');
    sendError(response, 500, 'internal error: try again');
  }
}

const SIGNED_OUT = 'signed out: sign in with an API key';

/** Why a call does not come from our own page; undefined when it does. Reads need no Origin: no page can read their answers. */
function foreign(deps: AppRouterDeps, { method, headers }: IncomingMessage): string | undefined {
  const { host, origin } = headers;
  if (host !== undefined && !deps.isHostAllowed(host)) return 'this name is not in api.allowedHosts of the chart';
  if (origin !== undefined && !isOwnOrigin(deps.publicOrigin, origin, host)) return 'pages of this Origin may not call';
  if (method === 'GET' || method === 'HEAD') return undefined;
  if (origin === undefined) return 'the header Origin is missing';
  return headers[APP_HEADER] === undefined ? `the header ${APP_HEADER} is missing` : undefined;
}

/** That of the public URL, or the very name that was called: the names that may be called are a list. */
function isOwnOrigin(publicOrigin: string, origin: string, host: string | undefined): boolean {
  return (
    origin === publicOrigin || (host !== undefined && /^https?:\/\//.test(origin) && origin.split('//')[1] === host)
  );
}

const SignIn = z.object({ key: z.string().min(1).max(512) });

async function signIn(deps: AppRouterDeps, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const budget = { all: deps.bodies, address: request.socket.remoteAddress ?? '' };
  const { state, body } = await readCappedBody(request, { maxBytes: MAX_SIGN_IN_BYTES, budget });
  if (state === 'aborted') return;
  const given = state === 'complete' ? SignIn.safeParse(parsed(body)) : undefined;
  if (given?.success !== true) return sendError(response, 400, 'the body must be {"key": "<API key>"}');
  const key = given.data.key.trim();
  const caller = await deps.keys.check(`Bearer ${key}`);
  const address = deps.callerAddress(request);
  if (caller === undefined) {
    return deps.wrongKeys.tried(address, (close) => {
      if (close) response.setHeader('connection', 'close');
      sendError(response, 401, 'this API key is not valid: it is unknown, revoked or expired');
    });
  }
  const value = deps.seal.seal(hashOfApiKey(key));
  if (value === undefined) return sendError(response, 503, 'this pod has no keyring yet: try again in a moment');
  const { workspace, keyPrefix } = caller;
  deps.log.info({ audit: true, outcome: 'signed_in', key: keyPrefix, workspace, address }, 'sign-in');
  response.setHeader('set-cookie', deps.cookie.set(value));
  sendJson(response, 200, whoIs(caller));
}

function whoIs({ workspace, keyPrefix, readOnly }: Caller) {
  return { workspace, keyPrefix, readOnly, sessionHours: SESSION_MS / 3_600_000 };
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

const Since = z.iso.datetime().max(40);

/** What `read` says of the time since which the page wants to know, such as the last midnight of its viewer. */
function sendSince(
  { deps, request, response, caller }: AppCall,
  read: (deps: ScopeDeps, caller: Caller, since: string) => object,
): void {
  const since = Since.safeParse(new URLSearchParams(request.url?.split('?')[1] ?? '').get('since'));
  if (!since.success) return sendError(response, 400, 'since must be a time such as 2026-05-01T00:00:00.000Z');
  sendJson(response, 200, read(deps.scope, caller, new Date(since.data).toISOString()));
}

async function sendTimeline({ deps, request, response, caller }: AppCall): Promise<void> {
  const query = new URLSearchParams(request.url?.split('?')[1] ?? '');
  try {
    sendJson(
      response,
      200,
      await getRunEvents(deps.runs, caller, query.get('agentId') ?? '', query.get('runId') ?? ''),
    );
  } catch (error) {
    const failure = toolFailure(error);
    if (failure.fault) deps.log.error({ err: error }, 'the events of a run could not be read');
    sendError(response, failure.fault ? 503 : 404, failure.message);
  }
}

function watch({ deps, response, caller, hash }: AppCall): void {
  const who = { key: hash, workspace: caller.workspace };
  const isValid = async () => (await deps.keys.checkHash(hash)) !== undefined;
  if (!deps.watchers.add(response, who, isValid)) {
    response.setHeader('retry-after', '10');
    sendError(response, 503, 'too many open pages: close some');
  }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  if (response.destroyed || response.headersSent) return;
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length }).end(bytes);
}

function sendError(response: ServerResponse, status: number, error: string): void {
  sendJson(response, status, { error });
}

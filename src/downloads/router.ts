/**
 * Downloads of published files, `{base}/api/files/…`. What a file holds was written by an agent: it is offered for saving and
 * nothing of it is ever shown or executed under our name. A wrong URL, one that has expired and one whose file is gone get the
 * same 404. The URL is a secret: logs and metrics have its pattern.
 */
import type { Request, RequestHandler, Response } from 'express';
import type { HttpMetrics } from '../observability/metrics.js';
import type { Logger } from '../observability/logger.js';
import type { Clock } from '../runtime/clock.js';
import type { FileTarget } from '../services/files/file-links.js';
import type { OpenedFile } from '../services/files/file-reader.js';
import { DownloadLimits } from './limits.js';
import type { DownloadMetrics, DownloadOutcome } from './metrics.js';

const ROUTE = '/api/files/:box/:run/:sha256/:expires/:token/:name';
const PREFIX = '/api/files';
const METHODS = ['GET', 'HEAD'];
/** Longest time for one file to leave: at 10 KiB a second it is through. */
const SEND_MS = 120_000;
const MAX_PATH = 4096;

export interface DownloadDeps {
  /** Whether the token of the URL opens the file now. */
  opens(file: FileTarget, token: string): boolean;
  /** Undefined when it is gone. */
  open(file: FileTarget): Promise<OpenedFile | undefined>;
  clock: Clock;
  metrics: DownloadMetrics;
  http: HttpMetrics;
  log: Logger;
}

/** Answers every call below `/api/files` and passes on all others. Reads the raw URL, like the router of trigger URLs. */
export function createDownloadRouter(deps: DownloadDeps): RequestHandler {
  const limits = new DownloadLimits(deps.clock);
  return (request, response, next) => {
    const [path = ''] = request.url.split('?', 1);
    if (path !== PREFIX && !path.startsWith(`${PREFIX}/`)) return next();
    void handle({ request, response, path }, limits, deps);
  };
}

interface Call {
  request: Request;
  response: Response;
  path: string;
}

async function handle(call: Call, limits: DownloadLimits, deps: DownloadDeps): Promise<void> {
  const { request, response } = call;
  const started = deps.clock.monotonic();
  let outcome: DownloadOutcome;
  try {
    outcome = await answer(call, limits, deps);
  } catch (error) {
    outcome = 'failed';
    deps.log.warn({ err: error, route: ROUTE }, 'a file could not be read');
    response.setHeader('retry-after', '2');
    sendError(response, 503, 'the file cannot be read at the moment: try again');
  }
  deps.metrics.called(outcome);
  const seconds = (deps.clock.monotonic() - started) / 1000;
  deps.http.observe({ route: ROUTE, method: request.method, status: response.statusCode, seconds });
}

async function answer({ request, response, path }: Call, limits: DownloadLimits, deps: DownloadDeps) {
  response.set('cache-control', 'no-store');
  if (!METHODS.includes(request.method)) {
    response.set('allow', METHODS.join(', '));
    sendError(response, 405, 'a file is read with GET or HEAD');
    return 'method';
  }
  const url = parsePath(path);
  const isOpened = deps.opens(url?.file ?? NO_FILE, url?.token ?? '');
  if (url === undefined || !isOpened) return notFound(response, 'unknown');
  const end = limits.begin(url.file.box);
  if (end === undefined) {
    response.set('retry-after', '1');
    sendError(response, 429, 'too many files of this Box are being downloaded: try again');
    return 'limited';
  }
  const cancelTimer = deps.clock.after(SEND_MS, () => response.destroy());
  response.once('close', () => {
    cancelTimer();
    end();
  });
  const opened = await deps.open(url.file);
  return opened === undefined ? notFound(response, 'gone') : send(request, response, opened);
}

function notFound(response: Response, outcome: DownloadOutcome): DownloadOutcome {
  sendError(response, 404, 'no file has this URL, or the URL has expired: read the run again for a new one');
  return outcome;
}

function sendError(response: Response, status: number, error: string): void {
  response.status(status).set(SAFE).json({ error });
}

const SAFE = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "sandbox; default-src 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
};

function send(request: Request, response: Response, { file, content }: OpenedFile): DownloadOutcome {
  const etag = `"${file.sha256}"`;
  // Names go out by RFC 5987 (RFC 6266); the type is what was published, whatever the ending says.
  response.attachment(file.name);
  response.set({ ...SAFE, 'content-type': file.mediaType, etag, 'accept-ranges': 'bytes' });
  response.set('cache-control', 'private, no-cache');
  if (request.fresh) {
    response.status(304).end();
    return 'not_modified';
  }
  const range = rangeOf(request, etag, content.length);
  if (range === 'unsatisfiable') {
    response.removeHeader('content-disposition');
    response.set('content-range', `bytes */${content.length}`);
    sendError(response, 416, `the file has ${content.length} bytes`);
    return 'range';
  }
  const { start, end } = range ?? { start: 0, end: content.length - 1 };
  const part = content.subarray(start, end + 1);
  if (range !== undefined) {
    response.status(206).set('content-range', `bytes ${start}-${end}/${content.length}`);
  }
  response.set('content-length', String(part.length));
  response.end(request.method === 'HEAD' ? undefined : part);
  return range === undefined ? 'sent' : 'range';
}

/** One range; of several, and of what is no range, the whole file is sent, as RFC 9110 allows. */
function rangeOf(
  request: Request,
  etag: string,
  size: number,
): { start: number; end: number } | 'unsatisfiable' | undefined {
  const condition = request.headers['if-range'];
  if (request.method !== 'GET' || (condition !== undefined && condition !== etag)) return undefined;
  const ranges = request.range(size);
  if (ranges === undefined || ranges === -2) return undefined;
  if (ranges === -1) return 'unsatisfiable';
  const [range] = ranges;
  return ranges.type === 'bytes' && ranges.length === 1 ? range : undefined;
}

/** So that a URL that cannot name a file costs the same HMAC. */
const NO_FILE: FileTarget = { box: '', run: '', sha256: '', name: '', expires: 0 };

function parsePath(path: string): { file: FileTarget; token: string } | undefined {
  if (path.length > MAX_PATH) return undefined;
  const segments = path.slice(PREFIX.length + 1).split('/');
  if (segments.length !== 6) return undefined;
  const [box, run, sha256, expires, token, name] = segments.map(decode);
  if (!box || !run || !sha256 || !token || !name || !/^\d{1,12}$/.test(expires ?? '')) return undefined;
  return { file: { box, run, sha256, name, expires: Number(expires) }, token };
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    // The only error is a malformed escape.
    return undefined;
  }
}

/** The files of the app as the image has them, read once: the page at `/`, and assets whose names carry their hash. */
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { DATA_HEADERS, PAGE_HEADERS } from './headers.js';

const TYPES: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

interface Asset {
  type: string;
  bytes: Buffer;
  gzipped: Buffer;
}

export interface StaticFiles {
  page: Buffer;
  /** By path, such as `/assets/main-ABCD1234.js`. */
  assets: ReadonlyMap<string, Asset>;
}

/** Undefined when the folder is not there: then this pod serves no app. The page is told under which path it is reached. */
export function readStaticFiles(dir: string, publicUrl: string): StaticFiles | undefined {
  const page = readIfThere(join(dir, 'index.html'));
  if (page === undefined) return undefined;
  const base = new URL(publicUrl).pathname.replace(/(?<!\/)\/+$/, '') + '/';
  const assets = readdirSync(join(dir, 'assets')).flatMap((name): [string, Asset][] => {
    const type = TYPES[extname(name)];
    const bytes = readFileSync(join(dir, 'assets', name));
    return type === undefined ? [] : [[`/assets/${name}`, { type, bytes, gzipped: gzipSync(bytes) }]];
  });
  return { page: Buffer.from(page.replaceAll('BASE_PATH', htmlText(base))), assets: new Map(assets) };
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function htmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}

/** Answers a GET of the page or of an asset; false for all else. The page is for browsers only: MCP clients that probe get JSON. */
export function serveStatic(files: StaticFiles, request: IncomingMessage, response: ServerResponse): boolean {
  if (request.method !== 'GET' && request.method !== 'HEAD') return false;
  const [path = ''] = (request.url ?? '').split('?', 1);
  if (path === '/' && (request.headers.accept ?? '').includes('text/html')) {
    const headers = { ...PAGE_HEADERS, 'cache-control': 'no-cache', 'content-type': 'text/html; charset=utf-8' };
    send(request, response, headers, files.page);
    return true;
  }
  const asset = files.assets.get(path);
  if (asset === undefined) return false;
  const { type, bytes, gzipped } = asset;
  const isGzip = /\bgzip\b/.test(request.headers['accept-encoding']?.toString() ?? '');
  const headers = {
    ...DATA_HEADERS,
    'cache-control': 'public, max-age=31536000, immutable',
    'content-type': type,
    vary: 'accept-encoding',
    ...(isGzip ? { 'content-encoding': 'gzip' } : {}),
  };
  send(request, response, headers, isGzip ? gzipped : bytes);
  return true;
}

function send(request: IncomingMessage, response: ServerResponse, headers: Record<string, string>, body: Buffer): void {
  response.writeHead(200, { ...headers, 'content-length': body.length });
  response.end(request.method === 'HEAD' ? undefined : body);
}

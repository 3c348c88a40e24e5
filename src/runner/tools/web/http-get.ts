/** GET of an address that an agent chose: every connection goes through the dialer, redirects are followed by hand. */
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Readable } from 'node:stream';
import { readAnswer } from '../../../net/capped-body.js';
import { dial, targetOf } from '../../../net/dial.js';
import { mediaTypeOf } from '../../../net/media-type.js';
import type { Dialer } from '../../../net/dial.js';
import { ToolFailure } from '../tool-failure.js';

const MEBIBYTE = 1024 * 1024;
const MAX_BODY_MIB = 5;
/** The pictures in a PDF come along. */
const MAX_PDF_MIB = 20;
export const MAX_REDIRECTS = 5;

export interface HttpAnswer {
  /** Where the answer came from, after redirects. */
  url: URL;
  status: number;
  /** As sent; empty when absent. */
  contentType: string;
  /** Unpacked. */
  body: Buffer;
}

/** Rejects with {@link ToolFailure} for what the model should know, with the reason of the signal, or with a system error. */
export async function httpGet(start: URL, dialer: Dialer, signal: AbortSignal): Promise<HttpAnswer> {
  let url = start;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    expectFetchable(url);
    const response = await send(url, dialer, signal);
    const next = redirectOf(response, url);
    if (next === undefined) return await answerOf(url, response, signal);
    response.destroy();
    url = next;
  }
  throw new ToolFailure(`The address redirects more than ${MAX_REDIRECTS} times.`);
}

function expectFetchable(url: URL): void {
  if (!/^https?:$/.test(url.protocol)) throw new ToolFailure('Only http and https addresses can be fetched.');
  if (url.username !== '' || url.password !== '')
    throw new ToolFailure('The address must not contain a user or password.');
}

function redirectOf(response: IncomingMessage, from: URL): URL | undefined {
  const { statusCode = 0, headers } = response;
  if (![301, 302, 303, 307, 308].includes(statusCode) || headers.location === undefined) return undefined;
  const next = URL.parse(headers.location, from.href);
  if (next === null) throw new ToolFailure('The address redirects to something that is not an address.');
  return next;
}

async function send(url: URL, dialer: Dialer, signal: AbortSignal): Promise<IncomingMessage> {
  const target = targetOf(url);
  const tcp = await dial(target, dialer, signal);
  // Whoever uses the socket hears of its end; an error while nobody does must not end the process.
  tcp.on('error', () => undefined);
  const onAbort = () => tcp.destroy(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  tcp.once('close', () => signal.removeEventListener('abort', onAbort));
  const socket = url.protocol === 'https:' ? await startTls(tcp, target.host) : tcp;
  return await new Promise((resolve, reject) => {
    const call = request({
      createConnection: () => socket,
      method: 'GET',
      path: `${url.pathname}${url.search}`,
      headers: {
        host: url.host,
        accept: 'text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5',
        'accept-encoding': 'gzip, br',
        'user-agent': 'Mozilla/5.0 (compatible; Boxwright)',
        connection: 'close',
      },
    });
    call.once('error', reject);
    call.once('response', resolve);
    // What is no answer to a GET, such as a change of protocol, ends the connection without an error.
    call.once('close', () => reject(connectionClosed()));
    call.end();
  });
}

function startTls(tcp: Socket, host: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const name = isIP(host) === 0 ? { servername: host } : {};
    const socket = connectTls({ socket: tcp, host, ...name, ALPNProtocols: ['http/1.1'] });
    socket.once('error', reject);
    tcp.once('close', () => reject(connectionClosed()));
    socket.once('secureConnect', () => resolve(socket));
  });
}

function connectionClosed(): Error {
  return Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' });
}

async function answerOf(url: URL, response: IncomingMessage, signal: AbortSignal): Promise<HttpAnswer> {
  const contentType = response.headers['content-type'] ?? '';
  const maxMib = mediaTypeOf(contentType) === 'application/pdf' ? MAX_PDF_MIB : MAX_BODY_MIB;
  const body = await readBody(unpacked(response), maxMib, signal).finally(() => response.destroy());
  return { url, status: response.statusCode ?? 0, contentType, body };
}

const UNPACK: Record<string, () => NodeJS.ReadWriteStream & Readable> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  br: createBrotliDecompress,
  deflate: createInflate,
};

function unpacked(response: IncomingMessage): Readable {
  const encoding = (response.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding === '' || encoding === 'identity') return response;
  const unpack = UNPACK[encoding];
  if (unpack === undefined) throw new ToolFailure('The answer is packed in a way that cannot be read.');
  const stream = unpack();
  response.on('error', (error) => stream.destroy(error));
  return response.pipe(stream);
}

/** Counts unpacked bytes, so that a small packed answer cannot fill the memory. */
async function readBody(stream: Readable, maxMib: number, signal: AbortSignal): Promise<Buffer> {
  const body = await readAnswer(stream, maxMib * MEBIBYTE);
  signal.throwIfAborted();
  if (body === undefined) throw new ToolFailure(`The answer is larger than ${maxMib} MiB.`);
  return body;
}

/**
 * The only way of the browser to the network: a proxy on loopback that connects through the dialer, so that a page, its
 * scripts and its redirects reach public addresses and nothing else. It does not look into TLS, and it binds the browser
 * alone: commands of the shell have the network that the Box allows.
 */
import { createServer, request } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { AddressRefusedError, dial, targetOf } from '../../../net/dial.js';
import type { Dialer, DialTarget } from '../../../net/dial.js';

const MAX_CONNECTIONS = 128;
/** Names that are remembered as refused, for the explanation of a failed navigation. */
const MAX_REFUSED = 100;

export interface FilteringProxy {
  /** For the browser's settings. */
  url: string;
  /** Whether a connection to the host was refused because of its address. */
  wasRefused(host: string): boolean;
  close(): Promise<void>;
}

export async function startFilteringProxy(dialer: Dialer): Promise<FilteringProxy> {
  const stop = new AbortController();
  const refused = new Set<string>();
  const note = (host: string, error: unknown) => {
    if (error instanceof AddressRefusedError && refused.size < MAX_REFUSED) refused.add(host);
  };
  const connect = async (target: DialTarget) => {
    try {
      return await dial(target, dialer, stop.signal);
    } catch (error) {
      note(target.host, error);
      throw error;
    }
  };
  const open = new Set<Duplex>();
  const server = createServer((asked, answer) => void forward(asked, answer, connect));
  server.maxConnections = MAX_CONNECTIONS;
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.on('connect', (asked, socket, head) => void tunnel(asked, { socket, head }, connect));
  await listen(server);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    wasRefused: (host) => refused.has(host),
    close: () => {
      stop.abort();
      for (const socket of open) socket.destroy();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}

type Connect = (target: DialTarget) => Promise<Socket>;

function listen(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
}

/** CONNECT host:port, for https and WebSockets. */
async function tunnel(
  asked: IncomingMessage,
  client: { socket: Duplex; head: Buffer },
  connect: Connect,
): Promise<void> {
  const { socket, head } = client;
  socket.on('error', () => undefined);
  const target = URL.parse(`http://${asked.url ?? ''}`);
  try {
    if (target === null) throw new Error('no target');
    const remote = await connect(targetOf(target));
    remote.on('error', () => socket.destroy());
    remote.on('close', () => socket.destroy());
    endWith(socket, remote);
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    remote.write(head);
    remote.pipe(socket).pipe(remote);
  } catch {
    socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n');
  }
}

/** A plain http request in absolute form. */
async function forward(asked: IncomingMessage, answer: ServerResponse, connect: Connect): Promise<void> {
  const target = URL.parse(asked.url ?? '');
  try {
    if (target?.protocol !== 'http:') throw new Error('no target');
    const socket = await connect(targetOf(target));
    const { 'proxy-connection': _hop, ...headers } = asked.headers;
    const onward = request({
      createConnection: () => socket,
      method: asked.method,
      path: `${target.pathname}${target.search}`,
      headers: { ...headers, host: target.host, connection: 'close' },
    });
    onward.on('error', () => answer.destroy());
    onward.on('response', (response) => passBack(response, answer));
    // Such as a change of protocol, which ends the connection without an error.
    onward.on('close', () => {
      if (!answer.headersSent) answer.destroy();
    });
    endWith(answer, socket);
    asked.pipe(onward);
  } catch {
    answer.destroy();
  }
}

function passBack(response: IncomingMessage, answer: ServerResponse): void {
  response.on('error', () => answer.destroy());
  try {
    answer.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(answer);
  } catch {
    // A status or a set of headers that can be read, but not written.
    answer.destroy();
  }
}

/** Nothing is left of a connection whose client has gone, also when it went while the connection was made. */
function endWith(client: Duplex | ServerResponse, remote: Socket): void {
  if (client.destroyed) remote.destroy();
  else client.once('close', () => remote.destroy());
}

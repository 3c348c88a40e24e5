/** A proxy on the loopback in front of the API: it notes what a client sends, and adds the key for clients that cannot. */
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LoopbackProxy {
  /** The MCP endpoint behind the proxy. */
  url: string;
  /** Method and path of every request so far. */
  requests: string[];
  close(): void;
}

export async function startLoopbackProxy(target: string, key?: string): Promise<LoopbackProxy> {
  const { origin, pathname } = new URL(target);
  const requests: string[] = [];
  const added = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const server = createServer((incoming, outgoing) => {
    const { method, url: path } = incoming;
    requests.push(`${method} ${path}`);
    const forward = request(`${origin}${path}`, { method, headers: { ...incoming.headers, ...added } }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forward.once('error', () => outgoing.destroy());
    incoming.pipe(forward);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${pathname}`,
    requests,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/**
 * Where executions leave a mark outside of all that is killed: a small HTTP server of this program, on the address of the node
 * when that is this machine and the network lets runs reach it.
 */
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import type { AddressInfo } from 'node:net';

/** The host name of a pod, and the id of the execution. */
const MARK_PATH = /^\/mark\/([a-z0-9.-]{1,63})\/([0-9a-f-]{36})$/;

export class MarkServer {
  /** Pods by the id of the execution. */
  readonly #marks = new Map<string, string>();

  private constructor(private readonly server: Server) {}

  static async start(address: string): Promise<MarkServer> {
    const server = createServer();
    const marks = new MarkServer(server);
    server.on('request', (request, response) => {
      const [, pod, execution] = MARK_PATH.exec(request.url ?? '') ?? [];
      if (request.method === 'POST' && pod !== undefined && execution !== undefined) marks.#marks.set(execution, pod);
      response.writeHead(204).end();
    });
    server.listen(0, address);
    await once(server, 'listening');
    return marks;
  }

  /** What a shell posts to; the host name of its pod and the id of the execution follow. */
  get url(): string {
    const { address, port } = this.server.address() as AddressInfo;
    return `http://${address}:${port}/mark/`;
  }

  /** Names of the pods that marked, one an execution. */
  get pods(): readonly string[] {
    return [...this.#marks.values()];
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** Marks of each run: pods are named `<run>-<suffix>`, and no run is named like the beginning of another one. */
export function marksByRun(pods: readonly string[]): ReadonlyMap<string, string[]> {
  return Map.groupBy(pods, (pod) => pod.slice(0, pod.lastIndexOf('-')));
}

/** Whether the address is one of this machine. */
export function isOwnAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((all) => all?.some((one) => one.address === address) === true);
}

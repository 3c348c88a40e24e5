/** The TLS server of the gateway: certificate from a Secret that is read again every minute, orderly stop. */
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Logger } from '../../observability/logger.js';
import { limitWaitingConnections } from '../../net/waiting-connections.js';
import { closeWithin } from '../../observability/probes.js';
import { backoffDelay } from '../../runtime/backoff.js';
import { sleep, type Clock } from '../../runtime/clock.js';
import type { TlsMaterial, TlsSource } from './tls.js';
import type { GatewayHandler } from './handler.js';

const REREAD_MS = 60_000;
const FIRST_READ = { baseMs: 500, maxMs: 10_000, jitter: 0.2 };
/** Below the grace of a pod; answers in work may end. */
const STOP_GRACE_MS = 15_000;
const HEADERS_TIMEOUT_MS = 10_000;
/** For the whole request; the answer may take longer. */
const REQUEST_TIMEOUT_MS = 60_000;
const KEEP_ALIVE_MS = 75_000;

export interface GatewayServerOptions {
  /** 0 takes a free port. */
  port: number;
  /** All addresses when absent. */
  host?: string;
  tls: TlsSource;
  handler: Pick<GatewayHandler, 'handle'>;
  clock: Clock;
  log: Logger;
}

export class GatewayServer {
  readonly name = 'gateway server';
  readonly #options: GatewayServerOptions;
  readonly #stopping = new AbortController();
  #server: Server | undefined;
  #material: TlsMaterial | undefined;
  #renewing: Promise<void> = Promise.resolve();
  #draining = false;

  constructor(options: GatewayServerOptions) {
    this.#options = options;
  }

  /** The open port; 0 before start. */
  get port(): number {
    return (this.#server?.address() as AddressInfo | null | undefined)?.port ?? 0;
  }

  /** True from the beginning of the stop. */
  get isDraining(): boolean {
    return this.#draining;
  }

  /** Waits for the certificate, then opens the port; resolves early when the signal fires. */
  async start(signal: AbortSignal): Promise<void> {
    const material = await this.#firstMaterial(signal);
    if (material === undefined) return;
    this.#material = material;
    const { handler, port, host } = this.#options;
    const server = createServer({ ...pair(material), minVersion: 'TLSv1.2', maxHeaderSize: 16 * 1024 }, (req, res) => {
      void handler.handle(req, res);
    });
    server.headersTimeout = HEADERS_TIMEOUT_MS;
    server.requestTimeout = REQUEST_TIMEOUT_MS;
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    limitWaitingConnections(server);
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.off('error', reject);
        resolve();
      });
    });
    this.#renewing = this.#renew(server);
  }

  /** New calls are answered 503, so that runners go to another pod; calls in work may end. */
  async stop(): Promise<void> {
    this.#draining = true;
    this.#stopping.abort();
    await this.#renewing;
    if (this.#server !== undefined) await closeWithin(this.#server, STOP_GRACE_MS, this.#options.clock);
  }

  async #firstMaterial(signal: AbortSignal): Promise<TlsMaterial | undefined> {
    const { tls, clock, log } = this.#options;
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        return await tls.read(signal);
      } catch (err) {
        // The controller of a fresh installation makes the Secret while this pod starts.
        log.warn({ err, attempt: failures }, 'the certificate of the gateway is not there yet');
      }
      await sleep(clock, backoffDelay(FIRST_READ, failures), signal);
    }
    return undefined;
  }

  async #renew(server: Server): Promise<void> {
    const { tls, clock, log } = this.#options;
    const { signal } = this.#stopping;
    for (;;) {
      await sleep(clock, REREAD_MS, signal);
      if (signal.aborted) return;
      try {
        const next = await tls.read(signal);
        if (next.cert === this.#material?.cert && next.key === this.#material.key) continue;
        server.setSecureContext(pair(next));
        this.#material = next;
        log.info({}, 'the certificate of the gateway was renewed');
      } catch (err) {
        log.warn({ err }, 'the certificate of the gateway could not be read again; the old one stays');
      }
    }
  }
}

function pair({ cert, key }: TlsMaterial): { cert: string; key: string } {
  return { cert, key };
}

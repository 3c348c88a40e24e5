/** Asks gateway pods what the runs that they serve do now. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Counter, type Registry } from 'prom-client';
import { Agent, request } from 'undici';
import { readText } from '../net/capped-body.js';
import type { Logger } from '../observability/logger.js';
import { FeedAnswer, feedPath } from '../protocol/feed.js';
import type { Clock } from '../runtime/clock.js';
import { withTimeout } from '../runtime/with-timeout.js';
import type { LiveRunRef, LiveFeeds } from '../services/runs/live-feed.js';

/** Whoever reads a run waits no longer for what is not stored. */
const ANSWER_MS = 1_000;
/** Above what a gateway holds of one run. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const KEEP_ALIVE_MS = 30_000;

export interface GatewayFeedsOptions {
  /** Folder with `token`, this pod's token for gateways, and `ca.crt`, which certificates of gateways are checked against. */
  accessDir: string;
  /** Name that the certificate must carry, whatever address is asked. */
  serverName: string;
  clock: Clock;
  registry: Registry;
  log: Pick<Logger, 'debug'>;
}

/** Registers the metrics of feeds. */
export function createFeedMetrics(registry: Registry): Counter<'result'> {
  return new Counter({
    name: 'boxwright_feed_reads_total',
    help: 'Questions to gateway pods what a working run does now.',
    labelNames: ['result'],
    registers: [registry],
  });
}

export class GatewayFeeds implements LiveFeeds {
  readonly #options: GatewayFeedsOptions;
  readonly #reads: Counter<'result'>;
  /** Connections that trust `ca`. */
  #trusted: { ca: string; agent: Agent } | undefined;

  constructor(options: GatewayFeedsOptions) {
    this.#options = options;
    this.#reads = createFeedMetrics(options.registry);
  }

  async read(run: LiveRunRef): Promise<FeedAnswer | undefined> {
    try {
      const answer = await withTimeout(this.#options.clock, ANSWER_MS, (signal) => this.#ask(run, signal));
      this.#reads.inc({ result: 'answered' });
      return answer;
    } catch (err) {
      // What is stored is shown: a gateway pod that is gone, stops or is older must not be an error of the reader.
      this.#options.log.debug(
        { err, namespace: run.namespace, run: run.name },
        'what a run does now could not be read',
      );
      this.#reads.inc({ result: 'failed' });
      return undefined;
    }
  }

  /** Closes the connections. */
  async close(): Promise<void> {
    await this.#trusted?.agent.destroy();
  }

  async #ask({ namespace, name, gatewayAddress }: LiveRunRef, signal: AbortSignal): Promise<FeedAnswer> {
    const [token, ca] = await Promise.all(['token', 'ca.crt'].map((file) => this.#file(file)));
    const url = `https://${gatewayAddress}${feedPath(namespace, name)}`;
    const headers = { authorization: `Bearer ${token?.trim()}` };
    const answer = await request(url, { headers, signal, dispatcher: this.#agentFor(ca ?? '') });
    const text = await readText(answer.body, MAX_ANSWER_BYTES);
    if (answer.statusCode !== 200 || text === undefined) throw new Error(`the gateway answered ${answer.statusCode}`);
    return FeedAnswer.parse(JSON.parse(text));
  }

  /** Read each time: the kubelet renews both. */
  #file(name: string): Promise<string> {
    return readFile(join(this.#options.accessDir, name), 'utf8');
  }

  #agentFor(ca: string): Agent {
    if (this.#trusted?.ca !== ca) {
      void this.#trusted?.agent.close();
      const connect = { ca, servername: this.#options.serverName, timeout: ANSWER_MS };
      this.#trusted = { ca, agent: new Agent({ connect, keepAliveTimeout: KEEP_ALIVE_MS }) };
    }
    return this.#trusted.agent;
  }
}

/** A process of the product as a pod runs it: the bundle, its environment, its probes, SIGTERM at the end. */
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually } from './api-server.js';

const REPOSITORY = join(dirname(fileURLToPath(import.meta.url)), '../..');
const READY_MS = 60_000;
/** Node shows the line of the bundle in which something was thrown; it is long. */
const MAX_LINE = 2_000;

export interface Bundle {
  main: string;
  remove(): Promise<void>;
}

/** Bundles the product as its images do, into a folder of its own; `main` is the control plane. */
export async function bundleProduct(): Promise<Bundle> {
  const folder = await mkdtemp(join(REPOSITORY, 'node_modules/.bundle-'));
  await promisify(execFile)(process.execPath, ['hack/build.mjs', folder], { cwd: REPOSITORY });
  return { main: join(folder, 'boxwright/boxwright.mjs'), remove: () => rm(folder, { recursive: true, force: true }) };
}

export interface ProductProcessOptions {
  bundle: Bundle;
  /** api, gateway or controller. */
  name: string;
  kubeconfig: string;
  internalPort: number;
  /** `BOXWRIGHT_…` variables beside that of the port. */
  env: Record<string, string>;
}

export class ProductProcess {
  /** Log lines of level error, and what Node itself said. */
  readonly errors: string[] = [];
  readonly #options: ProductProcessOptions;
  readonly #child: ChildProcess;
  readonly #exited: Promise<number | null>;
  readonly #inspector: Promise<string>;
  #stopping = false;

  constructor(options: ProductProcessOptions) {
    this.#options = options;
    const { PATH = '' } = process.env;
    this.#child = spawn(process.execPath, ['--inspect=127.0.0.1:0', options.bundle.main, options.name], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH,
        KUBECONFIG: options.kubeconfig,
        BOXWRIGHT_INTERNAL_PORT: String(options.internalPort),
        BOXWRIGHT_LOG_LEVEL: 'error',
        ...options.env,
      },
    });
    this.#exited = new Promise((resolve) =>
      this.#child.once('exit', (code, signal) => {
        if (!this.#stopping) this.errors.push(`${options.name} ended by itself with ${code ?? signal}`);
        resolve(code);
      }),
    );
    this.#inspector = new Promise((resolve) => {
      createInterface({ input: this.#child.stderr as NodeJS.ReadableStream }).on('line', (line) => {
        const url = /^Debugger listening on (ws:.+)$/.exec(line)?.[1];
        if (url !== undefined) resolve(url);
        else if (!/^(For help|Debugger attached|Debugger ending|Waiting for the debugger)/.test(line))
          this.errors.push(line.slice(0, MAX_LINE));
      });
    });
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) =>
      this.errors.push(line.slice(0, MAX_LINE)),
    );
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves when the readiness probe says yes. */
  async ready(): Promise<void> {
    await eventually(
      async () => {
        if (this.#child.exitCode !== null) throw new Error(`${this.#options.name} ended: ${this.errors.join('\n')}`);
        return (await this.#internal('/readyz').catch(() => undefined))?.status === 200;
      },
      `${this.#options.name} is not ready`,
      READY_MS,
    );
  }

  /** The sum of a metric's samples whose labels contain all of these. */
  async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    const wanted = Object.entries(labels);
    const samples = await this.samples(name);
    return samples
      .filter((sample) => wanted.every(([label, value]) => sample.labels[label] === value))
      .reduce((sum, { value }) => sum + value, 0);
  }

  /** All samples of a metric. */
  async samples(name: string): Promise<{ labels: Record<string, string>; value: number }[]> {
    const text = await (await this.#internal('/metrics')).text();
    const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
    return lines.map((line) => ({
      labels: Object.fromEntries(
        [...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', value = '']) => [label, value]),
      ),
      value: Number(line.slice(line.lastIndexOf(' ') + 1)),
    }));
  }

  /** Bytes that are in use after a forced collection of garbage. */
  async memory(): Promise<{ heapUsed: number; rss: number }> {
    const inspector = await Inspector.connect(await this.#inspector);
    try {
      // Twice: finalizers of the first collection free more.
      for (let round = 0; round < 2; round++) await inspector.call('HeapProfiler.collectGarbage', {});
      const expression = 'JSON.stringify(process.memoryUsage())';
      const { result } = (await inspector.call('Runtime.evaluate', { expression })) as { result: { value: string } };
      return JSON.parse(result.value) as { heapUsed: number; rss: number };
    } finally {
      inspector.close();
    }
  }

  /** Its exit code. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.#stopping = true;
    this.#child.kill(signal);
    return await this.#exited;
  }

  #internal(path: string): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.#options.internalPort}${path}`);
  }
}

/** As much of the inspector's protocol as is needed here. */
class Inspector {
  readonly #answers = new Map<number, (result: unknown) => void>();
  #calls = 0;

  private constructor(private readonly socket: WebSocket) {
    socket.addEventListener('message', ({ data }) => {
      const { id, result } = JSON.parse(String(data)) as { id?: number; result?: unknown };
      this.#answers.get(id ?? 0)?.(result);
    });
  }

  static async connect(url: string): Promise<Inspector> {
    const socket = new WebSocket(url);
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener('open', () => resolve(), { once: true });
      socket.addEventListener('error', () => reject(new Error('the inspector does not answer')), { once: true });
    });
    return new Inspector(socket);
  }

  call(method: string, params: object): Promise<unknown> {
    this.#calls += 1;
    const id = this.#calls;
    return new Promise((resolve) => {
      this.#answers.set(id, resolve);
      this.socket.send(JSON.stringify({ id, method, params }));
    });
  }

  close(): void {
    this.socket.close();
  }
}

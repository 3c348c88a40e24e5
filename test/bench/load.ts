/**
 * Clients that send one request again and again and measure it: undici in this process, and a raw Go program where the
 * machine has Go. Both keep their connections and speak HTTP/1.1.
 */
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { Pool } from 'undici';
import { inParallel } from '../../src/runtime/in-parallel.js';

/** Relative to the repository: the benchmark runs there. */
const GO_SOURCE = 'test/bench/go';

/** PEM; what the API server asks of its clients. */
export interface ClientTls {
  ca: string;
  cert: string;
  key: string;
}

export interface LoadRequest {
  url: string;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  /** Each `{name}` in it becomes a name of its own, a DNS label. */
  body: string;
  /** Any other answer is an error. */
  status: number;
  tls?: ClientTls | undefined;
}

export interface Load {
  requests: number;
  atOnce: number;
}

export interface Phase {
  perSecond: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
}

export interface LoadClient {
  name: 'undici' | 'Go';
  /** Rejects when one request is not answered as it should be. */
  send(request: LoadRequest, load: Load): Promise<Phase>;
}

export interface LoadClients {
  all: readonly LoadClient[];
  stop(): Promise<void>;
}

/** All that there are on this machine; `say` is told when there is no Go. */
export async function startLoadClients(say: (line: string) => void): Promise<LoadClients> {
  const folder = await mkdtemp(join(tmpdir(), 'boxwright-bench-'));
  const stop = () => rm(folder, { recursive: true, force: true });
  const program = join(folder, 'client');
  try {
    await promisify(execFile)('go', ['build', '-buildvcs=false', '-o', program, '.'], { cwd: GO_SOURCE });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    say('there is no Go on this machine: undici is the only raw client');
    return { all: [undiciClient], stop };
  }
  return { all: [undiciClient, goClient(program)], stop };
}

/** What every request of one phase begins its names with. */
function newPrefix(): string {
  return `bench-${randomBytes(5).toString('hex')}-`;
}

export const undiciClient: LoadClient = {
  name: 'undici',
  async send({ url, method, headers, body, status, tls }, { requests, atOnce }) {
    const { origin, pathname, search } = new URL(url);
    const pool = new Pool(origin, {
      connections: atOnce,
      ...(tls === undefined ? {} : { connect: { ...tls, allowH2: false } }),
    });
    const prefix = newPrefix();
    const millis: number[] = [];
    const one = async (index: number) => {
      const begun = performance.now();
      const sent = method === 'GET' ? {} : { body: body.replaceAll('{name}', `${prefix}${index}`) };
      const answer = await pool.request({ path: `${pathname}${search}`, method, headers, ...sent });
      await answer.body.arrayBuffer();
      if (answer.statusCode !== status) throw new Error(`answered ${answer.statusCode} instead of ${status}`);
      millis.push(performance.now() - begun);
    };
    try {
      const started = performance.now();
      await inParallel(
        Array.from({ length: requests }, (_, index) => index),
        one,
        atOnce,
      );
      const seconds = (performance.now() - started) / 1000;
      return phaseOf(
        seconds,
        millis.toSorted((a, b) => a - b),
      );
    } finally {
      await pool.close();
    }
  },
};

function goClient(program: string): LoadClient {
  return {
    name: 'Go',
    async send({ tls, ...request }, load) {
      const child = spawn(program, { stdio: ['pipe', 'pipe', 'pipe'] });
      const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
      child.stdin.end(JSON.stringify({ ...request, ...tls, ...load, prefix: newPrefix() }));
      const [code, out, error] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
      if (code !== 0) throw new Error(`the Go client ended with ${code}: ${error.trim()}`);
      const { seconds, millis } = JSON.parse(out) as { seconds: number; millis: number[] };
      return phaseOf(seconds, millis);
    },
  };
}

/** `millis` are sorted. */
export function phaseOf(seconds: number, millis: readonly number[]): Phase {
  const at = (share: number) => round(millis[Math.floor(millis.length * share)] ?? 0);
  return { perSecond: round(millis.length / seconds), p50: at(0.5), p99: at(0.99) };
}

/** Three digits after the point. */
export function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

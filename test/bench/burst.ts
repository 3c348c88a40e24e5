/**
 * A burst of runs through the whole installation: accepted while nothing ends, then worked off, then removed. Pods are
 * played by test/builders/fake-node.ts; everything that Boxwright does is real. The load test asserts the report
 * for a small burst, `make bench BENCH=burst` prints that of a large one.
 */
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { acceptedAt } from '../../src/api/names.js';
import { sessionIdOf } from '../../src/run/session/key.js';
import { isTerminal } from '../../src/run/status.js';
import { isNotFound } from '../../src/kube/errors.js';
import { createInformer } from '../../src/kube/informer.js';
import type { Informer } from '../../src/kube/types.js';
import { createLogger } from '../../src/observability/logger.js';
import { systemClock } from '../../src/runtime/clock.js';
import { eventually } from '../builders/api-server.js';
import { inParallel } from '../../src/runtime/in-parallel.js';
import { FakeNode } from '../builders/fake-node.js';
import { Installation } from '../builders/installation.js';
import type { ProcessName } from '../builders/installation.js';

/** Places for working runs: few, so that the Boxes compete for them. */
const PLACES = 40;
const WEIGHTS = [1, 2, 3, 4];
const AGENTS = ['ada', 'bob'];
const SESSION_LENGTH = 5;
/** One run in so many belongs to a session with others; the rest are webhooks. */
const SESSION_SHARE = 4;
const WARM_UP = 80;
const AT_ONCE = 16;
/** How long a burst takes is a matter of the machine; that nothing moves for so long is an error. */
const STALL_MS = 300_000;
const TOLD_EVERY = 500;
const PROCESSES = ['api', 'gateway', 'controller'] as const;

export interface BurstOptions {
  runs: number;
  /** Told as it goes. */
  say?: (line: string) => void;
}

export interface BurstReport {
  webhooks: number;
  messages: number;
  /** Answers 202. */
  accepted: number;
  /** AgentRuns of the burst. */
  agentRuns: number;
  terminal: number;
  /** Ids of accepted runs that are no AgentRun. */
  lost: number;
  reasons: Record<string, number>;
  executedTwice: string[];
  /** Growth of the fireCounts of all triggers: at the end of the burst, and after all runs were removed. */
  fires: number;
  firesAfterRemoval: number;
  /** Runs that began before an older run of their session had ended. */
  outOfOrder: string[];
  /** Of each Box while all had runs to start: how many it started, and its due by weight. */
  shares: { weight: number; started: number; due: number }[];
  /** Lists read by informers during the burst. */
  relists: number;
  /** Bytes after a forced collection. */
  memory: Record<ProcessName, { before: number; after: number; ratio: number; rss: number }>;
  acceptSeconds: number;
  workSeconds: number;
  removeSeconds: number;
  /** Requests to the API server for one run, by process: `<verb> <resource>`. */
  requestsPerRun: Record<ProcessName, Record<string, number>>;
  errors: string[];
}

export async function runBurst({ runs, say = () => undefined }: BurstOptions): Promise<BurstReport> {
  const installation = await Installation.start({
    env: { controller: { BOXWRIGHT_MAX_RUNNING: String(PLACES) } },
  });
  const { server, gatewayPort } = installation;
  const node = new FakeNode({ server, gatewayPort });
  const scenario = new Burst(installation, node, say);
  try {
    await node.start();
    return await scenario.run(runs);
  } finally {
    await node.stop();
    await scenario.stop();
    await installation.stop();
  }
}

interface Target {
  agentId: string;
  url: string;
}

class Burst {
  readonly #runs: Informer<AgentRun>;
  #targets: Target[] = [];

  constructor(
    private readonly installation: Installation,
    private readonly node: FakeNode,
    private readonly say: (line: string) => void,
  ) {
    const log = createLogger('burst', 'error', { write: (line) => node.errors.push(line) });
    const { transport } = installation.server;
    this.#runs = createInformer(
      transport,
      { type: AgentRuns, project: (run: AgentRun) => run },
      { clock: systemClock, log },
    );
  }

  async run(count: number): Promise<BurstReport> {
    await this.#prepare();
    const firesBefore = await this.#fires();
    const memoryBefore = await this.#memory();
    const listsBefore = await this.#lists();
    const requestsBefore = await this.#requests();
    const begun = this.node.started.length;

    this.node.hold();
    const accepting = performance.now();
    const { ids, webhooks, messages } = await this.#send(count);
    const working = performance.now();
    this.say(`accepted ${ids.length} of ${count} in ${seconds(working - accepting)} s`);
    this.node.release();
    const all = await this.#ended(ids.length);
    const removing = performance.now();
    this.say(`worked off in ${seconds(removing - working)} s`);
    const requestsPerRun = growthPerRun(requestsBefore, await this.#requests(), count);
    const fires = (await this.#fires(firesBefore + webhooks)) - firesBefore;
    await this.#remove();
    const removed = performance.now();
    this.say(`removed in ${seconds(removed - removing)} s`);
    const names = new Set(all.map(({ metadata }) => metadata.name));
    return {
      webhooks,
      messages,
      accepted: ids.length,
      agentRuns: names.size,
      terminal: all.filter(isTerminal).length,
      lost: ids.filter((id) => !names.has(id)).length,
      reasons: countBy(all, ({ status }) => status?.reason ?? ''),
      executedTwice: [...this.node.executions].filter(([, times]) => times > 1).map(([name]) => name),
      fires,
      firesAfterRemoval: (await this.#fires(firesBefore + webhooks)) - firesBefore,
      outOfOrder: outOfOrder(all),
      shares: this.#shares(this.node.started.slice(begun), all),
      relists: (await this.#lists()) - listsBefore,
      memory: compare(memoryBefore, await this.#memory()),
      acceptSeconds: seconds(working - accepting),
      workSeconds: seconds(removing - working),
      removeSeconds: seconds(removed - removing),
      requestsPerRun,
      errors: [...this.installation.errors, ...this.node.errors],
    };
  }

  async stop(): Promise<void> {
    await this.#runs.stop();
  }

  /** Boxes of different weights with agents and triggers, and some runs so that all code is warm. */
  async #prepare(): Promise<void> {
    this.#runs.start();
    await this.#runs.synced;
    for (const weight of WEIGHTS) {
      const name = `weight-${weight}`;
      const spec = { weight, maxRunning: 1000, maxRunningPerAgent: 1000 };
      await this.installation.createBox({ name, agents: AGENTS, spec });
      for (const agent of AGENTS) {
        const agentId = `${name}.${agent}`;
        this.#targets.push({ agentId, url: await this.installation.createTrigger(agentId, 'Hook') });
      }
    }
    const { ids } = await this.#send(WARM_UP);
    await this.#ended(ids.length);
    this.say('warmed up');
    await this.#remove();
  }

  /** Webhooks and messages, the same number for each agent, mixed; resolves when all are answered. */
  async #send(count: number): Promise<{ ids: string[]; webhooks: number; messages: number }> {
    const ids: string[] = [];
    const sessions = Math.floor(count / SESSION_SHARE / SESSION_LENGTH);
    const messages = sessions * SESSION_LENGTH;
    const webhooks = count - messages;
    const calls = [
      ...Array.from({ length: webhooks }, (_, i) => () => this.#hit(this.#target(i), i)),
      ...Array.from({ length: sessions }, (_, i) => () => this.#talk(this.#target(i))),
    ];
    // Sessions among the webhooks, not after them.
    const mixed = calls.map((call, i) => ({ call, at: (i * 7919) % calls.length })).sort((a, b) => a.at - b.at);
    await inParallel(mixed, async ({ call }) => void ids.push(...(await call())), AT_ONCE);
    return { ids, webhooks, messages };
  }

  #target(index: number): Target {
    return this.#targets[index % this.#targets.length] as Target;
  }

  async #hit({ url }: Target, number: number): Promise<string[]> {
    const response = await fetch(url, { method: 'POST', body: JSON.stringify({ number }) });
    const { runId } = (await response.json()) as { runId?: string };
    return response.status === 202 && runId !== undefined ? [runId] : [];
  }

  /** One session: its messages one after the other, without waiting for the answers, up to the first one that is refused. */
  async #talk({ agentId }: Target): Promise<string[]> {
    const ids: string[] = [];
    let sessionId: string | undefined;
    for (let i = 0; i < SESSION_LENGTH; i++) {
      const message = {
        agentId,
        message: '/say done',
        waitSeconds: 0,
        ...(sessionId === undefined ? {} : { sessionId }),
      };
      try {
        const sent = await this.installation.tool<{ runId: string; sessionId: string }>('send_message', message);
        ids.push(sent.runId);
        sessionId = sent.sessionId;
      } catch (error) {
        this.node.errors.push(String(error));
        break;
      }
    }
    return ids;
  }

  /** The runs, when so many have an outcome and all Jobs of them are done with. */
  async #ended(count: number): Promise<AgentRun[]> {
    const left = () => {
      const ended = [...this.#runs.values()].filter(isTerminal).length;
      // A call without an answer may have made a run that nobody counts as accepted.
      return Math.max(count, this.#runs.size) - ended;
    };
    await this.#none(left, 'runs that have not ended');
    await this.#none(() => this.node.open, 'Jobs that work, or ended without a TTL');
    return [...this.#runs.values()];
  }

  /** Ended Jobs with their pods, as time does, and the runs, as people do. */
  async #remove(): Promise<void> {
    const { api } = this.installation.server;
    await this.node.removeEnded();
    const remove = async ({ metadata: { name, namespace = '' } }: AgentRun) => {
      await api.delete(AgentRuns, { name, namespace }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    };
    await inParallel([...this.#runs.values()], remove, AT_ONCE);
    await this.#none(() => this.#runs.size, 'removed runs that nobody let go');
  }

  /** Waits until none of `things` is left. */
  async #none(left: () => number, things: string): Promise<void> {
    while (left() > 0) {
      const before = left();
      const fewer = () => {
        this.installation.expectRunning();
        return left() < before;
      };
      await eventually(fewer, `${before} ${things}`, STALL_MS);
      if (Math.floor(left() / TOLD_EVERY) < Math.floor(before / TOLD_EVERY)) this.say(`${left()} ${things}`);
    }
  }

  /** Counts of all triggers. The watches of the api process may be a moment behind what is `expected`. */
  async #fires(expected?: number): Promise<number> {
    let fires = 0;
    const read = async () => {
      const counts = await Promise.all(this.#targets.map(({ agentId }) => this.installation.fireCount(agentId)));
      fires = counts.reduce((sum, one) => sum + one, 0);
      return fires === (expected ?? fires);
    };
    await eventually(read, 'the fireCounts are wrong').catch(() => undefined);
    return fires;
  }

  async #lists(): Promise<number> {
    const { processes } = this.installation;
    const counts = await Promise.all(PROCESSES.map((name) => processes[name].metric('boxwright_relists_total')));
    return counts.reduce((sum, one) => sum + one, 0);
  }

  async #memory(): Promise<Record<ProcessName, { heapUsed: number; rss: number }>> {
    const { api, gateway, controller } = this.installation.processes;
    return { api: await api.memory(), gateway: await gateway.memory(), controller: await controller.memory() };
  }

  async #requests(): Promise<Requests> {
    const of = async (name: ProcessName) => {
      const counts: Record<string, number> = {};
      for (const { labels, value } of await this.installation.processes[name].samples(
        'boxwright_kube_requests_total',
      )) {
        const key = `${labels['verb']} ${labels['resource']}`;
        counts[key] = (counts[key] ?? 0) + value;
      }
      return counts;
    };
    return { api: await of('api'), gateway: await of('gateway'), controller: await of('controller') };
  }

  /** Only while every Box had many runs to start: after that the others may take its share. */
  #shares(started: readonly string[], all: readonly AgentRun[]): BurstReport['shares'] {
    const boxOf = new Map(all.map(({ metadata }) => [metadata.name, metadata.namespace ?? '']));
    const left = countBy(all, ({ metadata }) => metadata.namespace ?? '');
    const enough = all.length / WEIGHTS.length / 10;
    const window: string[] = [];
    // The first places were taken while the calls came in.
    for (const [index, name] of started.entries()) {
      const box = boxOf.get(name) ?? '';
      left[box] = (left[box] ?? 0) - 1;
      if (Object.values(left).some((runs) => runs < enough)) break;
      if (index >= PLACES) window.push(box);
    }
    const counts = countBy(window, (box) => box);
    const total = WEIGHTS.reduce((sum, weight) => sum + weight, 0);
    return WEIGHTS.map((weight) => ({
      weight,
      started: counts[`bw-weight-${weight}`] ?? 0,
      due: round((window.length * weight) / total),
    }));
  }
}

function outOfOrder(runs: readonly AgentRun[]): string[] {
  const wrong: string[] = [];
  for (const session of Map.groupBy(runs, sessionIdOf).values()) {
    const ordered = session.toSorted((a, b) => (acceptedAt(a) < acceptedAt(b) ? -1 : 1));
    for (const [index, run] of ordered.entries()) {
      const before = ordered[index - 1]?.status?.finishedAt ?? '';
      if (before > (run.status?.claim?.at ?? '')) wrong.push(run.metadata.name);
    }
  }
  return wrong;
}

type Requests = Record<ProcessName, Record<string, number>>;

/** Those that were asked at all, for one run. */
function growthPerRun(before: Requests, after: Requests, runs: number): Requests {
  const of = (name: ProcessName) => {
    const grown = Object.entries(after[name]).map(([key, count]): [string, number] => [
      key,
      round((count - (before[name][key] ?? 0)) / runs),
    ]);
    return Object.fromEntries(grown.filter(([, count]) => count > 0));
  };
  return { api: of('api'), gateway: of('gateway'), controller: of('controller') };
}

type Memory = Record<ProcessName, { heapUsed: number; rss: number }>;

function compare(before: Memory, after: Memory): BurstReport['memory'] {
  const of = (name: ProcessName) => ({
    before: before[name].heapUsed,
    after: after[name].heapUsed,
    ratio: round(after[name].heapUsed / before[name].heapUsed),
    rss: after[name].rss,
  });
  return { api: of('api'), gateway: of('gateway'), controller: of('controller') };
}

function countBy<T>(items: Iterable<T>, keyOf: (item: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) counts[keyOf(item)] = (counts[keyOf(item)] ?? 0) + 1;
  return counts;
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/**
 * Webhooks while the API server answers each process with 429 and 5xx, loses answers of writes that were done, and cuts
 * watches: what was accepted is there, has ended and was executed once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal } from '../../src/run/status.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { eventually } from '../builders/api-server.js';
import { inParallel } from '../../src/runtime/in-parallel.js';
import { FakeNode } from '../builders/fake-node.js';
import type { FaultProxy, Refusal } from '../builders/fault-proxy.js';
import { Installation } from '../builders/installation.js';

const AGENT = 'lab.ada';
const HITS = 120;
const AT_ONCE = 8;
const NAMES = ['api', 'gateway', 'controller'] as const;
/** One request in so many meets a fault; no two processes in step. */
const EVERY = { api: 5, gateway: 7, controller: 6 } as const;
const FAULTS: readonly Refusal[] = [
  { status: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 },
  { status: 500, reason: 'InternalError' },
  { status: 503, reason: 'ServiceUnavailable' },
  { status: 504, reason: 'Timeout', afterServer: true },
];
const CUT_EVERY_MS = 1_000;

let installation: Installation;
let node: FakeNode;
let url: string;

beforeAll(async () => {
  installation = await Installation.start({ proxied: true });
  const { server, gatewayPort } = installation;
  node = new FakeNode({ server, gatewayPort });
  await node.start();
  await installation.createBox({ name: 'lab', agents: ['ada'] });
  url = await installation.createTrigger(AGENT, 'Hook');
}, 600_000);

afterAll(async () => {
  await node.stop();
  await installation.stop();
}, 120_000);

/** Every so many requests the next kind of fault. Returns how many each kind hit. */
function harm(proxy: FaultProxy, every: number): number[] {
  const hits = FAULTS.map(() => 0);
  let requests = 0;
  for (const [kind, fault] of FAULTS.entries()) {
    const match = ({ verb }: { verb: string }) => {
      // Each request is shown to all kinds until one takes it; only the first of them counts it.
      if (kind === 0) requests += 1;
      const due = verb !== 'watch' && requests % (every * FAULTS.length) === kind * every;
      if (due) hits[kind] = (hits[kind] ?? 0) + 1;
      return due;
    };
    proxy.refuse(match, { ...fault, times: Infinity });
  }
  return hits;
}

async function hit(number: number): Promise<string | number> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify({ number }) });
  const { runId } = (await response.json()) as { runId?: string };
  return runId ?? response.status;
}

test('with 429, 5xx, lost answers and cut watches every accepted call is one run that ends and works once', async () => {
  const harmed = NAMES.map((name) => harm(installation.proxy(name), EVERY[name]));
  const ending = new AbortController();
  let cuts = 0;
  const cutting = (async () => {
    while (!ending.signal.aborted) {
      for (const name of NAMES) cuts += installation.proxy(name).cutWatches();
      await sleep(CUT_EVERY_MS, undefined, { signal: ending.signal }).catch(() => undefined);
    }
  })();
  const answers: (string | number)[] = [];
  await inParallel(
    Array.from({ length: HITS }, (_, number) => number),
    async (n) => void answers.push(await hit(n)),
    AT_ONCE,
  );
  ending.abort();
  await cutting;

  const { api } = installation.server;
  const list = async () => (await api.list(AgentRuns, { namespace: 'bw-lab' })).items;
  await eventually(
    async () => {
      installation.expectRunning();
      return (await list()).every(isTerminal);
    },
    'there are runs that do not end',
    300_000,
  );
  for (const name of NAMES) installation.proxy(name).forgive();

  const accepted = answers.filter((answer) => typeof answer === 'string');
  const runs = await list();
  const names = new Set(runs.map(({ metadata }) => metadata.name));
  expect(accepted.filter((id) => !names.has(id))).toEqual([]);
  expect(new Set(accepted).size).toBe(accepted.length);
  // A call that was turned away may have left a run whose every answer got lost, never two.
  expect(runs.length - accepted.length).toBeLessThanOrEqual(HITS - accepted.length);
  expect(answers.filter((answer) => typeof answer === 'number' && answer !== 404)).toEqual([]);
  expect(accepted.length).toBeGreaterThan(HITS / 2);
  expect(runs.filter(({ status }) => status?.reason === undefined)).toEqual([]);
  expect([...node.executions].filter(([, times]) => times > 1)).toEqual([]);
  await eventually(
    async () => (await installation.fireCount(AGENT)) === runs.length,
    'fireCount is not the number of runs',
    60_000,
  );
  // The harm was done: every kind to every process, and watches were cut.
  expect(harmed.flat().filter((count) => count === 0)).toEqual([]);
  expect(cuts).toBeGreaterThan(NAMES.length);
}, 900_000);

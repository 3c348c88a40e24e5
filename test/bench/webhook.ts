/**
 * Webhooks against raw creates of the same object on the same API server, in turns (DESIGN 4: an accepted hit is one
 * create). Only the ratio of a pair counts: both have the same minute of the same machine. Controller and gateway are
 * stopped, so that nothing works on the runs meanwhile.
 */
import { readFile } from 'node:fs/promises';
import { newRunName } from '../../src/api/ulid.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { inParallel } from '../builders/fake-node.js';
import { Installation } from '../builders/installation.js';

const AT_ONCE = 16;
const PAIRS = 5;
/** All phases together stay below the backlog budget of the agent. */
const REQUESTS = 400;
const WARM_UP = 100;
const NAMESPACE = 'bw-bench';

export interface Phase {
  perSecond: number;
  p50: number;
  p99: number;
}

export interface WebhookReport {
  pairs: { raw: Phase; hits: Phase; ratio: number }[];
  /** Hits a second by raw creates a second. */
  ratio: { median: number; min: number; max: number };
  /** Of the api process, for one hit; following what both phases create is in it. */
  cpuMs: number;
  /** Requests to the API server for one hit. */
  requestsPerHit: number;
}

export async function runWebhookBench({ say }: { say: (line: string) => void }): Promise<WebhookReport> {
  const installation = await Installation.start();
  try {
    await installation.createBox({ name: 'bench', agents: ['ada'] });
    const url = await installation.createTrigger('bench.ada', 'Hook');
    await installation.processes.controller.stop();
    await installation.processes.gateway.stop();
    return await measure(installation, url, say);
  } finally {
    await installation.stop();
  }
}

async function measure(installation: Installation, url: string, say: (line: string) => void): Promise<WebhookReport> {
  const { server, processes } = installation;
  const body = JSON.stringify({ text: 'x'.repeat(700) });
  const hit = async () => {
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    await response.arrayBuffer();
    if (response.status !== 202) throw new Error(`a hit was answered ${response.status}`);
  };
  await phase(WARM_UP, hit);
  const { items } = await server.api.list(AgentRuns, { namespace: NAMESPACE });
  const { spec, metadata } = items[0] as AgentRun;
  const { labels = {}, finalizers = [] } = metadata;
  const raw = async () => {
    const name = newRunName('ada', Date.now());
    const object = { namespace: NAMESPACE, name, labels, finalizers };
    await server.api.create(AgentRuns, {
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'AgentRun',
      metadata: object,
      spec,
    });
  };
  await phase(WARM_UP, raw);

  const requests = () =>
    processes.api.metric('boxwright_kube_requests_total', { resource: 'agentruns', verb: 'create' });
  const [requestsBefore, cpuBefore] = [await requests(), await cpuMs(processes.api.pid)];
  const pairs: WebhookReport['pairs'] = [];
  for (let pair = 1; pair <= PAIRS; pair++) {
    const pairOf = { raw: await phase(REQUESTS, raw), hits: await phase(REQUESTS, hit) };
    const ratio = round(pairOf.hits.perSecond / pairOf.raw.perSecond);
    pairs.push({ ...pairOf, ratio });
    say(`pair ${pair}: raw ${pairOf.raw.perSecond}/s, webhook ${pairOf.hits.perSecond}/s, ratio ${ratio}`);
  }
  const ratios = pairs.map(({ ratio }) => ratio).sort((a, b) => a - b);
  const hits = PAIRS * REQUESTS;
  return {
    pairs,
    ratio: { median: ratios[Math.floor(PAIRS / 2)] ?? 0, min: ratios[0] ?? 0, max: ratios.at(-1) ?? 0 },
    cpuMs: round(((await cpuMs(processes.api.pid)) - cpuBefore) / hits),
    requestsPerHit: round(((await requests()) - requestsBefore) / hits),
  };
}

async function phase(count: number, act: () => Promise<void>): Promise<Phase> {
  const times: number[] = [];
  const started = performance.now();
  await inParallel(
    Array.from({ length: count }),
    async () => {
      const begun = performance.now();
      await act();
      times.push(performance.now() - begun);
    },
    AT_ONCE,
  );
  const seconds = (performance.now() - started) / 1000;
  times.sort((a, b) => a - b);
  const at = (share: number) => round(times[Math.floor(times.length * share)] ?? 0);
  return { perSecond: round(count / seconds), p50: at(0.5), p99: at(0.99) };
}

/** CPU time of a process in milliseconds; its clock ticks every 10. */
async function cpuMs(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/**
 * `make chaos`: webhooks at a fixed rate at the product of `make up`, while api, gateway, controller and run pods, API server
 * and etcd are killed; then the promises are checked and printed. It makes a Workspace of its own, touches addresses of
 * this machine only, and ends by itself. Exit code 1 = a promise is broken.
 */
import { closeCluster } from '../e2e/support/cluster.js';
import { eventually, facts } from '../e2e/support/install.js';
import { toolOk } from '../e2e/support/mcp.js';
import type { RunRecord } from '../e2e/support/mcp.js';
import { createTenant } from '../e2e/support/tenant.js';
import type { Tenant } from '../e2e/support/tenant.js';
import {
  hasClusterFaults,
  inject,
  listRuns,
  nodeAddress,
  readMarks,
  repair,
  requireLoopback,
  runScript,
  sleep,
} from './cluster.js';
import type { RunLine } from './cluster.js';
import { MarkServer, isOwnAddress, marksByRun } from './marks.js';
import { planFaults, randomFrom } from './plan.js';
import { readSettings } from './settings.js';
import type { Settings } from './settings.js';
import { judge, reasons, renderChecks } from './verdict.js';
import type { Answer } from './verdict.js';

const AGENT = 'worker';
const TENANT = 'chaos';
/** The product answers within 15 s, or never. */
const ANSWER_MS = 30_000;
const WATCH_MS = 2_000;
const MARKS_AT_ONCE = 8;

/** Everybody who claimed a run, as long as it is watched. */
type Claims = Map<string, Map<string, string>>;

async function main(): Promise<number> {
  const settings = readSettings(process.env);
  await requireLoopback([facts().baseUrl, facts().triggerUrl]);
  const clusterFaults = await hasClusterFaults();
  const tenant = await createTenant(TENANT);
  try {
    await tenant.agent(AGENT);
    const outside = await startMarks(tenant);
    const url = await createTrigger(tenant, outside);
    await requireLoopback([url]);
    return await attack({ settings, tenant, url, clusterFaults, outside }).finally(() => outside?.stop());
  } finally {
    await repair();
    await tenant.removed();
    await closeCluster();
  }
}

interface Attack {
  settings: Settings;
  tenant: Tenant;
  url: string;
  clusterFaults: boolean;
  /** Absent where runs cannot reach this program. */
  outside: MarkServer | undefined;
}

async function attack({ settings, tenant, url, clusterFaults, outside }: Attack): Promise<number> {
  const { hits, rate, faultSeconds, seed } = settings;
  const durationMs = (hits / rate) * 1000;
  const fireCountBefore = await fireCount(tenant);
  // Of a run of this program that was stopped.
  const earlier = new Set((await listRuns(tenant))?.map(({ name }) => name));
  const claims: Claims = new Map();
  const watching = new AbortController();
  const watched = watchClaims(tenant, claims, watching.signal);
  console.log(
    `chaos: ${hits} webhooks in ${Math.round(durationMs / 1000)} s, a fault every ${faultSeconds} s, seed ${seed}`,
  );
  const plan = planFaults({ durationMs, everyMs: faultSeconds * 1000, seed, clusterFaults });
  const [answers, injected] = await Promise.all([
    sendAll(url, hits, 1000 / rate),
    injectAll(plan, tenant, randomFrom(seed)),
  ]);
  await repair();
  const runs = (await drained(tenant, settings.drainMinutes)).filter(({ name }) => !earlier.has(name));
  const inside = await marksInside(tenant, runs);
  const marks = outside === undefined ? undefined : marksByRun(outside.pods);
  // Claims last: a run that had not ended when the time was up may have begun before its marks were read.
  watching.abort();
  await watched;
  noteClaims(claims, await eventually('the runs can be listed', () => listRuns(tenant)));
  const observed = runs.map(({ name, phase, reason }) => ({
    name,
    phase,
    reason,
    claimPods: [...(claims.get(name) ?? [])].map(([uid, pod]) => ({ uid, name: pod })),
    marks: inside.get(name) ?? [],
    ...(marks === undefined ? {} : { outside: marks.get(name) ?? [] }),
  }));
  const evidence = { answers, runs: observed, fireCountBefore, fireCountAfter: await fireCount(tenant) };
  const checks = judge(evidence);
  console.log(
    `\nwebhooks   ${tally(answers.map((answer) => (answer.kind === 'refused' ? `${answer.status}` : answer.kind)))}`,
  );
  console.log(`faults     ${tally(injected)}\nruns       ${reasons(observed)}\n\n${renderChecks(checks)}`);
  return checks.every(({ holds }) => holds) ? 0 : 1;
}

/** The server of marks, if a run that tries it gets through. */
async function startMarks(tenant: Tenant): Promise<MarkServer | undefined> {
  const address = await nodeAddress();
  if (!isOwnAddress(address)) return undefined;
  const server = await MarkServer.start(address);
  const message = { agentId: tenant.agentId(AGENT), message: runScript(server.url), waitSeconds: 120 };
  const trial = await toolOk<RunRecord>(tenant.apiKey, 'send_message', message);
  if (marksByRun(server.pods).has(trial.runId)) return server;
  server.stop();
  return undefined;
}

async function createTrigger(tenant: Tenant, outside: MarkServer | undefined): Promise<string> {
  const trigger = { agentId: tenant.agentId(AGENT), name: 'chaos', body: runScript(outside?.url) };
  const { url } = await toolOk<{ url: string }>(tenant.apiKey, 'upsert_trigger', trigger);
  return url;
}

async function fireCount(tenant: Tenant): Promise<number> {
  const args = { agentId: tenant.agentId(AGENT) };
  return await eventually('list_triggers answers', async () => {
    const { triggers } = await toolOk<{ triggers: { fireCount: number }[] }>(tenant.apiKey, 'list_triggers', args);
    return triggers.reduce((sum, trigger) => sum + trigger.fireCount, 0).toString();
  }).then(Number);
}

/** At a fixed rate, whatever the answers do. */
async function sendAll(url: string, hits: number, everyMs: number): Promise<Answer[]> {
  const started = performance.now();
  const answers: Promise<Answer>[] = [];
  for (let number = 0; number < hits; number++) {
    await sleep(Math.max(0, started + number * everyMs - performance.now()));
    answers.push(send(url, number));
  }
  return await Promise.all(answers);
}

async function send(url: string, number: number): Promise<Answer> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ number }),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const text = await response.text();
    if (response.status !== 202) return { kind: 'refused', status: response.status };
    return { kind: 'accepted', runId: (JSON.parse(text) as { runId: string }).runId };
  } catch {
    return { kind: 'unanswered' };
  }
}

/** The faults that hit something, in order. */
async function injectAll(plan: ReturnType<typeof planFaults>, tenant: Tenant, random: () => number): Promise<string[]> {
  const started = performance.now();
  const injected: string[] = [];
  for (const planned of plan) {
    await sleep(Math.max(0, started + planned.atMs - performance.now()));
    if (await inject(planned, tenant, random)) injected.push(`${planned.fault} (${planned.how})`);
  }
  return injected;
}

async function watchClaims(tenant: Tenant, claims: Claims, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    noteClaims(claims, (await listRuns(tenant)) ?? []);
    await sleep(WATCH_MS);
  }
}

function noteClaims(claims: Claims, runs: readonly RunLine[]): void {
  for (const { name, claim } of runs) {
    if (claim === undefined) continue;
    const pods = claims.get(name) ?? new Map<string, string>();
    claims.set(name, pods.set(claim.uid, claim.name));
  }
}

/** All runs, when the last one has ended or the time is up. */
async function drained(tenant: Tenant, minutes: number): Promise<RunLine[]> {
  const end = performance.now() + minutes * 60_000;
  for (;;) {
    const runs = await listRuns(tenant);
    const isOver = runs?.every(({ phase }) => phase !== 'running' && phase !== '') === true;
    if (runs !== undefined && (isOver || performance.now() > end)) return runs;
    if (performance.now() > end + 60_000) throw new Error('the API server does not answer any more');
    await sleep(WATCH_MS);
  }
}

/** The marks in the transcript of each run. */
async function marksInside(tenant: Tenant, runs: readonly RunLine[]): Promise<Map<string, readonly string[]>> {
  const marks = new Map<string, readonly string[]>();
  const queue = runs.values();
  const work = async () => {
    for (const { name } of queue) {
      marks.set(name, await eventually(`marks of ${name}`, () => readMarks(tenant, AGENT, name)));
    }
  };
  await Promise.all(Array.from({ length: MARKS_AT_ONCE }, work));
  return marks;
}

function tally(kinds: readonly string[]): string {
  return reasons(kinds.map((reason) => ({ reason })));
}

/** Whoever stops the program early still gets the cluster back. */
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void repair().finally(() => process.exit(130)));
}
process.exitCode = await main();

/**
 * A caller without mercy: hits of bodies that cannot be compressed on the trigger of an agent that starts nothing, so that
 * all that is accepted stays. The backlog budget has to keep etcd small, and other Boxes unharmed.
 */
import { randomBytes } from 'node:crypto';
import { Agent as HttpAgent, request } from 'undici';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { eventually } from '../builders/api-server.js';
import { inParallel } from '../../src/runtime/in-parallel.js';
import { Installation } from '../builders/installation.js';

const BODY_BYTES = 64 * 1024;
const AT_ONCE = 16;
/** Every so many hits somebody else calls a trigger of another Box. */
const OTHERS_EVERY = 50;
/** Different bodies; making one for every hit would measure that. */
const BODIES = 64;

export interface FloodOptions {
  hits: number;
  say?: (line: string) => void;
}

export interface FloodReport {
  accepted: number;
  /** Answers 404. */
  turnedAway: number;
  /** Answers of any other kind, and broken connections. */
  other: number;
  /** Calls that were turned away because of the agent's budget, and because the API server did not answer in 15 s. */
  overBudget: number;
  unanswered: number;
  /** Input of the accepted runs as it is stored, and of the largest one. */
  storedBytes: number;
  largestBytes: number;
  /** Calls of another Box during the flood, and those answered 202. */
  others: number;
  othersAccepted: number;
  /** Size of etcd's database. */
  etcdBefore: number;
  etcdAfter: number;
  seconds: number;
  /** Hits that may be under way at once. */
  atOnce: number;
  errors: string[];
}

export async function runFlood({ hits, say = () => undefined }: FloodOptions): Promise<FloodReport> {
  const installation = await Installation.start();
  try {
    for (const name of ['flooded', 'calm']) await installation.createBox({ name, agents: ['ada'] });
    const url = await installation.createTrigger('flooded.ada', 'Hook');
    const othersUrl = await installation.createTrigger('calm.ada', 'Hook');
    const ref = { namespace: 'bw-flooded', name: 'ada' };
    await installation.server.api.patch(Agents, ref, { spec: { paused: true } }, { type: 'merge' });
    return await flood(installation, { url, othersUrl, hits, say });
  } finally {
    await installation.stop();
  }
}

interface Flood {
  url: string;
  othersUrl: string;
  hits: number;
  say: (line: string) => void;
}

async function flood(installation: Installation, { url, othersUrl, hits, say }: Flood): Promise<FloodReport> {
  const bodies = Array.from({ length: BODIES }, () => randomBytes(BODY_BYTES).toString('base64').slice(0, BODY_BYTES));
  const statuses: Record<number, number> = {};
  let [others, othersAccepted] = [0, 0];
  const etcdBefore = await etcdBytes(installation);
  const started = performance.now();
  await inParallel(
    Array.from({ length: hits }, (_, number) => number),
    async (number) => {
      const status = await post(url, bodies[number % BODIES] ?? '');
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (number % 1000 === 999) say(`${number + 1} hits: ${JSON.stringify(statuses)}`);
      if (number % OTHERS_EVERY !== 0) return;
      others += 1;
      if ((await post(othersUrl, '{}')) === 202) othersAccepted += 1;
    },
    AT_ONCE,
  );
  const seconds = Math.round((performance.now() - started) / 100) / 10;
  const sizes = await inputSizes(installation);
  const { 202: accepted = 0, 404: turnedAway = 0 } = statuses;
  return {
    accepted,
    turnedAway,
    other: hits - accepted - turnedAway,
    overBudget: await outcomes(installation, 'backlog_agent'),
    unanswered: await outcomes(installation, 'no_answer'),
    storedBytes: sizes.reduce((sum, size) => sum + size, 0),
    largestBytes: Math.max(...sizes),
    others,
    othersAccepted,
    etcdBefore,
    etcdAfter: await etcdBytes(installation),
    seconds,
    atOnce: AT_ONCE,
    errors: installation.errors,
  };
}

function outcomes({ processes }: Installation, outcome: string): Promise<number> {
  return processes.api.metric('boxwright_webhook_calls_total', { outcome });
}

/** Stored input of each run. An API server that is behind with its own watch answers 504 to lists for a while. */
async function inputSizes({ server }: Installation): Promise<number[]> {
  let sizes: number[] = [];
  const isRead = async () => {
    const runs = await server.api.list(AgentRuns, { namespace: 'bw-flooded', pageSize: 50 }).catch(() => undefined);
    sizes = (runs?.items ?? []).map(({ spec }) => spec.input?.data?.length ?? 0);
    return runs !== undefined;
  };
  await eventually(isRead, 'the API server lists no runs', 300_000);
  return sizes;
}

/** The status; 0 when the connection broke. */
async function post(url: string, body: string): Promise<number> {
  try {
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'text/plain' }, body });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

/** As the API server says it: the file, with what is not compacted yet. */
async function etcdBytes({ server: { connection } }: Installation): Promise<number> {
  const { ca, cert, key } = connection;
  const dispatcher = new HttpAgent({ connect: { ca, cert, key } });
  try {
    const { body } = await request(`${connection.server}/metrics`, { dispatcher });
    const line = (await body.text()).split('\n').find((one) => one.startsWith('apiserver_storage_size_bytes{'));
    return Number(line?.slice(line.lastIndexOf(' ') + 1));
  } finally {
    await dispatcher.close();
  }
}

/**
 * MCP reads. Lists come from memory: they are compared with servers that have the same answer ready
 * (test/bench/limit-server.ts). get_run costs one GET: it is compared with that GET. Controller and gateway are stopped.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { once } from 'node:events';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { eventually } from '../builders/api-server.js';
import { inParallel } from '../../src/runtime/in-parallel.js';
import { Installation } from '../builders/installation.js';
import type { Load, LoadClient, LoadRequest } from './load.js';
import { compare } from './pairs.js';
import type { Row } from './pairs.js';
import { installationTls } from './webhook.js';
import type { BenchContext } from './webhook.js';

const LEVELS = [1, 16, 64];
/** What list_agents shows. */
const AGENTS = 500;
/** Runs of the agent; list_runs shows the latest 20. */
const RUNS = 100;
const WARM_UP = 200;
const NAMESPACE = 'bw-bench';
const AGENT = 'bench.ada';

export interface McpReport {
  rows: Row[];
  /** Size of the answers. */
  bytes: Record<string, number>;
}

export async function runMcpBench({ clients, say }: BenchContext): Promise<McpReport> {
  const installation = await Installation.start();
  try {
    await installation.createBox({ name: 'bench', agents: ['ada'] });
    await installation.processes.controller.stop();
    await installation.processes.gateway.stop();
    const runId = await seed(installation);
    // The quickest one: what is measured are servers.
    const client = clients.at(-1) as LoadClient;
    const bench = new McpBench(installation, client, say);
    await bench.list('list_agents', {}, 400);
    await bench.list('list_runs', { agentId: AGENT }, 1000);
    await bench.getRun(runId, 500);
    return { rows: bench.rows, bytes: bench.bytes };
  } finally {
    await installation.stop();
  }
}

/** Agents that do nothing, and runs that wait; the name of one. */
async function seed(installation: Installation): Promise<string> {
  const names = Array.from({ length: AGENTS - 1 }, (_, number) => `agent-${number}`);
  await inParallel(names, (name) => installation.create(Agents, { namespace: NAMESPACE, name }, { name }), 16);
  const runs = Array.from({ length: RUNS }, (_, number) => `ada-${number}`);
  await inParallel(
    runs,
    (name) => installation.create(AgentRuns, { namespace: NAMESPACE, name }, { agent: 'ada', message: '/say done' }),
    16,
  );
  await eventually(async () => {
    const { agents } = await installation.tool<{ agents: unknown[] }>('list_agents', {});
    const { runs: shown } = await installation.tool<{ runs: unknown[] }>('list_runs', { agentId: AGENT, limit: 200 });
    return agents.length === AGENTS && shown.length === RUNS;
  }, 'the watches do not bring agents and runs');
  return runs[0] ?? '';
}

class McpBench {
  readonly rows: Row[] = [];
  readonly bytes: Record<string, number> = {};

  constructor(
    private readonly installation: Installation,
    private readonly client: LoadClient,
    private readonly say: (line: string) => void,
  ) {}

  async list(tool: string, args: object, requests: number): Promise<void> {
    const request = this.#call(tool, args);
    const limit = await startLimitServer(await this.#answer(tool, request));
    const thin = (port: number) => ({ ...request, url: `http://127.0.0.1:${port}/` });
    try {
      await this.#compare(tool, request, { express: thin(limit.express), 'node:http': thin(limit.bare) }, requests);
    } finally {
      await limit.stop();
    }
  }

  async getRun(runId: string, requests: number): Promise<void> {
    const request = this.#call('get_run', { agentId: AGENT, runId });
    await this.#answer('get_run', request);
    const { server } = this.installation;
    const raw: LoadRequest = {
      url: `${server.connection.server}/apis/boxwright.dev/v1alpha1/namespaces/${NAMESPACE}/agentruns/${runId}`,
      method: 'GET',
      headers: {},
      body: '',
      status: 200,
      tls: installationTls(server),
    };
    await this.#compare('get_run', request, { 'raw GET': raw }, requests);
  }

  async #compare(
    what: string,
    request: LoadRequest,
    others: Record<string, LoadRequest>,
    requests: number,
  ): Promise<void> {
    const { pid } = this.installation.processes.api;
    for (const atOnce of LEVELS) {
      const send = (one: LoadRequest, load: Load) => this.client.send(one, load);
      for (const one of [request, ...Object.values(others)]) await send(one, { requests: WARM_UP, atOnce });
      const load = { requests, atOnce };
      const limits = Object.entries(others).map(([name, other]) => [name, () => send(other, load)] as const);
      const ours = () => send(request, load);
      this.rows.push(await compare({ what, pid, ours, limits: Object.fromEntries(limits), ...load }, this.say));
    }
  }

  #call(tool: string, args: object): LoadRequest {
    return { ...this.installation.toolRequest(tool, args), method: 'POST', status: 200 };
  }

  /** The answer that all others shall be like. */
  async #answer(tool: string, { url, headers, body }: LoadRequest): Promise<string> {
    const response = await fetch(url, { method: 'POST', headers, body });
    const text = await response.text();
    if (text.includes('"isError":true')) throw new Error(`${tool} failed: ${text.slice(0, 500)}`);
    this.bytes[tool] = Buffer.byteLength(text);
    return text;
  }
}

async function startLimitServer(answer: string): Promise<{ express: number; bare: number; stop(): Promise<void> }> {
  const child = spawn(process.execPath, ['hack/run-ts.mjs', 'test/bench/limit-server.ts'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  child.stdin.write(`${JSON.stringify(answer)}\n`);
  const line = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line').then(([first]) => String(first)),
    ended.then(() => Promise.reject(new Error('the server to compare with ended'))),
  ]);
  const stop = async () => {
    child.stdin.end();
    await ended;
  };
  return { ...(JSON.parse(line) as { express: number; bare: number }), stop };
}

/**
 * Fifty runs at once on one small budget: the ledger and the controller that grant, two gateway pods that keep the grants,
 * and a vendor that always uses as much as it may.
 */
import { recordingLog } from '../builders/log.js';
import { LABEL_CREDENTIAL } from '../../src/api/credentials.js';
import { parseMicroUsd } from '../../src/run/usage/money.js';
import { renderGrant } from '../../src/run/usage/budget.js';
import { AgentRuns, type AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import { Workspaces, WorkspaceSpec } from '../../src/api/v1alpha1/workspace.js';
import { createBudgetController } from '../../src/controllers/budget/controller.js';
import { BudgetLedger } from '../../src/controllers/budget/ledger.js';
import { Jobs, Secrets } from '../../src/kube/core-types.js';
import { runPath } from '../../src/protocol/run.js';
import { startFakeProvider, type FakeProvider } from '../builders/fake-provider.js';
import { BOX, GatewayWorld, NAMESPACE, type GatewayPod, type RunPod } from '../builders/gateway-world.js';
import { controllerAgentInformer } from '../../src/projections/agent.js';
import { controllerBoxInformer } from '../../src/projections/box.js';
import { controllerJobInformer } from '../../src/projections/job.js';
import { controllerWorkspaceInformer } from '../../src/projections/workspace.js';
import { controllerRunInformer } from '../../src/projections/agent-run.js';

const KEY = 'sk-vendor-0123456789abcdef';
const RUNS = 50;
/** Micro-USD. */
const BUDGET = 400_000;

let vendor: FakeProvider;
let world: GatewayWorld;

beforeEach(async () => {
  vendor = await startFakeProvider({
    key: KEY,
    // Four bytes are a token, and all that it may write is written.
    answers: ({ body }) => ({
      text: 'More.',
      usage: { input: Math.ceil(Buffer.byteLength(JSON.stringify(body)) / 4), output: Number(body['max_tokens']) },
    }),
  });
  world = new GatewayWorld({
    agent: { provider: 'anthropic', model: 'claude-sonnet-5' },
    box: { engine: undefined, credentialsSecret: 'models', budget: [{ per: 'day', usd: '0.4' }] },
    models: { modelBaseUrls: { anthropic: vendor.baseUrl('anthropic') } },
  });
  world.api.seed(Workspaces, { apiVersion: '', kind: '', metadata: { name: 'main' }, spec: WorkspaceSpec.parse({}) });
  world.api.seed(Secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'models', namespace: NAMESPACE, labels: { [LABEL_CREDENTIAL]: 'true' } },
    data: { ANTHROPIC_API_KEY: Buffer.from(KEY).toString('base64') },
  });
});

afterEach(async () => {
  await world.dispatcher.close();
  await vendor.close();
});

/** The parts of the controller that know money, on caches of their own. */
function startController(): BudgetLedger {
  const { api, clock } = world;
  const runs = api.informer(controllerRunInformer);
  const ledger = new BudgetLedger(
    {
      runs,
      jobs: api.informer(controllerJobInformer),
      agents: api.informer(controllerAgentInformer),
      boxes: api.informer(controllerBoxInformer),
      workspaces: api.informer(controllerWorkspaceInformer),
    },
    clock,
  );
  const part = createBudgetController({ api, runs, ledger, log: recordingLog().log });
  // One key at a time, and again after a conflict, as the engine does.
  let tail = Promise.resolve();
  const work = async (key: string) => {
    try {
      await part.reconcile(key, new AbortController().signal);
    } catch {
      enqueue(key);
    }
  };
  const enqueue = (key: string) => void (tail = tail.then(() => work(key)));
  part.watch(enqueue);
  return ledger;
}

/** A run that calls its model until it may not any more, and ends with the reason that it was told. */
async function spendAll(gateway: GatewayPod, pod: RunPod): Promise<string> {
  for (let call = 0; call < 8; call++) {
    const body = {
      model: 'claude-sonnet-5',
      max_tokens: 4_000,
      messages: [{ role: 'user', content: 'x'.repeat(200 * (call + 1)) }],
    };
    const reply = await world.post(gateway, '/gateway/anthropic/v1/messages', body, pod.token);
    if (reply.status === 200) continue;
    const { type } = reply.json['error'] as { type: string };
    await finish(gateway, pod, type);
    return type;
  }
  await finish(gateway, pod, 'Completed');
  return 'Completed';
}

async function finish(gateway: GatewayPod, pod: RunPod, reason: string): Promise<void> {
  const outcome = { reason, message: '', output: null };
  await world.call(gateway, pod, 'finish', { epoch: 1, events: [], outcome });
}

/** What the ledger grants a run stands on its Job, as the run controller writes it. */
function admitted(ledger: BudgetLedger, pod: RunPod): void {
  const grant = ledger.admit(world.run(pod.run));
  const job = world.api.peek(Jobs, `${NAMESPACE}/${pod.run}`);
  if (grant === undefined || job === undefined) throw new Error('the run was not limited');
  const annotations = { 'boxwright.dev/budget': renderGrant(grant) };
  world.api.seed(Jobs, { ...job, metadata: { ...job.metadata, annotations } });
}

/** Lets the fake clock run until the work on real sockets is done. */
async function letTimePass<T>(work: Promise<T>): Promise<T> {
  const state = { ended: false };
  const watched = work.finally(() => (state.ended = true));
  watched.catch(() => undefined);
  while (!state.ended) {
    await world.clock.advance(250);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return watched;
}

/** Micro-USD that the vendor was paid. */
const paid = () => vendor.given.reduce((sum, { input, output }) => sum + input * 2 + output * 10, 0);

test('the vendor never gets more than the budget, and the counts are its own', async () => {
  const ledger = startController();
  const gateways = [world.startGateway(), world.startGateway()];
  const running = Array.from({ length: RUNS }, async (_, index) => {
    const name = `helper-${index}`;
    const pod = world.addRun(name);
    admitted(ledger, pod);
    const gateway = gateways[index % 2] as GatewayPod;
    await world.claim(gateway, pod);
    return spendAll(gateway, pod);
  });

  const reasons = await letTimePass(Promise.all(running));
  expect(paid()).toBeLessThanOrEqual(BUDGET);
  expect(paid()).toBeGreaterThan(BUDGET * 0.8);
  expect(new Set(reasons)).toEqual(new Set(['BudgetExhausted', ...reasons.filter((reason) => reason === 'Completed')]));
  const counted = reasons.map((_, index) => world.run(`helper-${index}`).status);
  expect(counted.reduce((sum, status) => sum + (parseMicroUsd(status?.usage?.costUsd) ?? 0), 0)).toBe(paid());
  expect(counted.every((status) => status?.usageFinal === true && status.openCall === undefined)).toBe(true);
});

describe('a run and the agents that it calls', () => {
  beforeEach(() => {
    const box = world.api.peek(Boxes, BOX);
    if (box === undefined) throw new Error('there is no Box');
    world.api.seed(Boxes, { ...box, spec: { ...box.spec, budget: [{ per: 'run', usd: '0.2' }] } });
    world.api.seed(Agents, {
      apiVersion: '',
      kind: '',
      metadata: { name: 'writer', namespace: NAMESPACE, uid: 'uid-writer' },
      spec: AgentSpec.parse({ name: 'Writer', provider: 'anthropic', model: 'claude-sonnet-5' }),
      status: { active: true },
    });
  });

  const message = (words: number) => ({
    model: 'claude-sonnet-5',
    max_tokens: 4_000,
    messages: [{ role: 'user', content: 'x'.repeat(words) }],
  });

  /** Calls the agent, and admits and claims its run. */
  async function called(ledger: BudgetLedger, gateway: GatewayPod, pod: RunPod, wait: boolean): Promise<RunPod> {
    const input = { handle: 'writer', message: 'Go.', wait };
    const answer = world.post(
      gateway,
      runPath(NAMESPACE, pod.run, 'tool'),
      { epoch: 1, call: 1, tool: 'call_agent', input },
      pod.token,
    );
    answer.catch(() => undefined);
    const child = () => world.api.all(AgentRuns).find(({ spec }) => spec.parent !== undefined);
    while (child() === undefined) await new Promise((resolve) => setImmediate(resolve));
    const childPod = world.addJob(child() as AgentRun);
    admitted(ledger, childPod);
    await world.claim(gateway, childPod);
    return childPod;
  }

  test.each([true, false])('share one limit; the caller waits: %p', async (wait) => {
    const ledger = startController();
    const gateway = world.startGateway();
    const pod = world.addRun('helper-0');
    admitted(ledger, pod);
    await world.claim(gateway, pod);
    expect((await world.post(gateway, '/gateway/anthropic/v1/messages', message(100), pod.token)).status).toBe(200);
    const before = paid();

    const child = await called(ledger, gateway, pod, wait);
    expect(world.run('helper-0').status?.budget).toMatchObject({ returned: 1, granted: { usd: `0.0${before}` } });
    const rest = wait
      ? letTimePass(spendAll(gateway, child)).then(() => letTimePass(spendAll(gateway, pod)))
      : letTimePass(Promise.all([spendAll(gateway, child), spendAll(gateway, pod)]));
    await rest;

    expect(paid()).toBeLessThanOrEqual(200_000);
    expect(paid()).toBeGreaterThan(150_000);
    const [own, its] = ['helper-0', child.run].map(
      (name) => parseMicroUsd(world.run(name).status?.usage?.costUsd) ?? 0,
    );
    expect((own ?? 0) + (its ?? 0)).toBe(paid());
    expect(its).toBeGreaterThan(70_000);
  });
});

/**
 * Fifty runs at once on one small budget: the ledger and the controller that grant, two gateway pods that keep the grants,
 * and a vendor that always uses as much as it may.
 */
import { LABEL_CREDENTIAL } from '../../src/api/credentials.js';
import { parseMicroUsd } from '../../src/api/money.js';
import { renderSlice } from '../../src/api/budget.js';
import { Workspaces, WorkspaceSpec } from '../../src/api/v1alpha1/workspace.js';
import { jobInformer, runInformer } from '../../src/controllers/agent-run/views.js';
import { createBudgetController } from '../../src/controllers/budget/controller.js';
import { BudgetLedger } from '../../src/controllers/budget/ledger.js';
import { agentInformer, boxInformer, workspaceInformer } from '../../src/controllers/common/informers.js';
import { Jobs, Secrets } from '../../src/kube/core-types.js';
import { startFakeVendor, type FakeVendor } from '../builders/fake-vendor.js';
import { GatewayWorld, NAMESPACE, type GatewayPod, type RunPod } from '../builders/gateway-world.js';

const KEY = 'sk-vendor-0123456789abcdef';
const RUNS = 50;
/** Micro-USD. */
const BUDGET = 400_000;

let vendor: FakeVendor;
let world: GatewayWorld;

beforeEach(async () => {
  vendor = await startFakeVendor({
    key: KEY,
    // As many tokens as it has bytes to read and may write: nothing can cost more.
    answers: ({ body }) => ({
      text: 'More.',
      usage: { input: Buffer.byteLength(JSON.stringify(body)), output: Number(body['max_tokens']) },
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
  const runs = api.informer(runInformer);
  const ledger = new BudgetLedger(
    {
      runs,
      jobs: api.informer(jobInformer),
      agents: api.informer(agentInformer),
      boxes: api.informer(boxInformer),
      workspaces: api.informer(workspaceInformer),
    },
    clock,
  );
  const part = createBudgetController({ api, runs, ledger });
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

test('the vendor never gets more than the budget, and the counts are its own', async () => {
  const ledger = startController();
  const gateways = [world.startGateway(), world.startGateway()];
  const running = Array.from({ length: RUNS }, async (_, index) => {
    const name = `helper-${index}`;
    const pod = world.addRun(name);
    const slice = ledger.admit(world.run(name));
    const job = world.api.peek(Jobs, `${NAMESPACE}/${name}`);
    if (slice === undefined || job === undefined) throw new Error('the run was not limited');
    const annotations = { 'boxwright.dev/budget': renderSlice(slice) };
    world.api.seed(Jobs, { ...job, metadata: { ...job.metadata, annotations } });
    const gateway = gateways[index % 2] as GatewayPod;
    await world.claim(gateway, pod);
    return spendAll(gateway, pod);
  });
  const state = { ended: false };
  const all = Promise.all(running).finally(() => (state.ended = true));
  while (!state.ended) {
    await world.clock.advance(250);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }

  const reasons = await all;
  const paid = vendor.given.reduce((sum, { input, output }) => sum + input * 2 + output * 10, 0);
  expect(paid).toBeLessThanOrEqual(BUDGET);
  expect(paid).toBeGreaterThan(BUDGET * 0.8);
  expect(new Set(reasons)).toEqual(new Set(['BudgetExhausted', ...reasons.filter((reason) => reason === 'Completed')]));
  const counted = reasons.map((_, index) => world.run(`helper-${index}`).status);
  expect(counted.reduce((sum, status) => sum + (parseMicroUsd(status?.usage?.costUsd) ?? 0), 0)).toBe(paid);
  expect(counted.every((status) => status?.usageFinal === true && status.openCall === undefined)).toBe(true);
}, 30_000);

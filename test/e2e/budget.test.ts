/** Fifty runs on one small budget in real pods, with a vendor that always uses all that it may. */
import { jest } from '@jest/globals';
import { eventually, kubectlOk } from './support/install.js';
import type { RunObject } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';
import { startProviderPod } from './support/vendor.js';
import type { ProviderPod } from './support/vendor.js';

jest.setTimeout(900_000);

const RUNS = 50;
/** Micro-USD. */
const BUDGET = 400_000;

describe('one small budget', () => {
  let vendors: ProviderPod;
  let tenant: Tenant;

  beforeAll(async () => {
    vendors = await startProviderPod('e2e-budget');
    tenant = await createTenant('e2e-budget', {
      box: {
        ...vendors.box,
        resources: { memory: '64Mi' },
        // As many as two small cores start at once; the others follow.
        maxRunning: 10,
        maxRunningPerAgent: 10,
        budget: [{ per: 'day', usd: '0.4' }],
      },
    });
    await vendors.giveKeys(tenant);
    await tenant.agent('spender', { provider: 'anthropic', model: 'claude-sonnet-5', stepLimit: 6 });
  });

  afterAll(async () => {
    await tenant.remove();
    await vendors.remove();
  });

  test('fifty runs at once get no more from the vendor than the budget, and count exactly what they got', async () => {
    await vendors.script('spend', { calls: [{ tool: 'list', input: {} }], usage: 'all' });
    const runs = Array.from({ length: RUNS }, (_, index) => ({
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'AgentRun',
      metadata: { name: `spend-${index}`, namespace: tenant.namespace },
      spec: { agent: 'spender', message: 'Spend. [case:spend]' },
    }));
    await kubectlOk(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: runs }));

    // Each is over and counted, or waits for the next day; one that waited may still get what another gave back.
    const over = await eventually(
      'nothing works any more, and what is counted is what the vendor gave',
      async () => {
        const text = await kubectlOk(['get', 'agentruns', '-n', tenant.namespace, '-o', 'json']);
        const { items } = JSON.parse(text) as { items: RunObject[] };
        if (!items.every(isSettled)) return undefined;
        return countedIn(items) === (await paid()) ? items : undefined;
      },
      400_000,
    );

    expect(over).toHaveLength(RUNS);
    const reasons = [...new Set(over.map(({ status }) => status?.reason))];
    expect(reasons).toContain('WaitingForBudget');
    expect(['WaitingForBudget', 'BudgetExhausted', 'StepLimitReached']).toEqual(expect.arrayContaining(reasons));
    expect(await paid()).toBeLessThanOrEqual(BUDGET);
    expect(await paid()).toBeGreaterThan(BUDGET / 2);
    expect(over.every(({ status }) => status?.openCall === undefined)).toBe(true);
  });

  /** Micro-USD, by what the vendor says. */
  async function paid(): Promise<number> {
    const given = (await vendors.seen('spend')).flatMap((request) => request.given ?? []);
    return given.reduce((sum, { input, output }) => sum + input * 2 + output * 10, 0);
  }
});

/** Over and counted, or waiting until there is a budget. */
function isSettled({ status }: RunObject): boolean {
  return status?.phase === 'running' ? status.reason === 'WaitingForBudget' : status?.usageFinal === true;
}

/** Micro-USD, by the runs. */
function countedIn(runs: readonly RunObject[]): number {
  return runs.reduce((sum, { status }) => sum + Math.round(Number(status?.usage?.costUsd ?? 0) * 1e6), 0);
}

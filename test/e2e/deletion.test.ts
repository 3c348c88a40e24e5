/** Deletions by kubectl while runs exist: totals stay right, nothing is stuck. */
import { jest } from '@jest/globals';
import { eventually, getObject, kubectlOk } from './support/install.js';
import { finishedRun, toolOk } from './support/mcp.js';
import { claimed, createRun, readRun } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

interface Totals {
  status?: {
    folded?: { runs: number; inputTokens: number; outputTokens: number };
    folding?: string[];
    runs?: number;
    tokens?: number;
  };
}

describe('deletions', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant('e2e-deletion');
  });

  afterAll(async () => {
    await tenant.remove();
  });

  /** Fires a trigger `count` times and waits for the runs; their ids and the tokens they used. */
  async function fire(agent: string, count: number): Promise<{ ids: string[]; tokens: number }> {
    const { url } = await toolOk<{ url: string }>(tenant.apiKey, 'upsert_trigger', {
      agentId: tenant.agentId(agent),
      name: 'Hook',
      body: '/say ok',
    });
    const ids: string[] = [];
    for (let i = 0; i < count; i++)
      ids.push(((await (await fetch(url, { method: 'POST' })).json()) as { runId: string }).runId);
    let tokens = 0;
    for (const id of ids) tokens += (await finishedRun(tenant.apiKey, tenant.agentId(agent), id)).totalTokens;
    return { ids, tokens };
  }

  async function fireCount(agent: string): Promise<number | undefined> {
    const { triggers } = await toolOk<{ triggers: { fireCount: number }[] }>(tenant.apiKey, 'list_triggers', {
      agentId: tenant.agentId(agent),
    });
    return triggers[0]?.fireCount;
  }

  test('deleted runs stay counted: the fire count and the totals of the agent', async () => {
    await tenant.agent('counted');
    const { ids, tokens } = await fire('counted', 3);
    expect(await fireCount('counted')).toBe(3);

    await kubectlOk(['delete', 'agentrun', '-n', tenant.namespace, ...ids.slice(0, 2)]);

    expect(await readRun(tenant, ids[0] ?? '')).toBeUndefined();
    expect(await fireCount('counted')).toBe(3);
    const agent = await eventually('the mirror for kubectl is right', async () => {
      const object = await getObject<Totals>('agent', 'counted', tenant.namespace);
      return object?.status?.runs === 3 && object.status.tokens === tokens ? object : undefined;
    });
    expect(agent.status?.folded?.runs).toBe(2);
    await eventually(
      'no UID is left in folding',
      async () => ((await getObject<Totals>('agent', 'counted', tenant.namespace))?.status?.folding ?? []).length === 0,
    );
  });

  test.each(['background', 'foreground'])(
    'an agent deleted in the %s takes its triggers and runs along, counted in the Box',
    async (mode) => {
      const agent = `gone-${mode}`;
      await tenant.agent(agent);
      const before = (await getObject<Totals>('box', tenant.box))?.status?.folded?.runs ?? 0;
      await fire(agent, 2);
      await createRun(tenant, agent, '/shell sleep 200', `${agent}-working`);
      await claimed(tenant, `${agent}-working`);

      await kubectlOk(['delete', 'agent', agent, '-n', tenant.namespace, `--cascade=${mode}`, '--timeout=240s']);

      expect(
        (await kubectlOk(['get', 'agentruns,agenttriggers', '-n', tenant.namespace, '-o', 'name'])).includes(agent),
      ).toBe(false);
      expect((await getObject<Totals>('box', tenant.box))?.status?.folded?.runs).toBe(before + 3);
    },
  );

  test('a Box namespace deleted with runs in it ends, and so does the Box', async () => {
    const doomed = await createTenant('e2e-doomed');
    await doomed.agent('worker');
    await createRun(doomed, 'worker', '/say finished', 'finished');
    await finishedRun(doomed.apiKey, doomed.agentId('worker'), 'finished');
    await createRun(doomed, 'worker', '/shell sleep 200', 'working');
    const { metadata } = await claimed(doomed, 'working');
    expect(metadata.uid).toBeDefined();
    const uid = (await getObject<{ metadata: { uid: string } }>('namespace', doomed.namespace))?.metadata.uid;

    await kubectlOk(['delete', 'namespace', doomed.namespace, '--wait=false']);

    await eventually('the namespace is gone or new', async () => {
      const namespace = await getObject<{ metadata: { uid: string } }>('namespace', doomed.namespace);
      return namespace?.metadata.uid !== uid;
    });
    await eventually(
      'both runs are counted in the Box',
      async () => (await getObject<Totals>('box', doomed.box))?.status?.folded?.runs === 2,
    );
    await doomed.remove();
  });
});

/** A run is stopped in each of the three ways, in a model call and in a tool: soon, with its processes, and counted. */
import { jest } from '@jest/globals';
import { eventually, getObject, kubectlOk } from './support/install.js';
import { callTool } from './support/mcp.js';
import { createRun, ended, readRun, requestCancel, stepped } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

interface Counted {
  status?: { runs?: number; tokens?: number };
}

describe('cancelling', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    // What has not stopped by itself by then is ended with other words (see detectors.test.ts).
    tenant = await createTenant('e2e-cancel', { box: { bounds: { terminationSeconds: 30 } } });
    await tenant.agent('worker');
  });

  afterAll(async () => {
    await tenant.remove();
  });

  /** A run that has made one step, and then does what takes five minutes. */
  async function working(name: string, what: string): Promise<void> {
    await createRun(tenant, 'worker', `/say First.\n/shell true\n${what}\n/say never`, name);
    await stepped(tenant, name);
  }

  const pods = async (name: string) => {
    const selector = ['-l', `boxwright.dev/run=${name}`, '--field-selector=status.phase=Running'];
    return (await kubectlOk(['get', 'pods', '-n', tenant.namespace, ...selector, '-o', 'name'])).trim();
  };

  test.each([
    ['model', '/wait 300s'],
    ['tool', '/shell sleep 300'],
  ])('by spec.cancelRequested and by cancel_run, while a %s works', async (kind, what) => {
    const cancel = {
      patch: (name: string) => requestCancel(tenant, name),
      call: (name: string) => callTool(tenant.apiKey, 'cancel_run', { agentId: tenant.agentId('worker'), runId: name }),
    };
    for (const [way, stop] of Object.entries(cancel)) {
      const name = `${kind}-${way}`;
      await working(name, what);
      await stop(name);

      const { status } = await ended(tenant, name);
      expect(status).toMatchObject({ phase: 'cancelled', reason: 'Cancelled', message: 'The run was cancelled.' });
      expect(status?.usage?.totalTokens).toBeGreaterThan(0);
      await eventually(`no pod of run ${name} works`, async () => (await pods(name)) === '');
    }
  });

  test.each([
    ['model', '/wait 300s'],
    ['tool', '/shell sleep 300'],
  ])('by deleting it while a %s works: it goes away, and what it used stays counted', async (kind, what) => {
    const name = `${kind}-deleted`;
    const counted = async () => (await getObject<Counted>('agent', 'worker', tenant.namespace))?.status;
    const before = (await counted()) ?? {};
    await working(name, what);
    const used = (await readRun(tenant, name))?.status?.usage?.totalTokens ?? 0;
    const tokens = await eventually('the run is counted', async () => {
      const status = await counted();
      const isCounted = (status?.runs ?? 0) > (before.runs ?? 0);
      return isCounted && (status?.tokens ?? 0) >= (before.tokens ?? 0) + used ? status?.tokens : undefined;
    });
    await kubectlOk(['delete', 'agentrun', name, '-n', tenant.namespace, '--wait=false']);

    await eventually('the run is gone', async () => (await readRun(tenant, name)) === undefined);
    await eventually('no pod of the run works', async () => (await pods(name)) === '');
    expect((await counted())?.tokens).toBeGreaterThanOrEqual(tokens);
  });
});

/** What get_run shows of a run that works: what it has just done, and not only what is stored. */
import { jest } from '@jest/globals';
import type { AgentRunChunk } from '../../src/api/v1alpha1/agent-run-chunk.js';
import { decodeChunk } from '../../src/transcript/codec.js';
import { eventually, kubectlOk } from './support/install.js';
import { toolOk } from './support/mcp.js';
import { createRun, ended, requestCancel } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

interface Shown {
  status: string;
  steps: number;
  toolCalls: { step: number }[];
}

describe('a run that works', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant('e2e-live');
    await tenant.agent('worker');
  });

  afterAll(async () => {
    await tenant.remove();
  });

  /** Tool calls in the chunks that are there now. */
  async function stored(run: string): Promise<number> {
    const query = ['get', 'agentrunchunks', '-n', tenant.namespace, '-l', `boxwright.dev/run=${run}`, '-o', 'json'];
    const { items } = JSON.parse(await kubectlOk(query)) as { items: Pick<AgentRunChunk, 'spec'>[] };
    const events = await Promise.all(items.map(({ spec }) => decodeChunk(spec)));
    return events.flat().filter(({ type }) => type === 'tool').length;
  }

  test('get_run shows steps and tool calls that are in no chunk yet, in pods and over TLS', async () => {
    const steps = Array.from({ length: 40 }, () => '/shell sleep 1').join('\n');
    await createRun(tenant, 'worker', `${steps}\n/wait 300s\n/say never`, 'steps');

    await eventually('get_run shows more than is stored', async () => {
      const call = { agentId: tenant.agentId('worker'), runId: 'steps', includeToolCalls: true };
      const shown = await toolOk<Shown>(tenant.apiKey, 'get_run', call);
      expect(shown.status).toBe('running');
      // Read after it: what was stored meanwhile only makes it harder.
      const inChunks = await stored('steps');
      expect(shown.toolCalls.map(({ step }) => step)).toEqual(shown.toolCalls.map((_call, index) => index + 1));
      return inChunks > 0 && shown.toolCalls.length > inChunks && shown.steps > inChunks;
    });

    await requestCancel(tenant, 'steps');
    expect((await ended(tenant, 'steps')).status?.reason).toBe('Cancelled');
  });
});

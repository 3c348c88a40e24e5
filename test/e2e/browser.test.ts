/** The tools image with a browser, in real pods. Pages are tested in test/integration/browser.test.ts. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { jest } from '@jest/globals';
import { conditionOf } from './support/conditions.js';
import { eventually, getObject, kubectlOk } from './support/install.js';
import { finishedRun, toolOk } from './support/mcp.js';
import type { RunRecord } from './support/mcp.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

// The image is about 550 MB of Debian packages, made once on a machine.
jest.setTimeout(1_800_000);

const CALLS = [
  '/tool browser_navigate {"url": "http://kubernetes.default.svc/"}',
  '/tool browser_snapshot {}',
  '/tool browser_screenshot {}',
  '/tool shell {"command": "head -c 8 .runs/*/3.png | od -An -tx1"}',
];

describe('a Box with the tools image that has a browser', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    const env = { ...process.env, VARIANT: 'browser' };
    const { stdout } = await promisify(execFile)('hack/image/load.sh', { env });
    const box = { image: `boxwright-tools:${stdout.trim()}`, resources: { memory: '1536Mi' } };
    const egress = { mode: 'internet', requireEnforcement: false };
    tenant = await createTenant('e2e-browser', { box: { egress } });
    await tenant.agent('surfer');
    await say('/say Hello.');
    await eventually('the agent shows that its image has no browser', () => unavailable());
    await kubectlOk(['patch', 'box', tenant.box, '--type=merge', '-p', JSON.stringify({ spec: box })]);
    await eventually('the controller has seen the image', async () => {
      const changed = await getObject<{ metadata: { generation: number } }>('box', tenant.box);
      return (await conditionOf('Ready', 'box', tenant.box))?.observedGeneration === changed?.metadata.generation;
    });
  });

  afterAll(async () => {
    await tenant.remove();
  });

  function unavailable() {
    return conditionOf('BrowserUnavailable', 'agent', 'surfer', tenant.namespace);
  }

  async function say(message: string): Promise<RunRecord> {
    const agentId = tenant.agentId('surfer');
    const { runId } = await toolOk<RunRecord>(tenant.apiKey, 'send_message', { agentId, message });
    return finishedRun(tenant.apiKey, agentId, runId);
  }

  test('runs have a browser, which starts without rights and reaches nothing inside the cluster', async () => {
    const run = await say(CALLS.join('\n'));
    expect(run).toMatchObject({ status: 'done', error: null });
    const [navigated, snapshot, screenshot, shell] = run.toolCalls ?? [];
    expect(navigated).toMatchObject({ tool: 'browser_navigate', isError: true });
    expect(navigated?.result).toContain('kubernetes.default.svc is not an address of the public internet');
    expect(snapshot).toMatchObject({ tool: 'browser_snapshot', isError: false });
    expect(screenshot).toMatchObject({ tool: 'browser_screenshot', isError: false });
    // The picture is a real one, drawn by a process of the tools container.
    expect(shell?.result).toContain('89 50 4e 47 0d 0a 1a 0a');
    await eventually('the agent shows it no more', async () => (await unavailable()) === undefined);
  });
});

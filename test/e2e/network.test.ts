/**
 * The network of a Box in real pods. What is right depends on the cluster: the condition NetworkEnforced
 * says which of the two cases this is, and the pods of real runs must agree with it.
 */
import { jest } from '@jest/globals';
import { conditionOf, type Condition } from './support/conditions.js';
import { apply, eventually, getObject, kubectl, kubectlOk, RELEASE_NAMESPACE } from './support/install.js';
import { finishedRun } from './support/mcp.js';
import type { RunRecord } from './support/mcp.js';
import { createRun, withReason } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

/** The condition NetworkEnforced once the probe has found it out. */
function verdictOf(box: string): Promise<Condition> {
  return eventually(`the network of Box ${box} is judged`, async () => {
    const condition = await conditionOf('NetworkEnforced', 'box', box);
    return condition?.status === 'Unknown' ? undefined : condition;
  });
}

function addressOf(service: string, namespace: string): Promise<string> {
  const address = 'jsonpath={.spec.clusterIP}:{.spec.ports[0].port}';
  return kubectlOk(['get', 'service', service, '-n', namespace, '-o', address]);
}

describe('the network of a Box', () => {
  let lax: Tenant;
  let strict: Tenant;
  let verdict: Condition;

  beforeAll(async () => {
    lax = await createTenant('e2e-network');
    await lax.agent('worker');
    const box = 'e2e-network-strict';
    await apply({
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'Box',
      metadata: { name: box },
      spec: { workspace: lax.workspace, engine: 'scripted' },
    });
    strict = { ...lax, box, namespace: `bw-${box}`, agentId: (agent) => `${box}.${agent}` };
    await eventually(`namespace ${strict.namespace} is there`, () => getObject('namespace', strict.namespace));
    await apply({
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'Agent',
      metadata: { name: 'worker', namespace: strict.namespace },
      spec: { name: 'worker' },
    });
    verdict = await verdictOf(box);
  });

  afterAll(async () => {
    await kubectl(['delete', 'box', 'e2e-network-strict', '--ignore-not-found', '--timeout=240s']);
    await lax.remove();
  });

  /** What curl of a run's tools container says about a target: 0 when it got a connection and an answer. */
  async function curlExitCodes(tenant: Tenant, run: string): Promise<Record<'api' | 'kubernetes', number>> {
    const api = await addressOf('boxwright-api', RELEASE_NAMESPACE);
    const kubernetes = await addressOf('kubernetes', 'default');
    const curl = 'curl --silent --insecure --max-time 15 --output /dev/null';
    const tryBoth = [
      `${curl} http://${api}/; echo "api=$?"`,
      `${curl} https://${kubernetes}/; echo "kubernetes=$?"`,
    ].join('; ');
    await createRun(tenant, 'worker', `/shell ${tryBoth}\n/say Tried.`, run);
    const record: RunRecord = await finishedRun(tenant.apiKey, tenant.agentId('worker'), run);
    expect(record).toMatchObject({ status: 'done', output: 'Tried.', error: null });
    const said = record.toolCalls?.[0]?.result ?? '';
    const codeOf = (name: string) => Number(new RegExp(`${name}=(\\d+)`).exec(said)?.[1] ?? 'NaN');
    const codes = { api: codeOf('api'), kubernetes: codeOf('kubernetes') };
    expect({ said, codes }).toEqual({ said, codes: { api: expect.any(Number), kubernetes: expect.any(Number) } });
    return codes;
  }

  test('is judged by a Job that is no run, and goes when it was read', async () => {
    const pods = await kubectlOk(['get', 'pods', '-n', strict.namespace, '-l', 'boxwright.dev/run', '-o', 'name']);
    expect(pods).toBe('');
    const runs = await kubectlOk(['get', 'agentruns', '-n', strict.namespace, '-o', 'name']);
    expect(runs).toBe('');
    const judged = await getObject<{ status: { networkProbe: { result: string } } }>('box', strict.box);
    expect(judged?.status.networkProbe.result).toBe(verdict.reason);
    // Nobody should find a pod that looks broken because of what it has found.
    await eventually('the Job is gone', async () => {
      return (await getObject('job', 'boxwright-network-probe', strict.namespace)) === undefined;
    });
  });

  test('is judged in the same way for a Box that does not require enforcement, which is Ready in any case', async () => {
    expect(await verdictOf(lax.box)).toMatchObject({ status: verdict.status, reason: verdict.reason });
    expect(await conditionOf('Ready', 'box', lax.box)).toMatchObject({ status: 'True' });
  });

  test('decides whether runs start, and what their pods reach', async () => {
    const open = (codes: Record<string, number>) => Object.keys(codes).filter((name) => codes[name] === 0);
    if (verdict.status === 'True') {
      expect(await conditionOf('Ready', 'box', strict.box)).toMatchObject({ status: 'True' });
      expect(open(await curlExitCodes(strict, 'guarded'))).toEqual([]);
      expect(open(await curlExitCodes(lax, 'guarded'))).toEqual([]);
      return;
    }
    expect(verdict).toMatchObject({ status: 'False', reason: 'NetworkNotEnforced' });
    expect(verdict.message).toContain('set spec.egress.requireEnforcement: false');
    expect(await conditionOf('Ready', 'box', strict.box)).toMatchObject({
      status: 'False',
      reason: 'NetworkNotEnforced',
      message: verdict.message,
    });
    await createRun(strict, 'worker', '/say too early', 'waits');
    await withReason(strict, 'waits', 'BoxNotReady');
    expect(await getObject('job', 'waits', strict.namespace)).toBeUndefined();

    const reached = open(await curlExitCodes(lax, 'unguarded'));
    expect(reached).not.toEqual([]);
    const words: Record<string, string> = { api: 'the API pods of Boxwright', kubernetes: 'the Kubernetes API server' };
    for (const name of reached) expect(verdict.message).toContain(words[name]);

    // The person decides with open eyes; the run that waited starts.
    const decided = { spec: { egress: { requireEnforcement: false } } };
    await kubectlOk(['patch', 'box', strict.box, '--type=merge', '-p', JSON.stringify(decided)]);
    const run = await finishedRun(strict.apiKey, strict.agentId('worker'), 'waits');
    expect(run).toMatchObject({ status: 'done', output: 'too early' });
    expect(await conditionOf('NetworkEnforced', 'box', strict.box)).toMatchObject({ status: 'False' });
  });
});

/** The main job in real pods: manifest, webhook and MCP call each become an AgentRun, a Job, a pod and a finished run. */
import { jest } from '@jest/globals';
import { apply, eventually, facts, getObject, kubectl, kubectlOk } from './support/install.js';
import { callTool, finishedRun, toolOk } from './support/mcp.js';
import type { RunRecord } from './support/mcp.js';
import { createRun, ended } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

interface TriggerRecord {
  slug: string;
  url: string | null;
  fireCount: number;
  lastFiredAt: string | null;
}

interface OwnedJob {
  metadata: { ownerReferences: { kind: string; name: string; uid: string }[] };
  spec: { backoffLimit: number; ttlSecondsAfterFinished?: number };
}

describe('the main job', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant('e2e-main');
    await tenant.agent('worker', { soul: 'You work.' });
  });

  afterAll(async () => {
    await tenant.remove();
  });

  test('a five-line manifest starts a run and kubectl shows how it went', async () => {
    await createRun(tenant, 'worker', '/shell echo 40 + 2 | bc || expr 40 + 2\n/say The answer is 42.', 'by-hand');

    const run = await ended(tenant, 'by-hand');

    expect(run.status).toMatchObject({ phase: 'done', reason: 'Completed', output: 'The answer is 42.' });
    const job = await getObject<OwnedJob>('job', 'by-hand', tenant.namespace);
    expect(job?.metadata.ownerReferences).toEqual([
      expect.objectContaining({ kind: 'AgentRun', name: 'by-hand', uid: run.metadata.uid }),
    ]);
    expect(job?.spec.backoffLimit).toBe(0);
    const table = await kubectlOk(['get', 'agentruns', '-n', tenant.namespace]);
    const [header = '', row = ''] = table.split('\n');
    expect(header.split(/\s{2,}/)).toEqual([
      'NAME',
      'AGENT',
      'STATUS',
      'REASON',
      'TRIGGER',
      'STEPS',
      'TOKENS',
      'COST',
      'DURATION',
      'AGE',
    ]);
    expect(row).toMatch(
      /^by-hand\s+worker\s+done\s+Completed\s+2\s+\d+\s+0\.000000\s+(\d+m)?\d+(\.\d)?m?s\s+(\d+m)?\d+s/,
    );
  });

  test('a webhook call is stored when its 202 arrives, runs in a pod, and is counted', async () => {
    const { url } = await toolOk<{ url: string }>(tenant.apiKey, 'upsert_trigger', {
      agentId: tenant.agentId('worker'),
      name: 'Build finished',
      body: '/shell cat /etc/hostname\n/say Done with the build.',
    });

    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"ref":"main"}',
    });
    const accepted = (await response.json()) as { runId: string; sessionId: string; trigger: string };

    expect(response.status).toBe(202);
    expect(Object.keys(accepted).sort()).toEqual(['runId', 'sessionId', 'trigger']);
    expect(accepted.trigger).toBe('build-finished');
    expect(await getObject('agentrun', accepted.runId, tenant.namespace)).toBeDefined();
    const run = await finishedRun(tenant.apiKey, tenant.agentId('worker'), accepted.runId);
    expect(run).toMatchObject({
      status: 'done',
      sessionId: accepted.sessionId,
      trigger: 'trigger:build-finished',
      output: 'Done with the build.',
      costUsd: 0,
      error: null,
    });
    expect(run.totalTokens).toBeGreaterThan(0);
    expect(run.toolCalls).toEqual([expect.objectContaining({ step: 1, tool: 'shell', isError: false })]);
    const { triggers } = await toolOk<{ triggers: TriggerRecord[] }>(tenant.apiKey, 'list_triggers', {
      agentId: tenant.agentId('worker'),
    });
    expect(triggers).toEqual([expect.objectContaining({ slug: 'build-finished', fireCount: 1, url })]);
    expect(triggers[0]?.lastFiredAt).not.toBeNull();
  });

  test('send_message waits for the answer, and a second message continues the session', async () => {
    const first = await toolOk<RunRecord>(tenant.apiKey, 'send_message', {
      agentId: tenant.agentId('worker'),
      message: '/say My name is Worker.',
      waitSeconds: 120,
    });
    expect(first).toMatchObject({ status: 'done', output: 'My name is Worker.', trigger: 'api' });

    const second = await toolOk<RunRecord>(tenant.apiKey, 'send_message', {
      agentId: tenant.agentId('worker'),
      message: '/say Again.',
      sessionId: first.sessionId,
      waitSeconds: 120,
    });
    expect(second).toMatchObject({ status: 'done', output: 'Again.', sessionId: first.sessionId });
    expect(second.runId).not.toBe(first.runId);
  });

  test('an invalid manifest is refused with a message that names the field', async () => {
    const cases: [object, string][] = [
      [{ agent: 'worker' }, 'spec.message is required'],
      [{ message: 'hello' }, 'spec.agent'],
      [{ agent: 'worker', message: 7 }, 'spec.message'],
      [{ agent: 'worker', message: 'hello', limits: { stepLimit: 0 } }, 'spec.limits.stepLimit'],
    ];
    for (const [spec, message] of cases) {
      const manifest = {
        apiVersion: 'boxwright.dev/v1alpha1',
        kind: 'AgentRun',
        metadata: { name: 'bad', namespace: tenant.namespace },
        spec,
      };
      const result = await kubectl(['create', '-f', '-'], JSON.stringify(manifest));
      expect(result.ok).toBe(false);
      expect(result.stderr).toContain(message);
    }
  });

  test('a key sees its own workspace only', async () => {
    const quickstart = await callTool(tenant.apiKey, 'get_agent', { agentId: 'quickstart.greeter' });
    const unknown = await callTool(tenant.apiKey, 'get_agent', { agentId: 'nowhere.greeter' });
    expect(quickstart.isError).toBe(true);
    expect(String(quickstart.payload['error']).replace('quickstart', 'X')).toBe(
      String(unknown.payload['error']).replace('nowhere', 'X'),
    );
    expect((await callTool(facts().apiKey, 'get_agent', { agentId: 'quickstart.greeter' })).isError).toBe(false);
  });

  test('an agent made by a manifest works like one made by a tool', async () => {
    await apply({
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'AgentTrigger',
      metadata: { name: 'worker.gitops', namespace: tenant.namespace },
      spec: { agent: 'worker', name: 'GitOps', body: '/say From a manifest.' },
    });
    const url = await eventually('the trigger has a URL', async () => {
      const { triggers } = await toolOk<{ triggers: TriggerRecord[] }>(tenant.apiKey, 'list_triggers', {
        agentId: tenant.agentId('worker'),
      });
      return triggers.find((trigger) => trigger.slug === 'gitops')?.url ?? undefined;
    });
    const response = await eventually('the URL works', async () => {
      const answer = await fetch(url, { method: 'POST' });
      return answer.status === 202 ? answer : undefined;
    });
    const { runId } = (await response.json()) as { runId: string };
    expect((await finishedRun(tenant.apiKey, tenant.agentId('worker'), runId)).output).toBe('From a manifest.');
  });
});

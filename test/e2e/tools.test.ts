/** Tools whose effect comes later or elsewhere, on a live install: schedules, skills, templates, deletion of an agent. */
import { jest } from '@jest/globals';
import { eventually, getObject, kubectlOk } from './support/install.js';
import { callTool, finishedRun, toolOk } from './support/mcp.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

interface ScheduleRecord {
  slug: string;
  enabled: boolean;
  lastRunAt: string | null;
  lastRunId: string | null;
  nextRunAt: string | null;
}

describe('tools on a live install', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant('e2e-tools');
    await kubectlOk(['patch', 'workspace', 'e2e-tools', '--type=merge', '-p', '{"spec":{"expertSandbox":true}}']);
    await tenant.agent('worker', { description: 'Works.', soul: 'You work. Ask @worker for help.' });
  });

  afterAll(async () => {
    await tenant.remove();
  });

  test('a schedule with one date fires once and disables itself', async () => {
    const agentId = tenant.agentId('worker');
    const schedule = await toolOk<ScheduleRecord>(tenant.apiKey, 'upsert_schedule', {
      agentId,
      name: 'Soon',
      body: '/say The time has come.',
      runAt: new Date(Date.now() + 15_000).toISOString(),
    });
    expect(schedule).toMatchObject({ slug: 'soon', enabled: true, lastRunAt: null });

    const fired = await eventually('the schedule has fired', async () => {
      const { schedules } = await toolOk<{ schedules: ScheduleRecord[] }>(tenant.apiKey, 'list_schedules', { agentId });
      return schedules.find(({ lastRunId }) => lastRunId !== null);
    });
    const run = await finishedRun(tenant.apiKey, agentId, fired.lastRunId ?? '');
    expect(run).toMatchObject({ status: 'done', trigger: 'schedule:soon', output: 'The time has come.' });
    await eventually('it is disabled', async () => {
      const { schedules } = await toolOk<{ schedules: ScheduleRecord[] }>(tenant.apiKey, 'list_schedules', { agentId });
      return schedules.some(({ slug, enabled, nextRunAt }) => slug === 'soon' && !enabled && nextRunAt === null);
    });

    const again = await toolOk<{ runId: string }>(tenant.apiKey, 'run_schedule_now', { agentId, slug: 'soon' });
    expect((await finishedRun(tenant.apiKey, agentId, again.runId)).status).toBe('done');
  });

  test('a skill with files is stored whole and read back', async () => {
    const agentId = tenant.agentId('worker');
    await toolOk(tenant.apiKey, 'upsert_skill', {
      agentId,
      name: 'Check links',
      description: 'Use it to check links.',
      body: '# Check links\nRun scripts/check.sh.',
      files: [{ path: 'scripts/check.sh', content: '#!/bin/sh\necho ok\n' }],
    });
    const file = await toolOk(tenant.apiKey, 'read_skill_file', {
      agentId,
      slug: 'check-links',
      path: 'scripts/check.sh',
    });
    expect(file).toMatchObject({ encoding: 'utf8', content: '#!/bin/sh\necho ok\n', nextOffset: null });
    expect((await toolOk<{ skills: unknown[] }>(tenant.apiKey, 'list_skills', { agentId })).skills).toHaveLength(1);
  });

  test('a published template is installed: a new agent with its trigger, skill and schedule', async () => {
    const agentId = tenant.agentId('worker');
    await toolOk(tenant.apiKey, 'upsert_trigger', { agentId, name: 'Inbox', body: '/say got it' });
    const { templateId } = await toolOk<{ templateId: string }>(tenant.apiKey, 'create_template', {
      name: 'Team',
      description: 'A worker.',
      agentIds: [agentId],
    });
    const checked = await toolOk<{ valid: boolean; problems: unknown[] }>(tenant.apiKey, 'validate_template', {
      templateId,
    });
    expect(checked).toMatchObject({ valid: true, problems: [] });
    expect(await toolOk(tenant.apiKey, 'publish_template', { templateId })).toMatchObject({
      status: 'published',
      version: 1,
    });

    const installed = await toolOk<{ agents: { agentId: string; handle: string; active: boolean }[] }>(
      tenant.apiKey,
      'install_template',
      { templateId, spaceId: tenant.box },
    );
    const [copy] = installed.agents;
    expect(copy).toMatchObject({ handle: 'worker-2', active: true });
    const agent = await toolOk(tenant.apiKey, 'get_agent', { agentId: copy?.agentId });
    expect(agent).toMatchObject({
      soul: 'You work. Ask @worker-2 for help.',
      skills: [{ slug: 'check-links' }],
      schedules: [{ slug: 'soon', enabled: false }],
      triggers: [{ slug: 'inbox', enabled: true, fireCount: 0 }],
    });

    await eventually('the controller has counted the install', async () => {
      const columns = 'custom-columns=NAMESPACE:.metadata.namespace,INSTALLS:.status.installs';
      const lines = await kubectlOk(['get', 'agenttemplates', '-A', '--no-headers', '-o', columns]);
      return /^bw-ws-e2e-tools +1$/m.test(lines);
    });
    const name = copy?.agentId.slice(tenant.box.length + 1) ?? '';
    await eventually('the agent does not stand for an uncounted install any more', async () => {
      const agent = await getObject<{ metadata: { annotations?: object } }>('agent', name, tenant.namespace);
      return agent !== undefined && !('boxwright.dev/uncounted-install' in (agent.metadata.annotations ?? {}));
    });
  });

  test('delete_agent takes everything of the agent along, at once for every tool', async () => {
    const agentId = tenant.agentId('worker');
    const refused = await callTool(tenant.apiKey, 'delete_agent', { agentId });
    expect(refused.isError).toBe(true);
    expect(String(refused.payload['error'])).toContain('confirm: true');

    expect(await toolOk(tenant.apiKey, 'delete_agent', { agentId, confirm: true })).toEqual({ deleted: agentId });
    expect((await callTool(tenant.apiKey, 'get_agent', { agentId })).isError).toBe(true);
    expect((await callTool(tenant.apiKey, 'list_triggers', { agentId })).isError).toBe(true);
    await eventually('its objects are gone', async () => {
      const left = await kubectlOk([
        'get',
        'agents,agenttriggers,agentschedules,agentskills,agentruns',
        '-n',
        tenant.namespace,
        '-o',
        'name',
      ]);
      return !/\/worker(\.|-0|$)/m.test(left);
    });
    expect(await getObject('agent', 'worker', tenant.namespace)).toBeUndefined();
  });
});

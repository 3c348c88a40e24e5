/** What agents can do beyond shell and files, in real pods: questions, approvals, notes, skills, calls of other agents. */
import { jest } from '@jest/globals';
import { conditionOf, type Condition } from './support/conditions.js';
import { eventually, getObject, kubectlOk } from './support/install.js';
import { finishedRun, toolOk } from './support/mcp.js';
import type { RunRecord } from './support/mcp.js';
import { createRun, ended, readRun, requestCancel } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

interface Pending {
  kind: string;
  text: string;
  choices: string[] | null;
  tool: string | null;
  input: unknown;
}

type Answer = RunRecord & { pending: Pending | null };

interface List<T> {
  items: T[];
}

describe('abilities of agents', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    // One place only: a child that needed one would wait for its parent for ever.
    tenant = await createTenant('e2e-abilities', { box: { maxRunning: 1 } });
    await tenant.agent('helper');
    await tenant.agent('writer');
    await tenant.agent('careful', { approvals: ['shell'] });
  });

  afterAll(async () => {
    await tenant.remove();
  });

  async function send(agent: string, message: string, sessionId?: string): Promise<Answer> {
    const agentId = tenant.agentId(agent);
    const session = sessionId === undefined ? {} : { sessionId };
    const run = await toolOk<Answer>(tenant.apiKey, 'send_message', {
      agentId,
      message,
      waitSeconds: 120,
      ...session,
    });
    const whole = await finishedRun(tenant.apiKey, agentId, run.runId);
    return { ...run, ...whole };
  }

  test('a question ends the run, and the next message of the session answers it', async () => {
    const asked = await send('helper', '/ask Which one? | red | blue\n/say Thank you.');
    expect(asked).toMatchObject({ status: 'done', output: 'Which one?' });
    expect(asked.pending).toEqual({
      kind: 'question',
      text: 'Which one?',
      choices: ['red', 'blue'],
      tool: null,
      input: null,
    });
    // A list may come from another api pod than the answer.
    await eventually('the agent is shown as waiting', async () => {
      const { agents } = await toolOk<{ agents: { id: string; status: string }[] }>(tenant.apiKey, 'list_agents', {});
      return agents.find(({ id }) => id === tenant.agentId('helper'))?.status === 'waiting';
    });

    const answered = await send('helper', 'blue', asked.sessionId);
    expect(answered).toMatchObject({ status: 'done', output: 'Thank you.', pending: null });
  });

  test('a call that needs an approval is executed after it, once', async () => {
    const asked = await send('careful', '/shell echo $((40 + 2))\n/say Done.');
    expect(asked.pending).toMatchObject({ kind: 'approval', tool: 'shell', input: { command: 'echo $((40 + 2))' } });
    expect(asked.toolCalls).toEqual([]);
    const approved = await send('careful', 'approve', asked.sessionId);
    expect(approved).toMatchObject({ status: 'done', output: 'Done.', pending: null });
    expect(approved.toolCalls?.map(({ tool, result }) => [tool, result.includes('42')])).toEqual([['shell', true]]);

    const again = await send('careful', '/shell echo no\n/say Done.', asked.sessionId);
    const denied = await send('careful', 'deny: not today', again.sessionId);
    expect(denied).toMatchObject({ status: 'done', output: 'Done.', toolCalls: [] });
  });

  test('a note of one run is there for the next, and kubectl shows it', async () => {
    await send('helper', '/tool memory_save {"text": "The build takes 5 minutes."}');
    const found = await send('helper', '/tool memory_search {"query": "build"}');
    expect(found.toolCalls?.[0]?.result).toContain('The build takes 5 minutes.');
    expect(await kubectlOk(['get', 'agentmemories', '-n', tenant.namespace])).toContain('The build takes 5 minutes.');
  });

  test('a skill is read on demand', async () => {
    const agentId = tenant.agentId('helper');
    await toolOk(tenant.apiKey, 'upsert_skill', {
      agentId,
      name: 'Review',
      description: 'Reviews code.',
      body: '# How to review',
      files: [{ path: 'check.sh', content: 'echo ok' }],
    });
    const run = await send(
      'helper',
      '/tool read_skill {"slug": "review"}\n/tool read_skill {"slug": "review", "path": "check.sh"}',
    );
    expect(run.toolCalls?.map(({ isError }) => isError)).toEqual([false, false]);
    expect(run.toolCalls?.[0]?.result).toContain('# How to review');
    expect(run.toolCalls?.[1]?.result).toContain('echo ok');
  });

  test('an agent that may use a browser shows that the image of its run has none, and what to do', async () => {
    await tenant.agent('offline', { tools: { browser: false } });
    expect(await send('offline', '/say Hello.')).toMatchObject({ status: 'done', output: 'Hello.' });
    expect(await send('writer', '/say Hello.')).toMatchObject({ status: 'done', output: 'Hello.' });

    const condition = await eventually('agent writer shows BrowserUnavailable', async () => shown('writer'));
    expect(condition).toMatchObject({
      status: 'True',
      message: expect.stringContaining('browser variant of the image'),
    });
    expect(condition.message).toContain('spec.tools.browser of the agent to false');
    expect(await shown('offline')).toBeUndefined();

    const switchedOff = ['patch', 'agent', 'writer', '-n', tenant.namespace, '--type=merge'];
    await kubectlOk([...switchedOff, '-p', '{"spec":{"tools":{"browser":false}}}']);
    await eventually('agent writer shows it no more', async () => ((await shown('writer')) ? undefined : true));
  });

  function shown(agent: string): Promise<Condition | undefined> {
    return conditionOf('BrowserUnavailable', 'agent', agent, tenant.namespace);
  }

  test('an agent calls another one in a Box with a single place', async () => {
    const run = await send('helper', '/call @writer Draft a text\n/say Got it.');
    expect(run).toMatchObject({ status: 'done', output: 'Got it.' });
    expect(run.toolCalls?.[0]).toMatchObject({ tool: 'call_agent', isError: false });
    expect(run.toolCalls?.[0]?.result).toContain('"status":"done"');
    const runs = await kubectlOk(['get', 'agentruns', '-n', tenant.namespace, '-o', 'json']);
    const children = (JSON.parse(runs) as List<{ spec: { actor?: string; parent?: object } }>).items;
    expect(children.filter(({ spec }) => spec.actor === `run:${run.runId}`)).toHaveLength(1);
  });

  test('a cancelled run takes the runs of its calls with it', async () => {
    // Paused, so that the child waits and has to be cancelled.
    await tenant.agent('writer', { paused: true });
    await createRun(tenant, 'helper', '/call @writer Draft a text\n/say Got it.', 'caller');
    const child = await eventually('the child is made', async () => {
      const runs = await kubectlOk(['get', 'agentruns', '-n', tenant.namespace, '-o', 'json']);
      const { items } = JSON.parse(runs) as List<{ metadata: { name: string }; spec: { actor?: string } }>;
      return items.find(({ spec }) => spec.actor === 'run:caller')?.metadata.name;
    });
    await requestCancel(tenant, 'caller');
    expect((await ended(tenant, 'caller')).status?.phase).toBe('cancelled');
    expect((await ended(tenant, child)).status?.phase).toBe('cancelled');
    await tenant.agent('writer');
  });

  test('what a webhook run saves is marked', async () => {
    const { url } = await toolOk<{ url: string }>(tenant.apiKey, 'upsert_trigger', {
      agentId: tenant.agentId('helper'),
      name: 'Hook',
      body: '/tool memory_save {"text": "from outside"}',
    });
    const { runId } = (await (await fetch(url, { method: 'POST', body: 'x' })).json()) as { runId: string };
    await finishedRun(tenant.apiKey, tenant.agentId('helper'), runId);
    expect((await readRun(tenant, runId))?.status).toMatchObject({ untrusted: true });
    const notes = JSON.parse(await kubectlOk(['get', 'agentmemories', '-n', tenant.namespace, '-o', 'json'])) as List<{
      metadata: { name: string };
      spec: { text: string; untrusted?: boolean };
    }>;
    const note = notes.items.find(({ spec }) => spec.text === 'from outside');
    expect(note?.spec.untrusted).toBe(true);
    expect(await getObject('agentmemory', note?.metadata.name ?? '', tenant.namespace)).toBeDefined();
  });
});

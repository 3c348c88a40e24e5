/** Calls beside each other, subtasks, runs that are fetched later, model settings and steering, in real pods. */
import { jest } from '@jest/globals';
import { eventually, kubectlOk } from './support/install.js';
import { finishedRun, toolOk } from './support/mcp.js';
import type { RunRecord } from './support/mcp.js';
import { createRun, settled, stepped } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';
import { startProviderPod } from './support/vendor.js';
import type { ProviderPod } from './support/vendor.js';
import { RUN_IDS } from './support/run-ids.js';
import type { ScriptedAnswer } from './support/vendor-process.js';

jest.setTimeout(900_000);

const usage = { input: 100, output: 10 };
const said = (text: string): ScriptedAnswer => ({ text, usage });
const look: ScriptedAnswer = { calls: [{ tool: 'list', input: {} }], usage };
const callWriter = (wait: boolean) => ({
  tool: 'call_agent',
  input: { handle: 'writer', message: 'Write. [case:writer]', wait },
});

describe('work beside each other', () => {
  let vendors: ProviderPod;
  let tenant: Tenant;

  beforeAll(async () => {
    vendors = await startProviderPod('e2e-parallel');
    tenant = await createTenant('e2e-parallel', { box: { ...vendors.box, maxRunning: 6, maxRunningPerAgent: 6 } });
    await vendors.giveKeys(tenant);
    await tenant.agent('helper', { stepLimit: 400 });
    await tenant.agent('writer');
    // The first case that a conversation names counts: those of callers stand before the one of the agent that they call.
    await vendors.script('beside', { calls: [callWriter(true), callWriter(true)], usage }, said('Both are back.'));
    await vendors.script(
      'later',
      { calls: [callWriter(false), callWriter(false)], usage },
      { calls: [{ tool: 'await_agents', input: { runIds: RUN_IDS } }], usage },
      said('Both were fetched.'),
    );
    await vendors.script('writer', said('Written.'));
  });

  afterAll(async () => {
    await tenant.remove();
    await vendors.remove();
  });

  const whole = (name: string, agent = 'helper') => finishedRun(tenant.apiKey, tenant.agentId(agent), name);

  async function childrenOf(name: string): Promise<string[]> {
    const json = await kubectlOk(['get', 'agentruns', '-n', tenant.namespace, '-o', 'json']);
    const { items } = JSON.parse(json) as { items: { spec: { actor?: string }; status?: { phase?: string } }[] };
    return items.flatMap(({ spec, status }) => (spec.actor === `run:${name}` ? [status?.phase ?? 'running'] : []));
  }

  test('two agents that are called in one step are under way at the same time', async () => {
    // Paused: neither can end before both are there.
    await tenant.agent('writer', { paused: true });
    await createRun(tenant, 'helper', 'Go. [case:beside]', 'beside');
    await eventually('both calls have their run', async () => {
      const phases = await childrenOf('beside');
      expect(phases).not.toContain('done');
      return phases.length === 2;
    });
    await tenant.agent('writer', { paused: false });
    expect(await whole('beside')).toMatchObject({ status: 'done', output: 'Both are back.', steps: 2 });
  });

  test('await_agents brings what runs came to that nobody waited for', async () => {
    await createRun(tenant, 'helper', 'Go. [case:later]', 'later');
    const run = await whole('later');
    expect(run).toMatchObject({ status: 'done', output: 'Both were fetched.' });
    const fetched = JSON.parse(run.toolCalls?.at(-1)?.result ?? '{}') as { runs?: object[] };
    expect(fetched.runs).toMatchObject([
      { status: 'done', output: 'Written.' },
      { status: 'done', output: 'Written.' },
    ]);
  });

  test('subtasks work in the pod of their run, are told with their number, and count in it', async () => {
    const subtask = (name: string) => ({ tool: 'run_subtask', input: { prompt: `Look. [case:${name}]` } });
    await vendors.script('parts', { calls: [subtask('part-a'), subtask('part-b')], usage }, said('Both parts.'));
    await vendors.script('part-a', look, said('Part A.'));
    await vendors.script('part-b', look, said('Part B.'));
    await createRun(tenant, 'helper', 'Go. [case:parts]', 'parts');
    const run = await settled(tenant, 'parts');
    expect(run.status).toMatchObject({
      output: 'Both parts.',
      usage: { steps: 6, inputTokens: 600, outputTokens: 60 },
    });
    const toolCalls: { tool: string; subtask?: number }[] = (await whole('parts')).toolCalls ?? [];
    const told = toolCalls.map(({ tool, subtask: number }) => `${tool} ${number ?? '-'}`);
    expect(told.toSorted()).toEqual(['list 1', 'list 2', 'run_subtask -', 'run_subtask -']);
  });

  test('the settings of an agent reach its model, and its JSON comes parsed', async () => {
    const outputSchema = {
      type: 'object',
      properties: { total: { type: 'integer' } },
      required: ['total'],
      additionalProperties: false,
    };
    const model = { provider: 'openai', model: 'gpt-5.5', reasoning: 'low', maxOutputTokens: 700 };
    await tenant.agent('exact', { ...model, outputSchema });
    await vendors.script('exact', said('The total is 2.'), said('{"total": 2}'));
    await createRun(tenant, 'exact', 'Go. [case:exact]', 'exact');
    expect(await whole('exact', 'exact')).toMatchObject({ status: 'done', steps: 2, outputJson: { total: 2 } });
    for (const setting of ['"effort":"low"', '"max_output_tokens":700']) {
      expect((await vendors.seen('exact', setting)).map(({ holds }) => holds)).toEqual([true, true]);
    }
  });

  test('another model goes on when the first is not served', async () => {
    await tenant.agent('safe', { provider: 'anthropic', model: 'claude-sonnet-5', fallbackModels: ['openai/gpt-5.5'] });
    await vendors.script('safe', { fault: 'status', status: 404, message: 'No such model.' }, said('I go on.'));
    await createRun(tenant, 'safe', 'Go. [case:safe]', 'safe');
    expect((await settled(tenant, 'safe')).status).toMatchObject({ reason: 'Completed', output: 'I go on.' });
    expect((await vendors.seen('safe')).map(({ vendor }) => vendor)).toEqual(['anthropic', 'openai']);
  });

  test('a steering message reaches the working run before its next step', async () => {
    // It stands before the other case: a conversation that has both goes this way.
    await vendors.script('steered', said('I go the other way.'));
    await vendors.script('straight', { calls: [{ tool: 'shell', input: { command: 'sleep 1' } }], usage });
    const agentId = tenant.agentId('helper');
    const message = 'Go. [case:straight]';
    const { runId, sessionId } = await toolOk<RunRecord>(tenant.apiKey, 'send_message', {
      agentId,
      message,
      waitSeconds: 0,
    });
    await stepped(tenant, runId);
    const steered = { agentId, sessionId, message: 'Turn. [case:steered]', steer: true, waitSeconds: 0 };
    const sent = await toolOk<RunRecord>(tenant.apiKey, 'send_message', steered);
    expect(await whole(runId)).toMatchObject({ status: 'done', output: 'I go the other way.' });
    expect(await whole(sent.runId)).toMatchObject({ status: 'done', reason: 'Delivered', output: null });
  });
});

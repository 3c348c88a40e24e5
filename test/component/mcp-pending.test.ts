/** What a session waits for, as every tool shows it: the same record, until a message answers it. */
import { McpHarness } from '../builders/mcp-harness.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';

const AGENT = 'acme-box.greeter';
const CLAIM = {
  podUid: 'p',
  podName: 'p',
  at: '2026-05-01T09:00:01.000Z',
  gatewayPod: 'g',
  gatewayUid: 'g',
  gatewayAddress: 'g:1',
  epoch: 1,
};
const QUESTION = { kind: 'question' as const, text: 'Which one?', choices: ['red', 'blue'], callId: 'c1' };
const RECORD = { kind: 'question', text: 'Which one?', choices: ['red', 'blue'], tool: null, input: null };

let harness: McpHarness;
beforeEach(() => {
  harness = new McpHarness();
});

function seed(name: string, minute: number, status: Partial<NonNullable<AgentRun['status']>> = {}): void {
  const createdAt = `2026-05-01T09:0${minute}:00.000Z`;
  harness.seedRun('acme-box', name, {
    spec: { sessionId: 's-1', createdAt },
    status: { phase: 'done', claim: CLAIM, ...status },
  });
}

/** The record as each tool shows it. */
async function shown(runId: string) {
  const call = async (tool: string, args: object = {}) =>
    (await harness.call(tool, { agentId: AGENT, ...args })).payload;
  const [run, sessions, waiting, session, agents] = [
    await call('get_run', { runId }),
    await call('list_sessions'),
    await call('list_sessions', { pending: true }),
    await call('get_session', { sessionId: 's-1' }),
    (await harness.call('list_agents', {})).payload,
  ];
  return {
    run: run['pending'],
    session: session['pending'],
    sessions: (sessions['sessions'] as { pending: unknown }[]).map(({ pending }) => pending),
    waiting: (waiting['sessions'] as { sessionId: string }[]).map(({ sessionId }) => sessionId),
    agents: (agents['agents'] as { status: string }[]).map(({ status }) => status),
  };
}

test('a question of the latest run is shown everywhere, and the agent waits', async () => {
  seed('greeter-1', 1, { pending: QUESTION });
  expect(await shown('greeter-1')).toEqual({
    run: RECORD,
    session: RECORD,
    sessions: [RECORD],
    waiting: ['s-1'],
    agents: ['waiting'],
  });
});

test('an approval shows tool and arguments', async () => {
  const input = '{"command":"rm -r build"}';
  seed('greeter-1', 1, { pending: { kind: 'approval', text: 'May I?', callId: 'c1', tool: 'shell', input } });
  expect((await shown('greeter-1')).run).toEqual({
    kind: 'approval',
    text: 'May I?',
    choices: null,
    tool: 'shell',
    input: { command: 'rm -r build' },
  });
});

test('the next message answers it: nothing waits any more', async () => {
  seed('greeter-1', 1, { pending: QUESTION });
  harness.seedRun('acme-box', 'greeter-2', {
    spec: { sessionId: 's-1', createdAt: '2026-05-01T09:02:00.000Z' },
    status: { phase: 'running' },
  });
  const running = await shown('greeter-1');
  expect(running).toMatchObject({ run: null, session: null, sessions: [null], waiting: [], agents: ['running'] });
});

test('a finished answer is an answer too, but a run that no pod took is none', async () => {
  seed('greeter-1', 1, { pending: QUESTION });
  seed('greeter-2', 2);
  expect(await shown('greeter-1')).toMatchObject({ run: null, waiting: [], agents: ['idle'] });

  harness = new McpHarness();
  seed('greeter-1', 1, { pending: QUESTION });
  seed('greeter-2', 2, { phase: 'cancelled', claim: undefined });
  expect(await shown('greeter-1')).toMatchObject({ run: RECORD, waiting: ['s-1'], agents: ['waiting'] });
});

test('send_message that waits for the end answers with the question', async () => {
  const ended = new Promise<void>((resolve) => {
    const stop = harness.caches.AgentRun.onChange(({ current }) => {
      if (current === undefined || current.terminal) return;
      stop();
      const run = harness.api.peek(AgentRuns, `${current.namespace}/${current.name}`);
      if (run !== undefined) setImmediate(() => resolve(end(run)));
    });
  });
  const end = (run: AgentRun) => {
    harness.api.seed(AgentRuns, {
      ...run,
      status: { phase: 'done', claim: CLAIM, output: 'Which one?', pending: QUESTION },
    });
  };
  const { payload } = await harness.call('send_message', { agentId: AGENT, message: 'hi', waitSeconds: 5 });
  await ended;
  expect(payload).toMatchObject({ status: 'done', output: 'Which one?', pending: RECORD });
});

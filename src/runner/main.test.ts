/** Whole runs: the real runner and the real tools process over a unix socket, against a gateway on loopback. */
import { mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RIPGREP } from '../../test/builders/ripgrep.js';
import { FakeClock } from '../../test/builders/fake-clock.js';
import { makeClaim, startFakeGateway } from '../../test/builders/fake-gateway.js';
import type { FakeGateway, FakeGatewayOptions } from '../../test/builders/fake-gateway.js';
import { webAccess } from '../../test/builders/web-access.js';
import { temporaryDirectories } from '../../test/builders/workspace.js';
import { TerminationMessage } from '../protocol/run.js';
import type { TranscriptMessage } from '../protocol/run.js';
import { systemClock } from '../runtime/clock.js';
import type { Clock } from '../runtime/clock.js';
import { runRunner } from './main.js';
import type { RunnerDeps } from './main.js';
import { askForTools } from './tools-offer.js';
import { toolsWith } from './tools/executor.js';
import { runTools } from './tools/main.js';

const temporary = temporaryDirectories();
const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

interface Pod {
  gateway: FakeGateway;
  lines: string[];
  terminate: AbortController;
  paths: { token: string; journal: string; toolsSocket: string; terminationLog: string };
  workspace: string;
  start(clock?: Clock, env?: Record<string, string | undefined>): Promise<number>;
  startTools(): Promise<void>;
}

/** A run pod in temporary directories; `tools` runs once `startTools` is called. */
async function makePod(options: FakeGatewayOptions = {}): Promise<Pod> {
  const gateway = await startFakeGateway(options);
  open.push(gateway);
  const root = await temporary('pod');
  const paths = {
    token: join(root, 'token'),
    journal: join(root, 'journal'),
    toolsSocket: join(root, 'tools', 'tools.sock'),
    terminationLog: join(root, 'termination-log'),
  };
  const workspace = join(root, 'workspace');
  const home = join(root, 'home');
  for (const directory of [paths.journal, join(root, 'tools'), workspace, home]) await mkdir(directory);
  await writeFile(paths.token, 'run-token\n');
  const terminate = new AbortController();
  const lines: string[] = [];
  let ask: RunnerDeps['askForTools'] = () => Promise.resolve(toolsWith({}));
  const env = {
    BOXWRIGHT_RUN_NAMESPACE: 'bw-b',
    BOXWRIGHT_RUN: 'helper-1',
    BOXWRIGHT_POD_UID: 'pod-uid',
    BOXWRIGHT_GATEWAY_URL: gateway.url,
    BOXWRIGHT_GATEWAY_SERVER_NAME: 'boxwright-gateway.boxwright.svc',
    BOXWRIGHT_GATEWAY_CA: 'PEM',
  };
  /** A wait of the gateway client begins right after it is logged, and is over on a clock that the test controls. */
  const writeLogOn = (clock: Clock) => (line: string) => {
    lines.push(line);
    const { delayMs } = JSON.parse(line) as { delayMs?: number };
    if (delayMs !== undefined && clock instanceof FakeClock) setImmediate(() => void clock.advance(delayMs));
  };
  return {
    gateway,
    lines,
    terminate,
    paths,
    workspace,
    start: (clock = systemClock, changes = {}) =>
      runRunner(
        { ...env, ...changes },
        {
          writeLog: writeLogOn(clock),
          clock,
          random: () => 0.5,
          terminate: terminate.signal,
          paths,
          askForTools: ask,
        },
      ),
    async startTools() {
      const stop = new AbortController();
      const ready = Promise.withResolvers<void>();
      const exit = runTools(
        {},
        {
          writeLog: (line) => {
            lines.push(line);
            if (line.includes('tools are ready')) ready.resolve();
          },
          clock: systemClock,
          terminate: stop.signal,
          paths: { socket: paths.toolsSocket, workspace, home },
          web: webAccess(),
          ripgrep: RIPGREP,
        },
      );
      open.push({
        close: async () => {
          stop.abort();
          expect(await exit).toBe(0);
        },
      });
      await ready.promise;
      ask = (signal) => askForTools({ socketPath: paths.toolsSocket, clock: systemClock }, signal);
    },
  };
}

/** Without what the runner tells while it works: that depends on how quick the machine is. */
const decisive = (pod: Pod) => pod.gateway.names().filter((name) => name !== 'events');

const shell = (command: string) => ({ calls: [{ tool: 'shell', arguments: JSON.stringify({ command }) }] });

test('outputs of old runs are removed from a workspace that outlives them', async () => {
  const pod = await makePod();
  for (let run = 0; run < 23; run++) await mkdir(join(pod.workspace, '.runs', `run-${run}`), { recursive: true });
  await pod.startTools();
  await eventually(() => pod.lines.some((line) => line.includes('outputs of old runs were removed')));
  expect(await readdir(join(pod.workspace, '.runs'))).toHaveLength(20);
});

test('a short run is a claim, its model calls and a finish; its tools work in the workspace', async () => {
  const pod = await makePod({
    model: [
      shell('echo hello > note; cat note'),
      { calls: [{ tool: 'read', arguments: '{"path":"note"}' }] },
      { text: 'Done.' },
    ],
  });
  await pod.startTools();
  expect(await pod.start()).toBe(0);
  expect(decisive(pod)).toEqual(['claim', 'model', 'model', 'model', 'finish']);
  expect(new Set(pod.gateway.calls.map((call) => call.token))).toEqual(new Set(['run-token']));
  expect(pod.gateway.calls[0]).toMatchObject({
    path: '/internal/v1/runs/bw-b/helper-1/claim',
    body: { protocol: 1, podUid: 'pod-uid', hasBrowser: false },
  });
  expect(pod.gateway.calls[1]?.path).toBe('/gateway/boxwright/v1/chat/completions');
  expect(pod.gateway.finished()).toMatchObject({
    epoch: 1,
    outcome: { reason: 'Completed', message: '', output: 'Done.' },
  });
  const events = pod.gateway.events();
  expect(events.map((event) => event.seq)).toEqual(events.map((_event, index) => index + 1));
  expect(events.map((event) => event.type)).toEqual([
    'message',
    'message',
    'tool',
    'message',
    'step',
    'message',
    'tool',
    'message',
    'step',
    'message',
    'step',
    'output',
  ]);
  expect(events[0]).toMatchObject({ v: 1, message: { role: 'user', text: 'Hello' } });
  expect(events[2]).toMatchObject({
    step: 1,
    tool: 'shell',
    input: '{"command":"echo hello > note; cat note"}',
    result: '{"exitCode":0,"output":"hello\\n"}',
    isError: false,
  });
  expect(events[6]).toMatchObject({ step: 2, tool: 'read', result: '{"text":"1\\thello"}', isError: false });
  // The model reads plain text, and a later run sends it the same.
  expect(
    events.flatMap((event) => (event.type === 'message' ? [event.message] : [])).filter(({ role }) => role === 'tool'),
  ).toMatchObject([
    { result: '"hello\\n[exit code 0]"', form: 'text' },
    { result: '"1\\thello"', form: 'text' },
  ]);
  expect(events.at(-1)).toMatchObject({ type: 'output', text: 'Done.' });
  const journal = (await readFile(join(pod.paths.journal, 'events.jsonl'), 'utf8')).trimEnd().split('\n');
  expect(journal.map((line) => JSON.parse(line) as unknown)).toEqual(events);
  // No text of the run and no token in the logs.
  expect(pod.lines.join('')).not.toMatch(/hello|Done\.|run-token|note/);
});

test('while no gateway answers, events wait in the journal and the loop with them; then all of them arrive, once', async () => {
  const calls = Array.from({ length: 40 }, () => ({ tool: 'read', arguments: '{"path":"note"}' }));
  const seen: number[] = [];
  const pod = await makePod({
    model: [{ calls }, { text: 'Done.' }],
    refuse: (call, count) => {
      if (call === 'events') seen.push(pod.gateway.calls.filter((other) => other.call === 'model').length);
      return call === 'events' && count <= 6 ? 'cut' : undefined;
    },
  });
  await pod.startTools();
  await writeFile(join(pod.workspace, 'note'), 'hello');
  expect(await pod.start(new FakeClock())).toBe(0);

  // 40 calls are 80 events: the run stood at 64 before its second model call.
  expect(seen.slice(0, 7)).toEqual([1, 1, 1, 1, 1, 1, 1]);
  const events = pod.gateway.events();
  expect(events.length).toBeGreaterThan(80);
  expect(events.map((event) => event.seq)).toEqual(events.map((_event, index) => index + 1));
  const journal = (await readFile(join(pod.paths.journal, 'events.jsonl'), 'utf8')).trimEnd().split('\n');
  expect(journal.map((line) => JSON.parse(line) as unknown)).toEqual(events);
  expect(pod.gateway.finished()?.outcome).toMatchObject({ reason: 'Completed', output: 'Done.' });
});

describe('a call that needs an approval', () => {
  const echo = '{"command":"echo $((40 + 2))"}';
  const abilities = (always: string[] = []) => ({
    tools: [],
    untrusted: false,
    memories: [],
    skills: [],
    approvals: { required: ['shell'], always },
  });
  const history: TranscriptMessage[] = [
    { role: 'user', text: 'Count.' },
    { role: 'assistant', text: '', toolCalls: [{ id: 'a', tool: 'shell', input: echo }] },
  ];
  const toolsOf = (pod: Pod) => pod.gateway.events().filter((event) => event.type === 'tool');
  const firstRequest = (pod: Pod) => {
    const body = pod.gateway.calls.find(({ call }) => call === 'model')?.body as { messages: { role: string }[] };
    return body.messages;
  };

  test('ends the run with the question, and nothing is executed', async () => {
    const pod = await makePod({ claim: { abilities: abilities() }, model: [shell('echo $((40 + 2))')] });
    await pod.startTools();
    expect(await pod.start()).toBe(0);
    expect(decisive(pod)).toEqual(['claim', 'model', 'finish']);
    expect(pod.gateway.finished()?.outcome).toMatchObject({
      reason: 'Completed',
      pending: { kind: 'approval', tool: 'shell', input: echo },
    });
    expect(toolsOf(pod)).toEqual([]);
  });

  test('is executed before the first model call of the next run, once, and belongs to step 1', async () => {
    const approved = { callId: 'a', tool: 'shell', input: echo };
    const claim = { abilities: abilities(), history, opening: [], approved };
    const pod = await makePod({ claim, model: [{ text: 'It is 42.' }] });
    await pod.startTools();
    expect(await pod.start()).toBe(0);
    expect(decisive(pod)).toEqual(['claim', 'model', 'finish']);
    expect(toolsOf(pod)).toMatchObject([
      { step: 1, tool: 'shell', input: echo, result: '{"exitCode":0,"output":"42\\n"}', isError: false },
    ]);
    expect(firstRequest(pod).map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool']);
    expect(firstRequest(pod).at(-1)).toMatchObject({
      tool_call_id: 'a',
      content: '42\n[exit code 0]',
    });
    expect(pod.gateway.finished()?.outcome).toMatchObject({ reason: 'Completed', output: 'It is 42.' });
  });

  test('that is denied reaches the model as the result of the call, and nothing is executed', async () => {
    const result = '{"error":"denied by the user: not today"}';
    const opening: TranscriptMessage[] = [{ role: 'tool', callId: 'a', tool: 'shell', result, isError: true }];
    const pod = await makePod({
      claim: { abilities: abilities(), history, opening },
      model: [{ text: 'As you say.' }],
    });
    await pod.startTools();
    expect(await pod.start()).toBe(0);
    expect(toolsOf(pod)).toEqual([]);
    expect(firstRequest(pod).at(-1)).toMatchObject({
      role: 'tool',
      tool_call_id: 'a',
      content: expect.stringContaining('denied by the user: not today'),
    });
    expect(pod.gateway.finished()?.outcome).toMatchObject({ reason: 'Completed', output: 'As you say.' });
  });
});

test('what a call stores is cut: input at 16 KiB, result at 32 KiB, both valid JSON', async () => {
  const command = `printf '%s' "${'é'.repeat(30_000)}"; seq 1 20000`;
  const pod = await makePod({ model: [shell(command), { text: 'Done.' }] });
  await pod.startTools();
  await pod.start();
  const tool = pod.gateway.events().find((event) => event.type === 'tool');
  expect(Buffer.byteLength(tool?.input ?? '')).toBeLessThanOrEqual(16 * 1024);
  expect(JSON.parse(tool?.input ?? '')).toMatchObject({ truncated: true, command: expect.stringMatching(/^printf/) });
  expect(Buffer.byteLength(tool?.result ?? '')).toBeLessThanOrEqual(32 * 1024);
  expect(JSON.parse(tool?.result ?? '')).toMatchObject({ exitCode: 0, logPath: '.runs/helper-1/1.log' });
});

test('tools that are switched off are not offered', async () => {
  const agent = { ...makeClaim().agent, tools: { shell: false, files: true } };
  const pod = await makePod({ claim: { agent } });
  await pod.start();
  const { body } = pod.gateway.calls[1] as unknown as { body: { tools: { function: { name: string } }[] } };
  expect(body.tools.map((tool) => tool.function.name)).toEqual([
    'read',
    'write',
    'edit',
    'list',
    'grep',
    'glob',
    'fetch',
    'ask_user',
  ]);
});

test('a tool that is switched off is refused when a model calls it all the same', async () => {
  const agent = { ...makeClaim().agent, tools: { shell: false } };
  const pod = await makePod({ claim: { agent }, model: [shell('touch made'), { text: 'Done.' }] });
  await pod.startTools();
  await pod.start();
  expect(pod.gateway.events().find((event) => event.type === 'tool')).toMatchObject({
    tool: 'shell',
    isError: true,
    durationMs: 0,
  });
  await expect(readFile(join(pod.workspace, 'made'))).rejects.toThrow('ENOENT');
  expect(pod.gateway.finished()).toMatchObject({ outcome: { reason: 'Completed', output: 'Done.' } });
});

test('a run without its tools container goes on with tool errors', async () => {
  const clock = new FakeClock();
  const pod = await makePod({ model: [shell('ls'), { text: 'No tools.' }] });
  const exit = pod.start(clock);
  await eventually(async () => {
    await clock.advance(50);
    return pod.gateway.finished() !== undefined;
  });
  expect(await exit).toBe(0);
  expect(pod.gateway.events().find((event) => event.type === 'tool')).toMatchObject({
    isError: true,
    result: '{"error":"The tools container does not answer; it may be starting again."}',
  });
  expect(pod.gateway.finished()?.outcome).toMatchObject({ reason: 'Completed', output: 'No tools.' });
});

test('a symlink in the workspace towards the termination log changes nothing there', async () => {
  const pod = await makePod({
    model: [{ calls: [{ tool: 'write', arguments: '{"path":"log","content":"forged"}' }] }, { text: 'Tried.' }],
  });
  await symlink(pod.paths.terminationLog, join(pod.workspace, 'log'));
  await pod.startTools();
  expect(await pod.start()).toBe(0);
  expect(pod.gateway.events().find((event) => event.type === 'tool')).toMatchObject({ isError: true });
  await expect(readFile(pod.paths.terminationLog)).rejects.toThrow('ENOENT');
});

describe('the claim', () => {
  test.each([
    [409, 0],
    [410, 0],
    [403, 1],
    [404, 1],
    [400, 1],
  ])('refused with %i ends the process with %i, without a model call or an outcome', async (status, code) => {
    const pod = await makePod({ refuse: () => ({ status }) });
    expect(await pod.start()).toBe(code);
    expect(pod.gateway.names()).toEqual(['claim']);
    await expect(readFile(pod.paths.terminationLog)).rejects.toThrow('ENOENT');
  });

  test('is tried again while no gateway is ready', async () => {
    const pod = await makePod({
      refuse: (call, count) => (call === 'claim' && count <= 3 ? { status: 503 } : undefined),
    });
    expect(await pod.start(new FakeClock())).toBe(0);
    expect(decisive(pod)).toEqual(['claim', 'claim', 'claim', 'claim', 'model', 'finish']);
  });

  test('is given up after two minutes', async () => {
    const clock = new FakeClock();
    const pod = await makePod({ refuse: () => ({ status: 503 }) });
    expect(await pod.start(clock)).toBe(1);
    expect(clock.monotonic()).toBeLessThan(120_000);
  });

  test('an environment that is not complete is named, all of it at once', async () => {
    const pod = await makePod();
    expect(await pod.start(systemClock, { BOXWRIGHT_RUN: undefined, BOXWRIGHT_GATEWAY_URL: 'gateway:8443' })).toBe(1);
    expect(JSON.parse(pod.lines[0] ?? '')).toMatchObject({
      level: 'error',
      problem:
        'The environment of the runner is not complete: BOXWRIGHT_RUN is not set; BOXWRIGHT_GATEWAY_URL must be https://<host>:<port>',
    });
    expect(pod.gateway.calls).toEqual([]);
  });
});

describe('a run is stopped', () => {
  test('by an answer that asks to cancel: the model call ends at once', async () => {
    const pod = await makePod({
      claim: { intervals: { heartbeatSeconds: 1, reportSeconds: 5 } },
      model: ['hang'],
      cancel: () => true,
    });
    const clock = new FakeClock();
    const exit = pod.start(clock);
    await eventually(() => pod.gateway.names().includes('model'));
    await clock.advance(1_000);
    expect(await exit).toBe(0);
    expect(pod.gateway.finished()?.outcome).toEqual({
      reason: 'Cancelled',
      message: 'The run was cancelled.',
      output: null,
      atRest: true,
    });
  });

  test('while a tool works: the tool is stopped too, and the last text stays', async () => {
    const pod = await makePod({ model: [{ text: 'Wait.', ...shell('echo begun; echo $$ > pid; exec sleep 63') }] });
    await pod.startTools();
    const exit = pod.start();
    const pid = await eventually(async () =>
      Number(await readFile(join(pod.workspace, 'pid'), 'utf8').catch(() => '')),
    );
    pod.terminate.abort();
    expect(await exit).toBe(0);
    expect(pod.gateway.finished()?.outcome).toEqual({
      reason: 'Interrupted',
      message: 'The pod was told to stop before the agent finished. Continue its session, or start a new run.',
      output: 'Wait.',
    });
    const tool = pod.gateway.events().find((event) => event.type === 'message' && event.message.role === 'tool');
    expect(tool).toMatchObject({
      // The kernel may take longer than the time between the two signals on a busy machine.
      message: {
        result: expect.stringMatching(/^"begun\\n\[The command was stopped with the run; ended by SIG(TERM|KILL)\]"$/),
        isError: true,
      },
    });
    await eventually(() =>
      readFile(`/proc/${pid}/stat`, 'utf8').then(
        (stat) => stat.includes(' Z '),
        () => true,
      ),
    );
  });

  test('at its execution limit', async () => {
    const pod = await makePod({
      claim: { limits: { stepLimit: 5, executionSeconds: 20 } },
      model: ['hang'],
    });
    const clock = new FakeClock();
    const exit = pod.start(clock);
    await eventually(() => pod.gateway.names().includes('model'));
    await clock.advance(20_000);
    expect(await exit).toBe(0);
    expect(pod.gateway.finished()?.outcome.reason).toBe('DeadlineExceeded');
  });

  test.each([410, 409, 404])('by %i at a heartbeat: nothing more is sent', async (status) => {
    const pod = await makePod({ model: ['hang'], refuse: (call) => (call === 'events' ? { status } : undefined) });
    const clock = new FakeClock();
    const exit = pod.start(clock);
    await eventually(() => pod.gateway.names().includes('model'));
    await clock.advance(30_000);
    expect(await exit).toBe(0);
    expect(pod.gateway.names()).toEqual(['claim', 'model', 'events']);
    await expect(readFile(pod.paths.terminationLog)).rejects.toThrow('ENOENT');
  });

  test('by a report that is not accepted, with that as its outcome', async () => {
    const pod = await makePod({ model: ['hang'], refuse: (call) => (call === 'events' ? { status: 400 } : undefined) });
    const clock = new FakeClock();
    const exit = pod.start(clock);
    await eventually(() => pod.gateway.names().includes('model'));
    await clock.advance(30_000);
    expect(await exit).toBe(0);
    expect(pod.gateway.finished()?.outcome.reason).toBe('RunnerError');
  });
});

describe('the end', () => {
  test('arrives when the gateways come back', async () => {
    const pod = await makePod({ refuse: (call, count) => (call === 'finish' && count <= 6 ? 'cut' : undefined) });
    expect(await pod.start(new FakeClock())).toBe(0);
    expect(pod.gateway.finished()?.outcome.output).toBe('Hello.');
    await expect(readFile(pod.paths.terminationLog)).rejects.toThrow('ENOENT');
  });

  test('goes into the termination message when no gateway comes back before the deadline less 30 s', async () => {
    const clock = new FakeClock();
    const pod = await makePod({
      model: [{ text: 'x'.repeat(50_000) }],
      refuse: (call) => (call === 'finish' ? { status: 503 } : undefined),
    });
    expect(await pod.start(clock)).toBe(0);
    const text = await readFile(pod.paths.terminationLog, 'utf8');
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(3072);
    expect(TerminationMessage.parse(JSON.parse(text))).toMatchObject({
      reason: 'Completed',
      outputTruncated: true,
      steps: 1,
    });
    expect(clock.monotonic()).toBeGreaterThan(1_735_000);
    expect(clock.monotonic()).toBeLessThan(1_770_000);
  });

  test('is tried for a minute even when the deadline is over', async () => {
    const clock = new FakeClock();
    const pod = await makePod({
      claim: { limits: { stepLimit: 5, executionSeconds: 5 } },
      refuse: (call) => (call === 'finish' ? { status: 503 } : undefined),
    });
    expect(await pod.start(clock)).toBe(0);
    expect(clock.monotonic()).toBeGreaterThan(28_000);
    expect(clock.monotonic()).toBeLessThan(60_100);
    await readFile(pod.paths.terminationLog);
  });

  test('after SIGTERM is tried for 20 s only', async () => {
    const pod = await makePod({ model: ['hang'], refuse: (call) => (call === 'finish' ? 'hang' : undefined) });
    const clock = new FakeClock();
    const exit = pod.start(clock);
    await eventually(() => pod.gateway.names().includes('model'));
    pod.terminate.abort();
    await eventually(() => pod.gateway.names().includes('finish'));
    await clock.advance(20_000);
    expect(await exit).toBe(0);
    expect(JSON.parse(await readFile(pod.paths.terminationLog, 'utf8'))).toMatchObject({ reason: 'Interrupted' });
  });

  test('refused with 410 is nothing to worry about', async () => {
    const pod = await makePod({ refuse: (call) => (call === 'finish' ? { status: 410 } : undefined) });
    expect(await pod.start()).toBe(0);
    expect(decisive(pod)).toEqual(['claim', 'model', 'finish']);
    await expect(readFile(pod.paths.terminationLog)).rejects.toThrow('ENOENT');
  });

  test('that can be left nowhere is a failure of the process', async () => {
    const pod = await makePod({ refuse: (call) => (call === 'finish' ? { status: 400 } : undefined) });
    await mkdir(pod.paths.terminationLog);
    expect(await pod.start()).toBe(1);
  });

  test('a model that is not configured is the reason of the run', async () => {
    const body = JSON.stringify({ error: { type: 'ModelNotConfigured', message: 'Set spec.engine of Box b.' } });
    const pod = await makePod({ model: [{ status: 400, body }] });
    expect(await pod.start()).toBe(0);
    expect(pod.gateway.finished()?.outcome).toEqual({
      reason: 'ModelNotConfigured',
      message: 'Set spec.engine of Box b.',
      output: null,
      atRest: true,
    });
  });
});

async function eventually<T>(probe: () => T | Promise<T>): Promise<T> {
  for (;;) {
    const value = await probe();
    if (value) return value;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

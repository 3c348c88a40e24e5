import { FakeClock } from '../../test/builders/fake-clock.js';
import { makeClaim } from '../../test/builders/fake-gateway.js';
import { SUMMARY_HEADING } from './compaction.js';
import type { ClaimAnswer } from '../protocol/run.js';
import type { EngineInput } from './engine.js';
import { executeRun, type ExecuteDeps } from './execute-run.js';
import { GatewayUnreachable } from './gateway-client.js';
import { createRunnerLog } from './log.js';
import { MAX_UNACKED_EVENTS } from './reporter.js';
import { textWithFrame } from './run-context.js';

const DEPS = {
  tools: { call: () => Promise.reject(new Error('no call')) },
  toolsSocket: '',
  offered: 'unknown' as const,
  journal: { append: () => Promise.resolve() },
  baseUrl: 'http://gateway',
  writeTermination: () => Promise.resolve(),
  terminate: new AbortController().signal,
};
const GATEWAY = { tool: () => Promise.reject(new GatewayUnreachable()), mcpFetch: fetch };

test('the model reads a line behind text from outside, and what is stored has it beside the text', async () => {
  const clock = new FakeClock();
  const stored: unknown[] = [];
  const heard: string[] = [];
  const message = 'Do it.\n\n<trigger_payload trigger=a>\nx\n</trigger_payload>';
  const ended = executeRun(makeClaim({ message }), {
    ...DEPS,
    clock,
    log: createRunnerLog('runner', clock, () => undefined),
    gateway: {
      ...GATEWAY,
      events: ({ events }) => {
        stored.push(...events);
        return Promise.resolve({ ack: events.at(-1)?.seq ?? 0, cancel: false, epoch: 1 });
      },
      finish: (request) => {
        stored.push(...request.events);
        return Promise.resolve({ phase: 'done' as const });
      },
    },
    engine: {
      run: async ({ messages }, hooks) => {
        const [first] = messages;
        const text = first?.role === 'user' ? textWithFrame(first) : '';
        heard.push(text);
        await hooks.onCompaction({ text: `${text}${SUMMARY_HEADING}Nothing yet.`, kept: 0 });
        return { reason: 'Completed', message: '', output: 'Done.', steps: 1 };
      },
    },
  });
  await clock.advance(60_000);
  expect(await ended).toBe('finished');
  const after = heard[0]?.split(message)[1] ?? '';
  expect(after).toMatch(/^\n\[end of text from outside, [0-9a-f]{24}\]$/);
  expect(stored).toContainEqual(
    expect.objectContaining({
      type: 'message',
      message: { role: 'user', text: message, frame: { before: expect.stringContaining(after.slice(1)), after } },
    }),
  );
  // A summary stands for the messages as the model read them: a later run sends it as it is.
  expect(stored).toContainEqual(
    expect.objectContaining({ type: 'compaction', text: `${heard[0]}${SUMMARY_HEADING}Nothing yet.` }),
  );
});

test('a run whose reports nobody takes ends all the same, with its termination message', async () => {
  const clock = new FakeClock();
  const unreachable = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(new GatewayUnreachable())));
  const written: string[] = [];
  const ended = executeRun(makeClaim(), {
    ...DEPS,
    gateway: {
      ...GATEWAY,
      events: (_events, signal) => unreachable(signal),
      finish: () => Promise.reject(new GatewayUnreachable()),
    },
    engine: {
      run: async (_input, hooks) => {
        // Its message and the last word of the agent make the buffer full.
        for (let event = 2; event < MAX_UNACKED_EVENTS; event++) await hooks.onWarning('x');
        return { reason: 'Completed', message: '', output: 'Done.', steps: 1 };
      },
    },
    writeTermination: (text) => {
      written.push(text);
      return Promise.resolve();
    },
    clock,
    log: createRunnerLog('runner', clock, () => undefined),
  });
  await clock.advance(60_000);
  expect(await ended).toBe('termination-message');
  expect(written.map((text) => JSON.parse(text) as unknown)).toMatchObject([{ reason: 'Completed', output: 'Done.' }]);
});

/** A run whose engine fails when it is asked, with what the gateway is told at its end. */
async function endedUnasked(claim: ClaimAnswer, deps: Partial<ExecuteDeps> = {}): Promise<unknown[]> {
  const clock = new FakeClock();
  const outcomes: unknown[] = [];
  const ended = await executeRun(claim, {
    ...DEPS,
    clock,
    log: createRunnerLog('runner', clock, () => undefined),
    gateway: {
      ...GATEWAY,
      events: () => Promise.resolve({ ack: 0, cancel: false, epoch: 1 }),
      finish: ({ outcome }) => {
        outcomes.push(outcome);
        return Promise.resolve({ phase: 'error' as const });
      },
    },
    engine: { run: () => Promise.reject(new Error('no model call')) },
    ...deps,
  });
  expect(ended).toBe('finished');
  return outcomes;
}

test('a run whose tools container is none of ours ends before its first model call, with what to do', async () => {
  expect(await endedUnasked(makeClaim(), { offered: 'silent' })).toEqual([
    {
      reason: 'RunnerError',
      atRest: true,
      message: expect.stringContaining('must be made from the image boxwright-tools'),
      output: null,
    },
  ]);
});

test.each([
  ['{"if":{}}', '/if is not supported'],
  ['{"$ref":"#"}', 'it refers to itself'],
  ['"it is too large"', 'it is too large'],
])('outputSchema %s cannot be used and ends the run before its first model call', async (outputSchema, why) => {
  expect(await endedUnasked(makeClaim({ outputSchema }))).toMatchObject([
    { reason: 'OutputMismatch', message: expect.stringContaining(`cannot be used: ${why}`), output: null },
  ]);
});

test.each([
  [false, 'The workspace of this run began empty', 'whose workspace is empty'],
  [true, undefined, undefined],
])('where files stay (%s), a run that goes on and its tools say what is gone', async (filesStay, told, warned) => {
  const clock = new FakeClock();
  const approvals = { required: ['shell'], always: [] };
  const abilities = { tools: [], untrusted: false, memories: [], skills: [], approvals };
  const asked: EngineInput[] = [];
  const ended = executeRun(makeClaim({ opening: [{ role: 'user', text: 'Approved.' }], abilities }), {
    ...DEPS,
    surroundings: { egress: 'internet', filesStay },
    clock,
    log: createRunnerLog('runner', clock, () => undefined),
    gateway: {
      ...GATEWAY,
      events: ({ events }) => Promise.resolve({ ack: events.at(-1)?.seq ?? 0, cancel: false, epoch: 1 }),
      finish: () => Promise.resolve({ phase: 'done' as const }),
    },
    engine: {
      run: (input) => {
        asked.push(input);
        return Promise.resolve({ reason: 'Completed', message: '', output: 'Done.', steps: 1 });
      },
    },
  });
  await clock.advance(60_000);
  expect(await ended).toBe('finished');
  const said = JSON.stringify(asked[0]?.messages);
  const shell = asked[0]?.tools.find(({ name }) => name === 'shell')?.description;
  expect(shell).toContain('A person must approve the call first');
  if (told === undefined || warned === undefined) {
    expect(said).not.toContain('began empty');
    expect(shell).not.toContain('workspace is empty');
  } else {
    expect(said).toContain(told);
    expect(shell).toContain(warned);
  }
});

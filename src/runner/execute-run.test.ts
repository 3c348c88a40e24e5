import { FakeClock } from '../../test/builders/fake-clock.js';
import { makeClaim } from '../../test/builders/fake-gateway.js';
import { executeRun } from './execute-run.js';
import { GatewayUnreachable } from './gateway-client.js';
import { createRunnerLog } from './log.js';
import { MAX_UNACKED_EVENTS } from './reporter.js';

test('a run whose reports nobody takes ends all the same, with its termination message', async () => {
  const clock = new FakeClock();
  const unreachable = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(new GatewayUnreachable())));
  const written: string[] = [];
  const ended = executeRun(makeClaim(), {
    gateway: {
      events: (_events, signal) => unreachable(signal),
      finish: () => Promise.reject(new GatewayUnreachable()),
      tool: () => Promise.reject(new GatewayUnreachable()),
      mcpFetch: fetch,
    },
    engine: {
      run: async (_input, hooks) => {
        // Its message and the last word of the agent make the buffer full.
        for (let event = 2; event < MAX_UNACKED_EVENTS; event++) await hooks.onWarning('x');
        return { reason: 'Completed', message: '', output: 'Done.', steps: 1 };
      },
    },
    tools: { call: () => Promise.reject(new Error('no call')) },
    toolsSocket: '',
    hasBrowser: false,
    journal: { append: () => Promise.resolve() },
    baseUrl: 'http://gateway',
    writeTermination: (text) => {
      written.push(text);
      return Promise.resolve();
    },
    terminate: new AbortController().signal,
    clock,
    log: createRunnerLog('runner', clock, () => undefined),
  });
  await clock.advance(60_000);
  expect(await ended).toBe('termination-message');
  expect(written.map((text) => JSON.parse(text) as unknown)).toMatchObject([{ reason: 'Completed', output: 'Done.' }]);
});

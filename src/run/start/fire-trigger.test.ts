import { FakeClock } from '../../../test/builders/fake-clock.js';
import { StartRunError } from './start-run.js';
import type { StartRunRequest } from './start-run.js';
import type { BacklogCount } from './backlog-budget.js';
import { fireTrigger, triggeredRun } from './fire-trigger.js';
import type { FireDeps, FireRequest } from './fire-trigger.js';

const NONE: BacklogCount = { runs: 0, bytes: 0 };

function request(change: Partial<FireRequest> = {}): FireRequest {
  return {
    trigger: {
      agent: { box: 'team', agent: 'cleo' },
      agentUid: 'agent-uid',
      slug: 'deploy',
      uid: 'trigger-uid',
      body: 'Look at this.',
    },
    method: 'POST',
    contentType: 'text/plain',
    body: Buffer.from('hi'),
    query: '',
    receivedAt: Date.parse('2026-03-04T05:06:07.089Z'),
    actor: 'trigger',
    ...change,
  };
}

const KNOWN = { runId: 'cleo-known', sessionId: 's-cleo-known', resourceVersion: '5', existed: true };

function setup(startRun?: FireDeps['startRun'], boxRuns = 0) {
  const clock = new FakeClock();
  const started: StartRunRequest[] = [];
  const read: string[] = [];
  const deps: FireDeps = {
    clock,
    backlog: {
      isFinishedFull: () => false,
      installation: () => NONE,
      agent: () => NONE,
      box: () => ({ runs: boxRuns, bytes: 0 }),
    },
    findStartedRun: (run) => {
      read.push(run.name);
      return Promise.resolve(run.name === 'cleo-known' ? { ...KNOWN } : undefined);
    },
    startRun: (run, signal) => {
      started.push(run);
      return (
        startRun?.(run, signal) ??
        Promise.resolve({ runId: 'cleo-1', sessionId: 's-cleo-1', resourceVersion: '7', existed: false })
      );
    },
  };
  return { clock, started, read, deps };
}

describe('triggeredRun', () => {
  it('is the body, then the block, with origin and a session named after the trigger', () => {
    expect(triggeredRun(request())).toEqual({
      agent: { box: 'team', agent: 'cleo' },
      agentUid: 'agent-uid',
      message:
        'Look at this.\n\n' +
        '<trigger_payload trigger=deploy method=POST received=2026-03-04T05:06:07.089Z content-type=text/plain bytes=2>\n' +
        'hi\n</trigger_payload>',
      trigger: { origin: 'trigger', name: 'deploy', uid: 'trigger-uid' },
      sessionTitle: 'trigger: deploy',
      actor: 'trigger',
    });
  });

  it('fits into the 128 KiB of a message, also with the longest body and payload', () => {
    const trigger = { ...request().trigger, body: 'b'.repeat(65_536) };
    const { message } = triggeredRun(request({ trigger, body: Buffer.alloc(1_048_576, 'p') }));
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(131_072);
    expect(message.endsWith('p\n</trigger_payload>')).toBe(true);
  });
});

describe('fireTrigger', () => {
  it('starts one run', async () => {
    const { started, deps, clock } = setup();
    await expect(fireTrigger(request(), deps)).resolves.toEqual({
      fired: true,
      runId: 'cleo-1',
      sessionId: 's-cleo-1',
      resourceVersion: '7',
      existed: false,
    });
    expect(started).toEqual([triggeredRun(request())]);
    expect(clock.pending).toBe(0);
  });

  it('starts and reads nothing when the backlog is full', async () => {
    const { started, read, deps } = setup(undefined, 10_000);
    await expect(fireTrigger(request(), deps)).resolves.toEqual({ fired: false, cause: 'backlog_box' });
    expect([started, read]).toEqual([[], []]);
  });

  it('answers a repeated delivery with its run while the backlog is full, and turns a new one away, for one read', async () => {
    const { started, read, deps } = setup(undefined, 10_000);
    const known = await fireTrigger(request({ runName: 'cleo-known' }), deps);
    expect(known).toEqual({ fired: true, ...KNOWN });
    const fresh = await fireTrigger(request({ runName: 'cleo-new' }), deps);
    expect(fresh).toEqual({ fired: false, cause: 'backlog_box' });
    expect([started, read]).toEqual([[], ['cleo-known', 'cleo-new']]);
  });

  it.each([
    ['refused', 'refused'],
    ['unconfirmed', 'no_answer'],
    ['too-large', 'message_too_large'],
  ] as const)('turns away a run that is %s as %s', async (kind, cause) => {
    const error = new StartRunError(kind, 'no');
    const { deps } = setup(() => Promise.reject(error));
    await expect(fireTrigger(request(), deps)).resolves.toEqual({ fired: false, cause, error });
  });

  it('gives the API server 15 seconds', async () => {
    let seen: AbortSignal | undefined;
    const { clock, deps } = setup((_run, signal) => {
      seen = signal;
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new StartRunError('unconfirmed', 'no')));
      });
    });
    const outcome = fireTrigger(request(), deps);
    await clock.advance(14_999);
    expect(seen?.aborted).toBe(false);
    await clock.advance(1);
    await expect(outcome).resolves.toMatchObject({ fired: false, cause: 'no_answer' });
  });

  it('does not hide an error in our own code', async () => {
    const { deps } = setup(() => Promise.reject(new TypeError('bug')));
    await expect(fireTrigger(request(), deps)).rejects.toThrow('bug');
  });
});

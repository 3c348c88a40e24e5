import { FakeClock } from '../../test/builders/fake-clock.js';
import { recordingLog } from '../../test/builders/log.js';
import { KubeApiError, KubeConnectionError } from '../kube/errors.js';
import { Controller } from './controller.js';
import type { ControllerOptions, ReconcileResult } from './controller.js';
import { NotLeadingError, TerminalError } from './errors.js';

function start(reconcile: ControllerOptions['reconcile'], options: Partial<ControllerOptions> = {}) {
  const clock = new FakeClock();
  const { log, messages } = recordingLog();
  const outcomes: string[] = [];
  const active: number[] = [];
  const controller = new Controller({
    name: 'things',
    workers: 2,
    reconcile,
    clock,
    log,
    random: () => 0,
    metrics: {
      reconciled: (_name, outcome) => outcomes.push(outcome),
      queueDepth: () => undefined,
      activeWorkers: (_name, workers) => active.push(workers),
    },
    ...options,
  });
  controller.start();
  return { clock, controller, messages, outcomes, active };
}

/** A reconcile whose calls end when the test says so. */
function held() {
  const calls: { key: string; end: () => void; signal: AbortSignal }[] = [];
  const reconcile = (key: string, signal: AbortSignal) =>
    new Promise<void>((resolve) => calls.push({ key, end: resolve, signal }));
  return { calls, reconcile };
}

/** A reconcile that goes through a list of outcomes. */
function scripted(clockOf: () => FakeClock, outcomes: (Error | ReconcileResult | undefined)[]) {
  const at: number[] = [];
  const reconcile = (): Promise<ReconcileResult | void> => {
    at.push(clockOf().monotonic());
    const next = outcomes.shift();
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
  };
  return { at, reconcile };
}

function startScripted(outcomes: (Error | ReconcileResult | undefined)[]) {
  let clock: FakeClock | undefined;
  const { at, reconcile } = scripted(() => clock as FakeClock, outcomes);
  const running = start(reconcile);
  clock = running.clock;
  return { ...running, at };
}

test('two keys are worked on at once, one key never', async () => {
  const { calls, reconcile } = held();
  const { clock, controller, active } = start(reconcile);
  for (const key of ['a', 'b', 'c']) controller.enqueue(key);
  await clock.advance(0);
  controller.enqueue('a');
  await clock.advance(0);
  const first = calls.map((call) => call.key);

  calls[1]?.end();
  await clock.advance(0);
  const second = calls.map((call) => call.key);
  calls[0]?.end();
  await clock.advance(0);

  expect(first).toEqual(['a', 'b']);
  expect(second).toEqual(['a', 'b', 'c']);
  expect(calls.map((call) => call.key)).toEqual(['a', 'b', 'c', 'a']);
  expect(Math.max(...active)).toBe(2);
});

test('a result asks for the next look; it is no error', async () => {
  const { clock, controller, at, outcomes, messages } = startScripted([{ requeueAfterMs: 5000 }, {}]);

  controller.enqueue('a');
  await clock.advance(60_000);

  expect(at).toEqual([0, 5000]);
  expect(outcomes).toEqual(['requeue_after', 'success']);
  expect(messages()).toEqual([]);
});

test('a failure is logged and retried with growing backoff, which a success resets', async () => {
  const failure = new Error('no');
  const { clock, controller, at, outcomes, messages } = startScripted([
    failure,
    failure,
    undefined,
    failure,
    undefined,
  ]);

  controller.enqueue('a');
  await clock.advance(1000);
  controller.enqueue('a');
  await clock.advance(1000);

  expect(at).toEqual([0, 200, 600, 1000, 1200]);
  expect(outcomes).toEqual(['error', 'error', 'success', 'error', 'success']);
  expect(messages()).toEqual(['error reconcile failed', 'error reconcile failed', 'error reconcile failed']);
});

test('a conflict is retried and not logged as an error', async () => {
  const conflict = new KubeApiError({ status: 409, reason: 'Conflict', message: 'changed' });
  const { clock, controller, at, outcomes, messages } = startScripted([conflict, undefined]);

  controller.enqueue('a');
  await clock.advance(1000);

  expect(at).toEqual([0, 200]);
  expect(outcomes).toEqual(['conflict', 'success']);
  expect(messages()).toEqual([]);
});

test.each([
  ['no answer', new KubeConnectionError('refused', 'network'), [0, 200, 600, 1400, 3000, 6200, 11_200, 16_200, 21_200]],
  [
    '503',
    new KubeApiError({ status: 503, reason: 'x', message: 'x' }),
    [0, 200, 600, 1400, 3000, 6200, 11_200, 16_200, 21_200],
  ],
  ['another failure', new Error('no'), [0, 200, 600, 1400, 3000, 6200, 12_600, 25_400, 51_000]],
])('%s: how long the next try waits', async (_what, failure, expected) => {
  const { clock, controller, at } = startScripted(Array.from({ length: 8 }, () => failure));

  controller.enqueue('a');
  await clock.advance(60_000);

  expect(at).toEqual(expected);
});

test('a terminal error is not retried until the key is added again', async () => {
  const { clock, controller, at, outcomes, messages } = startScripted([new TerminalError('never'), undefined]);

  controller.enqueue('a');
  await clock.advance(3_600_000);
  controller.enqueue('a');
  await clock.advance(0);

  expect(at).toEqual([0, 3_600_000]);
  expect(outcomes).toEqual(['terminal', 'success']);
  expect(messages()).toEqual(['warn reconcile cannot succeed until the object changes']);
});

test('whoever lost the lease drops the key in silence', async () => {
  const { clock, controller, at, messages } = startScripted([new NotLeadingError('lost'), undefined]);

  controller.enqueue('a');
  await clock.advance(3_600_000);

  expect(at).toEqual([0]);
  expect(messages()).toEqual([]);
});

test('a reconcile that takes too long has its signal aborted', async () => {
  const { calls, reconcile } = held();
  const { clock, controller } = start(reconcile, { reconcileTimeoutMs: 1000 });
  controller.enqueue('a');

  await clock.advance(999);
  const early = calls[0]?.signal.aborted;
  await clock.advance(1);

  expect(early).toBe(false);
  expect(calls[0]?.signal.aborted).toBe(true);
});

test('keys that were added before the start are worked on after it', async () => {
  const keys: string[] = [];
  const clock = new FakeClock();
  const reconcile = (key: string) => {
    keys.push(key);
    return Promise.resolve();
  };
  const controller = new Controller({ name: 'x', workers: 1, reconcile, clock, log: recordingLog().log });
  controller.enqueue('a');
  await clock.advance(1000);
  const before = [...keys];

  controller.start();
  await clock.advance(0);

  expect(before).toEqual([]);
  expect(keys).toEqual(['a']);
});

test('stop aborts what runs, waits for it, and starts nothing more', async () => {
  const { calls, reconcile } = held();
  const { clock, controller } = start(reconcile);
  controller.enqueue('a');
  await clock.advance(0);
  let stopped = false;

  const stopping = controller.stop().then(() => (stopped = true));
  controller.enqueue('b');
  await clock.advance(0);
  const early = stopped;
  const aborted = calls[0]?.signal.aborted;
  calls[0]?.end();
  await stopping;

  expect([early, aborted]).toEqual([false, true]);
  expect(calls).toHaveLength(1);
  expect(clock.pending).toBe(0);
});

test('stop gives up waiting at its bound and says so', async () => {
  const { reconcile } = held();
  const { clock, controller, messages } = start(reconcile, { stopTimeoutMs: 1000 });
  controller.enqueue('a');
  await clock.advance(0);

  const stopping = controller.stop();
  await clock.advance(1000);
  await stopping;

  expect(messages()).toEqual(['warn workers did not stop in time']);
});

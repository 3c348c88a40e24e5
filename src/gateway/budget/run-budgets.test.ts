/** Giving back what a run does not use: exact also when nobody knows whether the write arrived. */
import { AgentRuns, type AgentRun, type RunBudget } from '../../api/v1alpha1/agent-run.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import type { DecideEvent } from '../runs/run-store.js';
import type { ServedRun } from '../runs/served-runs.js';
import { NO_USAGE } from '../../run/usage/usage.js';
import { transition } from '../../run/transition.js';
import { RunBudgets } from './run-budgets.js';

const at = '2026-01-01T00:00:00.000Z';
const PRICE = { inputMicroUsd: 1_000_000, outputMicroUsd: 1_000_000 };
const ASK = { inputTokens: 1_000, outputTokens: 2_000, mostOutputTokens: 2_000, leastOutputTokens: 500, price: PRICE };
const NEVER = new AbortController().signal;

/** A store that holds one run; `fails` loses the answers of writes, `lost` the writes as well. */
function setUp(budget: RunBudget | undefined) {
  const claim = { podUid: 'p', podName: 'p', at, gatewayPod: 'g', gatewayUid: 'g', gatewayAddress: 'a', epoch: 1 };
  const run: AgentRun = {
    apiVersion: '',
    kind: AgentRuns.kind,
    metadata: { name: 'r', namespace: 'bw-lab', uid: 'u' },
    spec: { agent: 'helper', message: 'x' },
    status: { phase: 'running', claim, ...(budget === undefined ? {} : { budget }) },
  };
  const state = { run, known: run, fails: false, lost: false, writes: 0 };
  const store = {
    find: () => Promise.resolve(state.known),
    update: async (_ref: unknown, decide: DecideEvent) => {
      const event = decide(state.run);
      const status = event === undefined ? undefined : transition(state.run, event);
      await Promise.resolve();
      if (status === undefined) return { run: state.run, isWritten: false };
      state.writes += 1;
      if (!state.lost) state.run = { ...state.run, status };
      if (state.fails) throw new Error('no answer');
      return { run: (state.known = state.run), isWritten: true };
    },
  };
  const clock = new FakeClock();
  const served = {
    ref: { namespace: 'bw-lab', name: 'r' },
    fencingToken: 1,
    usage: { ...NO_USAGE, totalTokens: 3_000, costUsd: '0.003000' },
  } as unknown as ServedRun;
  return { state, clock, served, budgets: new RunBudgets({ clock, store }) };
}

test('what is not used goes back with one write, numbered; the next call asks anew', async () => {
  const { state, clock, served, budgets } = setUp({
    at,
    granted: { tokens: 50_000, usd: '0.100000' },
    wanted: { tokens: 50_000 },
    answered: { tokens: 50_000 },
    returned: 1,
  });

  await budgets.returnUnused(served);
  expect(state.run.status?.budget).toEqual({ at, granted: { tokens: 3_000, usd: '0.003000' }, returned: 2 });
  expect(served.call).toBeUndefined();

  await budgets.returnUnused(served);
  expect(state.writes).toBe(1);

  const admitted = budgets.admit(served, ASK, NEVER).catch((error: Error) => error.message);
  await clock.advance(30_000);
  expect(await admitted).toContain('this run used 3000 of 3000 tokens and 0.003000 of 0.003000 US dollars');
  expect(state.run.status?.budget?.wanted).toEqual({ tokens: 6_000, usd: '0.006001' });
});

test('nothing goes back while a model call is in flight, and none begins while something goes back', async () => {
  const { state, served, budgets } = setUp({ at, granted: { tokens: 50_000 } });
  const call = { open: undefined, abort: () => undefined };

  served.call = call;
  await budgets.returnUnused(served);
  expect([state.writes, served.call]).toEqual([0, call]);

  delete served.call;
  const late = budgets.returnUnused(served);
  // Begins while the budget is looked up.
  served.call = call;
  await late;
  expect([state.writes, served.call]).toEqual([0, call]);

  delete served.call;
  const going = budgets.returnUnused(served);
  await Promise.resolve();
  await Promise.resolve();
  expect(served.call).toBeDefined();
  await going;
  expect([state.writes, served.call]).toEqual([1, undefined]);
});

test.each([true, false])(
  'when the answer got lost, the grant is not used before the API server was asked; the write was lost: %p',
  async (lost) => {
    const { state, clock, served, budgets } = setUp({ at, granted: { tokens: 50_000 } });
    Object.assign(state, { fails: true, lost });
    await expect(budgets.returnUnused(served)).rejects.toThrow('no answer');
    expect(served.call).toBeUndefined();
    state.fails = state.lost = false;

    // The cache still shows all of it.
    expect(state.known.status?.budget?.granted).toEqual({ tokens: 50_000 });
    const admitted = budgets.admit(served, ASK, NEVER);
    admitted.catch(() => undefined);
    await clock.advance(1_000);
    const wanted = { tokens: 6_000 };
    expect(state.run.status?.budget).toMatchObject({ wanted, granted: { tokens: lost ? 50_000 : 3_000 } });

    const budget = { at, granted: { tokens: 6_000 }, wanted, answered: wanted, returned: 1 };
    state.known = state.run = { ...state.run, status: { phase: 'running', ...state.run.status, budget } };
    await clock.advance(1_000);
    expect(await admitted).toBe(2_000);
    expect(await budgets.admit(served, ASK, NEVER)).toBe(2_000);
  },
);

test('without a budget there is nothing to give back', async () => {
  const { state, served, budgets } = setUp(undefined);
  await budgets.returnUnused(served);
  expect(state.writes).toBe(0);
});

test('a call may write as much as there is room for, and asks for more only when little is left', async () => {
  const { state, served, budgets } = setUp({ at, granted: { tokens: 50_000 } });

  expect(await budgets.admit(served, { ...ASK, mostOutputTokens: 64_000 }, NEVER)).toBe(46_000);
  expect(await budgets.admit(served, { ...ASK, mostOutputTokens: 40_000 }, NEVER)).toBe(40_000);
  expect(state.writes).toBe(0);
});

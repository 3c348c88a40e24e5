/** Budgets under every order of events that lagging caches can bring: what is granted never exceeds what there is. */
import { array, assert, constantFrom, nat, property, record } from 'fast-check';
import { addToPeriods, amountOf, parseSlice, renderSlice, type Slice } from '../../api/budget.js';
import { boxNamespace } from '../../api/names.js';
import { AgentRuns, type AgentRun, type RunBudget } from '../../api/v1alpha1/agent-run.js';
import type { Budgets } from '../../api/v1alpha1/common.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { BY_NAMESPACE } from '../common/informers.js';
import { createBudgetController } from './controller.js';
import { BudgetLedger, type BudgetCaches, type BudgetOwner } from './ledger.js';

const NAMESPACE = boxNamespace('lab');

interface Job {
  ownerUid: string;
  slice?: Slice | undefined;
}

/** Caches that show what has happened only when they are told to, each kind in its own time. */
class World {
  readonly clock = new FakeClock();
  readonly shown = { runs: new Map<string, AgentRun>(), jobs: new Map<string, Job>(), agent: undefined as unknown };
  readonly #listeners: ((change: { key: string; previous?: AgentRun; current?: AgentRun }) => void)[] = [];
  readonly ledger: BudgetLedger;

  constructor(owners: { agent?: Budgets; box?: Budgets; workspace?: Budgets }) {
    const owner = (budget: Budgets | undefined): BudgetOwner => ({ spec: { budget } });
    this.shown.agent = owner(owners.agent);
    const box = { metadata: { name: 'lab' }, spec: { workspace: 'main', budget: owners.box } };
    const runs = () => [...this.shown.runs.values()];
    const caches: BudgetCaches = {
      runs: {
        get: (key) => this.shown.runs.get(key),
        byIndex: (index, value) =>
          runs().filter((run) => value === (index === BY_NAMESPACE ? NAMESPACE : `${NAMESPACE}/${run.spec.agent}`)),
        onChange: (listener) => {
          this.#listeners.push(listener);
          return () => undefined;
        },
      },
      jobs: { get: (key) => this.shown.jobs.get(key) },
      agents: { get: (key) => (key === `${NAMESPACE}/helper` ? (this.shown.agent as BudgetOwner) : undefined) },
      boxes: { get: () => box, byIndex: () => [box] },
      workspaces: { get: () => owner(owners.workspace) },
    };
    this.ledger = new BudgetLedger(caches, this.clock);
    this.ledger.watch();
  }

  show(run: AgentRun | undefined, name: string): void {
    const key = `${NAMESPACE}/${name}`;
    const previous = this.shown.runs.get(key);
    if (run === undefined) this.shown.runs.delete(key);
    else this.shown.runs.set(key, structuredClone(run));
    const change = {
      key,
      ...(previous === undefined ? {} : { previous }),
      ...(run === undefined ? {} : { current: run }),
    };
    for (const listener of this.#listeners) listener(change);
  }
}

function newRun(name: string, status?: AgentRun['status']): AgentRun {
  return {
    apiVersion: '',
    kind: AgentRuns.kind,
    metadata: { name, namespace: NAMESPACE, uid: `uid-${name}`, resourceVersion: '1' },
    spec: { agent: 'helper', message: 'x' },
    ...(status === undefined ? {} : { status }),
  };
}

const usage = (totalTokens: number) => ({ steps: 1, inputTokens: totalTokens, outputTokens: 0, totalTokens });

test('removed runs are remembered for two minutes, also where nobody has a budget', async () => {
  const world = new World({});
  const claim = { podUid: 'p', podName: 'p', at: '2026-01-01T00:00:00.000Z', gatewayPod: 'g', epoch: 1 };
  const remove = (name: string) => {
    world.show(newRun(name, { phase: 'done', claim, usageFinal: true } as AgentRun['status']), name);
    world.show(undefined, name);
  };
  for (let i = 0; i < 100; i++) remove(`old-${i}`);
  await world.clock.advance(60_000);
  remove('newer');
  expect(world.ledger.remembered).toBe(101);
  await world.clock.advance(60_000);
  remove('newest');
  expect(world.ledger.remembered).toBe(2);
});

describe('slices', () => {
  test('without a budget there is none', () => {
    expect(new World({}).ledger.admit(newRun('a'))).toBeUndefined();
  });

  test('the first is an eighth of what is left, in the dimensions that are limited', () => {
    const world = new World({ box: [{ per: 'day', usd: '80', tokens: 8_000_000 }] });

    expect(world.ledger.admit(newRun('a'))).toEqual({
      at: '2026-01-01T00:00:00.000Z',
      tokens: 1_000_000,
      microUsd: 10_000_000,
    });
    // The first one is not in any cache yet.
    expect(world.ledger.admit(newRun('b'))).toMatchObject({ tokens: 1_000_000, microUsd: 10_000_000 });
    world.show(newRun('a'), 'a');
    expect(world.ledger.admit(newRun('c'))).toMatchObject({ tokens: 875_000, microUsd: 8_750_000 });
  });

  test('the narrowest of agent, Box and Workspace counts, and a limit for each run', () => {
    const world = new World({
      agent: [{ per: 'run', tokens: 30_000 }],
      box: [{ per: 'day', usd: '0.05' }],
      workspace: [{ per: 'month', usd: '100', tokens: 1_000_000 }],
    });

    expect(world.ledger.admit(newRun('a'))).toMatchObject({ tokens: 30_000, microUsd: 50_000 });
  });

  test('what ended runs used and removed runs had used is gone; what they did not use is back', () => {
    const world = new World({ agent: [{ per: 'month', tokens: 100_000 }] });
    const at = '2026-01-01T00:00:00.000Z';
    world.show(
      newRun('a', {
        phase: 'done',
        usage: usage(20_000),
        usageFinal: true,
        budget: { at, granted: { tokens: 50_000 } },
      }),
      'a',
    );
    (world.shown.agent as { status: object }).status = {
      folded: {
        runs: 1,
        inputTokens: 0,
        outputTokens: 0,
        costMicroUsd: 0,
        periods: addToPeriods([], at, { tokens: 70_000, microUsd: 0 }),
      },
    };

    expect(world.ledger.admit(newRun('b'))).toMatchObject({ tokens: 10_000 });
  });

  test('a removed run counts once, also while the caches of its owners lag', async () => {
    const world = new World({ agent: [{ per: 'month', tokens: 100_000 }] });
    const at = '2026-01-01T00:00:00.000Z';
    const budget = { at, granted: { tokens: 90_000 } };
    const status = { phase: 'done' as const, usage: usage(60_000), usageFinal: true, budget };
    const left = () => world.ledger.admit(newRun('b'))?.tokens;
    world.show(newRun('a', status), 'a');
    world.show(undefined, 'a');
    expect(left()).toBe(40_000);

    const periods = addToPeriods([], at, { tokens: 60_000, microUsd: 0 });
    const folded = { runs: 1, inputTokens: 0, outputTokens: 0, costMicroUsd: 0, periods };
    const agent = world.shown.agent as { status: object };
    agent.status = { folded, folding: ['uid-a'] };
    expect(left()).toBe(40_000);

    agent.status = { folded, folding: [] };
    await world.clock.advance(120_000);
    expect(left()).toBe(40_000);
  });

  test('a new day has a new budget', async () => {
    const world = new World({ agent: [{ per: 'day', tokens: 10_000 }] });
    const first = newRun('a');
    world.show(first, 'a');
    expect(world.ledger.admit(first)).toMatchObject({ tokens: 10_000 });
    expect(world.ledger.admit(newRun('b'))).toMatchObject({ tokens: 0 });

    await world.clock.advance(86_400_000);
    expect(world.ledger.admit(newRun('b'))).toMatchObject({ tokens: 10_000 });
  });

  test('survives as an annotation; anything else is no slice', () => {
    const slice = { at: '2026-01-01T00:00:00.000Z', tokens: 5 };
    expect(parseSlice(renderSlice(slice))).toEqual(slice);
    expect([parseSlice(undefined), parseSlice('{'), parseSlice('{"at":"x"}'), parseSlice('null')]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

test('a wish is answered with one write, as far as money is left, and once', async () => {
  const world = new World({ agent: [{ per: 'day', usd: '1' }] });
  const at = '2026-01-01T00:00:00.000Z';
  const budget: RunBudget = { at, granted: { usd: '0.125000' }, wanted: { usd: '3.000000' } };
  const run = newRun('a', { phase: 'running', budget });
  world.show(run, 'a');
  const written: unknown[] = [];
  const part = createBudgetController({
    api: { patch: (_type, _ref, body) => (written.push(body), Promise.resolve(run as never)) },
    runs: { get: (key) => world.shown.runs.get(key), onChange: () => () => undefined },
    ledger: world.ledger,
  });
  const { signal } = new AbortController();

  await part.reconcile(`${NAMESPACE}/a`, signal);
  const answer = { at, granted: { usd: '1.000000' }, wanted: { usd: '3.000000' }, answered: { usd: '3.000000' } };
  expect(written).toEqual([{ metadata: { resourceVersion: '1' }, status: { budget: answer } }]);

  world.show(newRun('a', { phase: 'running', budget: answer }), 'a');
  await part.reconcile(`${NAMESPACE}/a`, signal);
  expect(written).toHaveLength(1);
});

/** One run as it really is; caches may show an older state. */
interface Live {
  name: string;
  run: AgentRun;
  spent: number;
  slice: Slice | undefined;
  job: boolean;
  ended: boolean;
}

const STEPS = ['start', 'spend', 'want', 'grant', 'end', 'remove', 'showRun', 'showJob', 'showAgent'] as const;

test('50 runs on one small budget never spend more than it, whatever the caches show when', () => {
  const LIMIT = 120_000;
  const step = record({
    do: constantFrom(...STEPS),
    run: nat(49),
    tokens: nat(60_000),
  });
  assert(
    property(array(step, { minLength: 100, maxLength: 400 }), (steps) => {
      const world = new World({ agent: [{ per: 'day', tokens: LIMIT }] });
      const lives = Array.from({ length: 50 }, (_, index): Live => {
        const name = `r${index}`;
        const run = newRun(name, { phase: 'running' });
        world.show(run, name);
        return { name, run, spent: 0, slice: undefined, job: false, ended: false };
      });
      let periods: ReturnType<typeof addToPeriods> = [];
      const gone = new Set<string>();
      const act: Record<(typeof STEPS)[number], (live: Live, tokens: number) => void> = {
        start(live) {
          if (live.job || live.ended) return;
          live.slice = world.ledger.admit(live.run);
          live.job = true;
          const granted = { tokens: live.slice?.tokens ?? 0 };
          if (live.slice !== undefined) live.run.status = { phase: 'running', budget: { at: live.slice.at, granted } };
        },
        spend(live, tokens) {
          if (live.ended) return;
          // As much as it may, or a part; the status follows later, or only at the end.
          const left = (live.run.status?.budget?.granted.tokens ?? 0) - live.spent;
          live.spent += tokens > 20_000 ? left : Math.min(left, tokens);
          if (tokens % 2 === 0 && live.run.status !== undefined) {
            live.run.status = { ...live.run.status, usage: usage(live.spent) };
          }
        },
        want(live, tokens) {
          const { budget } = live.run.status ?? {};
          if (live.ended || budget === undefined || live.run.status === undefined) return;
          live.run.status = { ...live.run.status, budget: { ...budget, wanted: { tokens: live.spent + tokens } } };
          if (tokens % 2 === 0) world.show(live.run, live.name);
        },
        grant(live) {
          // The write names the version that was seen: an old view gets a conflict.
          const seen = world.shown.runs.get(`${NAMESPACE}/${live.name}`);
          const budget = seen === undefined ? undefined : world.ledger.enlarge(seen);
          if (
            budget === undefined ||
            JSON.stringify(seen) !== JSON.stringify(live.run) ||
            live.run.status === undefined
          )
            return;
          live.run.status = { ...live.run.status, budget };
        },
        end(live) {
          if (live.ended) return;
          live.ended = true;
          live.run.status = { ...live.run.status, phase: 'done', usage: usage(live.spent), usageFinal: true };
        },
        remove(live) {
          if (!live.ended || gone.has(live.name)) return;
          gone.add(live.name);
          const at = live.run.status?.budget?.at;
          if (at !== undefined) periods = addToPeriods(periods, at, amountOf(live.run.status?.usage));
        },
        showRun: (live) => world.show(gone.has(live.name) ? undefined : live.run, live.name),
        showJob: (live) => {
          if (live.job)
            world.shown.jobs.set(`${NAMESPACE}/${live.name}`, { ownerUid: `uid-${live.name}`, slice: live.slice });
        },
        showAgent: () => {
          const folding = [...gone].map((name) => `uid-${name}`);
          (world.shown.agent as { status: object }).status = {
            folded: { runs: gone.size, inputTokens: 0, outputTokens: 0, costMicroUsd: 0, periods },
            folding,
          };
        },
      };
      for (const { do: what, run, tokens } of steps) act[what](lives[run] as Live, tokens);
      expect(lives.reduce((sum, live) => sum + live.spent, 0)).toBeLessThanOrEqual(LIMIT);
    }),
    { numRuns: 200 },
  );
});

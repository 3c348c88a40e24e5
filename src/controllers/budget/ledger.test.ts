/** Budgets under every order of events that lagging caches can bring: what is granted never exceeds what there is. */
import { recordingLog } from '../../../test/builders/log.js';
import { array, assert, constantFrom, nat, property, record } from '../../../test/builders/properties.js';
import { addToPeriods, amountOf, parseGrant, renderGrant, type Grant } from '../../run/usage/budget.js';
import { FINALIZER_ROLL_UP } from '../../api/labels.js';
import { callersOf } from '../../api/names.js';
import { rollUp } from '../../run/usage/totals.js';
import type { AgentRun, RunBudget } from '../../api/v1alpha1/agent-run.js';
import type { Budgets } from '../../api/v1alpha1/common.js';
import { BudgetWorld, NAMESPACE, calledBy, newRun, usageOf } from '../../../test/builders/budget-world.js';
import { createBudgetController } from './controller.js';
import { describeExhausted } from './exhausted-budgets.js';

test('removed runs are remembered for two minutes, also where nobody has a budget', async () => {
  const world = new BudgetWorld({});
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

describe('grants', () => {
  test('without a budget there is none', () => {
    expect(new BudgetWorld({}).ledger.admit(newRun('a'))).toBeUndefined();
  });

  test('the first is an eighth of what is left, in the dimensions that are limited', () => {
    const world = new BudgetWorld({ box: [{ per: 'day', usd: '80', tokens: 8_000_000 }] });

    expect(world.ledger.admit(newRun('a'))).toEqual({
      at: '2026-01-01T00:00:00.000Z',
      tokens: 1_000_000,
      microUsd: 10_000_000,
      left: { tokens: 8_000_000, microUsd: 80_000_000 },
    });
    // The first one is not in any cache yet.
    expect(world.ledger.admit(newRun('b'))).toMatchObject({ tokens: 1_000_000, microUsd: 10_000_000 });
    world.show(newRun('a'), 'a');
    expect(world.ledger.admit(newRun('c'))).toMatchObject({ tokens: 875_000, microUsd: 8_750_000 });
  });

  test('the narrowest of agent, Box and Workspace counts, and a limit for each run', () => {
    const world = new BudgetWorld({
      agent: [{ per: 'run', tokens: 30_000 }],
      box: [{ per: 'day', usd: '0.05' }],
      workspace: [{ per: 'month', usd: '100', tokens: 1_000_000 }],
    });

    expect(world.ledger.admit(newRun('a'))).toMatchObject({ tokens: 30_000, microUsd: 50_000 });
  });

  test('what ended runs used and removed runs had used is gone; what they did not use is back', () => {
    const world = new BudgetWorld({ agent: [{ per: 'month', tokens: 100_000 }] });
    const at = '2026-01-01T00:00:00.000Z';
    world.show(
      newRun('a', {
        phase: 'done',
        usage: usageOf(20_000),
        usageFinal: true,
        budget: { at, granted: { tokens: 50_000 } },
      }),
      'a',
    );
    world.agent.status = {
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
    const world = new BudgetWorld({ agent: [{ per: 'month', tokens: 100_000 }] });
    const at = '2026-01-01T00:00:00.000Z';
    const budget = { at, granted: { tokens: 90_000 } };
    const status = { phase: 'done' as const, usage: usageOf(60_000), usageFinal: true, budget };
    const left = () => world.ledger.admit(newRun('b'))?.tokens;
    world.show(newRun('a', status), 'a');
    world.show(undefined, 'a');
    expect(left()).toBe(40_000);

    const periods = addToPeriods([], at, { tokens: 60_000, microUsd: 0 });
    const folded = { runs: 1, inputTokens: 0, outputTokens: 0, costMicroUsd: 0, periods };
    const agent = world.agent;
    agent.status = { folded, folding: ['uid-a'] };
    expect(left()).toBe(40_000);

    agent.status = { folded, folding: [] };
    await world.clock.advance(120_000);
    expect(left()).toBe(40_000);
  });

  test('a removed run counts once, also when its owner has dropped it from folding a moment later', () => {
    const world = new BudgetWorld({ agent: [{ per: 'month', tokens: 100_000 }] });
    const at = '2026-01-01T00:00:00.000Z';
    const budget = { at, granted: { tokens: 60_000 } };
    world.show(newRun('a', { phase: 'done', usage: usageOf(60_000), usageFinal: true, budget }), 'a');
    const periods = addToPeriods([], at, { tokens: 60_000, microUsd: 0 });
    const folded = { runs: 1, inputTokens: 0, outputTokens: 0, costMicroUsd: 0, periods };

    world.showSums({ folded, folding: ['uid-a'] });
    world.show(undefined, 'a');
    world.showSums({ folded, folding: [] });

    expect(world.ledger.admit(newRun('b'))).toMatchObject({ tokens: 40_000 });
  });

  test('a run that others hold counts once after it was released, also when it goes at last', () => {
    const world = new BudgetWorld({ agent: [{ per: 'month', tokens: 100_000 }] });
    const at = '2026-01-01T00:00:00.000Z';
    const budget = { at, granted: { tokens: 60_000 } };
    const run = newRun('a', { phase: 'done', usage: usageOf(60_000), usageFinal: true, budget });
    const held = (finalizers: string[]): AgentRun => ({
      ...run,
      metadata: { ...run.metadata, deletionTimestamp: '2026-01-01T00:10:00Z', finalizers },
    });
    const periods = addToPeriods([], at, { tokens: 60_000, microUsd: 0 });
    const folded = { runs: 1, inputTokens: 0, outputTokens: 0, costMicroUsd: 0, periods };
    const expectOnce = () => expect(world.ledger.admit(newRun('b'))).toMatchObject({ tokens: 40_000 });
    const steps = [
      () => world.show(held([FINALIZER_ROLL_UP, 'x.example/y']), 'a'),
      () => world.showSums({ folded, folding: ['uid-a'] }),
      () => world.show(held(['x.example/y']), 'a'),
      () => world.showSums({ folded, folding: [] }),
      () => world.show(undefined, 'a'),
    ];

    for (const step of steps) {
      step();
      expectOnce();
      world.ledger.release(newRun('b'));
    }
  });

  test('a new day has a new budget', async () => {
    const world = new BudgetWorld({ agent: [{ per: 'day', tokens: 10_000 }] });
    const first = newRun('a');
    world.show(first, 'a');
    expect(world.ledger.admit(first)).toMatchObject({ tokens: 10_000 });
    expect(world.ledger.admit(newRun('b'))).toMatchObject({ tokens: 0 });

    await world.clock.advance(86_400_000);
    expect(world.ledger.admit(newRun('b'))).toMatchObject({ tokens: 10_000 });
  });

  test('survives as an annotation; anything else is no grant', () => {
    const grant = { at: '2026-01-01T00:00:00.000Z', tokens: 5 };
    expect(parseGrant(renderGrant(grant))).toEqual(grant);
    expect([parseGrant(undefined), parseGrant('{'), parseGrant('{"at":"x"}'), parseGrant('null')]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

test('a wish is answered with one write, as far as money is left, and once', async () => {
  const world = new BudgetWorld({ agent: [{ per: 'day', usd: '1' }] });
  const at = '2026-01-01T00:00:00.000Z';
  const budget: RunBudget = { at, granted: { usd: '0.125000' }, wanted: { usd: '3.000000' } };
  const run = newRun('a', { phase: 'running', budget });
  world.show(run, 'a');
  const written: unknown[] = [];
  const part = createBudgetController({
    api: { patch: (_type, _ref, body) => (written.push(body), Promise.resolve(run as never)) },
    runs: { get: (key) => world.runs.get(key), onChange: () => () => undefined },
    ledger: world.ledger,
    log: recordingLog().log,
  });
  const { signal } = new AbortController();

  await part.reconcile(`${NAMESPACE}/a`, signal);
  const answer = { at, granted: { usd: '1.000000' }, wanted: { usd: '3.000000' }, answered: { usd: '3.000000' } };
  expect(written).toEqual([{ metadata: { resourceVersion: '1' }, status: { budget: answer } }]);

  world.show(newRun('a', { phase: 'running', budget: answer }), 'a');
  await part.reconcile(`${NAMESPACE}/a`, signal);
  expect(written).toHaveLength(1);
});

describe('agents that call agents', () => {
  const at = '2026-01-01T00:00:00.000Z';
  const limit: Budgets = [{ per: 'run', tokens: 100_000 }];
  const tokens = (grant: Grant | undefined) => grant?.tokens;

  /** A caller that holds `granted` of what its limit allows. */
  function caller(world: BudgetWorld, granted: number, more: Partial<RunBudget> = {}): AgentRun {
    const run = newRun('boss', { phase: 'running', budget: { at, granted: { tokens: granted }, ...more } });
    world.show(run, 'boss');
    return run;
  }

  test('the called agent gets what its caller leaves, and no more', () => {
    const world = new BudgetWorld({ agent: limit });
    caller(world, 70_000);

    expect(tokens(world.ledger.admit(newRun('a', undefined, calledBy(['boss'], true))))).toBe(30_000);
    world.show(newRun('a', undefined, calledBy(['boss'], true)), 'a');
    expect(tokens(world.ledger.admit(newRun('b', undefined, calledBy(['boss', 'a'], true))))).toBe(0);
  });

  test('beside a caller that goes on working it gets half at first', () => {
    const world = new BudgetWorld({ agent: limit });
    caller(world, 70_000);

    expect(tokens(world.ledger.admit(newRun('a', undefined, calledBy(['boss'], false))))).toBe(15_000);
  });

  test('a day of the caller is as much as its limit for each run', () => {
    const world = new BudgetWorld({ agent: [{ per: 'day', tokens: 50_000 }] });
    caller(world, 20_000);

    expect(tokens(world.ledger.admit(newRun('a', undefined, calledBy(['boss'], true))))).toBe(30_000);
  });

  test('what the caller gave back is free, whatever was granted before', () => {
    const world = new BudgetWorld({ agent: limit });
    const run = newRun('boss');
    world.show(run, 'boss');
    const grant = world.ledger.admit(run);
    world.jobs.set(`${NAMESPACE}/boss`, { ownerUid: 'uid-boss', grant });
    const child = newRun('a', undefined, calledBy(['boss'], true));
    expect([tokens(grant), tokens(world.ledger.admit(child))]).toEqual([50_000, 50_000]);

    caller(world, 2_000, { returned: 1 });
    expect(tokens(world.ledger.admit(child))).toBe(50_000);
    world.show(child, 'a');
    const wish = { tokens: 80_000 };
    caller(world, 2_000, { returned: 1, wanted: wish });
    expect(world.ledger.enlarge(world.runs.get(`${NAMESPACE}/boss`) as AgentRun)).toEqual({
      at,
      granted: { tokens: 50_000 },
      returned: 1,
      wanted: wish,
      answered: wish,
    });
  });

  test('what removed runs below used stays counted', async () => {
    const world = new BudgetWorld({ agent: limit });
    const ended = { phase: 'done' as const, usage: usageOf(40_000), usageFinal: true, budget: { at, granted: {} } };
    const boss = caller(world, 10_000);
    world.show(newRun('a', ended, calledBy(['boss'], true)), 'a');
    world.show(undefined, 'a');
    const left = () => tokens(world.ledger.admit(newRun('b', undefined, calledBy(['boss'], true))));
    expect(left()).toBe(50_000);

    const counted = { uid: 'uid-a', createdAt: at, usage: usageOf(40_000) };
    boss.status = { ...boss.status, phase: 'running', folded: rollUp(undefined, [counted]), folding: ['uid-a'] };
    world.show(boss, 'boss');
    expect(left()).toBe(50_000);
    await world.clock.advance(200_000);
    expect(left()).toBe(50_000);
  });
});

describe('an empty budget', () => {
  const at = '2026-01-01T00:00:00.000Z';
  const used = (name: string, tokens: number) =>
    newRun(name, { phase: 'done', usage: usageOf(tokens), usageFinal: true, budget: { at, granted: { tokens } } });

  test('holds runs back until its day ends, and says so', async () => {
    const world = new BudgetWorld({ agent: [{ per: 'day', usd: '20', tokens: 30_000 }] });
    world.show(used('a', 29_500), 'a');

    const exhausted = world.ledger.exhausted.expectRoom(newRun('b'));
    expect(exhausted === undefined ? '' : describeExhausted(exhausted)).toBe(
      'Nothing is left of the budget of Agent helper (20 US dollars and 30000 tokens a day): it is used, or granted to runs that work. The run starts by itself when they leave something, at 2026-01-02T00:00:00Z at the latest. Next: raise spec.budget of Agent helper, or wait.',
    );
    expect(world.ledger.exhausted.of('lab', 'helper')).toEqual(exhausted);
    expect(world.ledger.exhausted.nextFreeMs()).toBe(86_400_000);

    await world.clock.advance(86_400_000);
    world.ledger.exhausted.review();
    expect(world.ledger.exhausted.of('lab', 'helper')).toBeUndefined();
    expect(world.ledger.exhausted.nextFreeMs()).toBe(Infinity);
    expect(world.ledger.exhausted.expectRoom(newRun('b'))).toBeUndefined();
  });

  test('of two the one that is free again last counts', () => {
    const world = new BudgetWorld({
      agent: [{ per: 'day', tokens: 10_000 }],
      workspace: [{ per: 'month', tokens: 10_000 }],
    });
    world.show(used('a', 10_000), 'a');

    expect(world.ledger.exhausted.expectRoom(newRun('b'))).toMatchObject({
      kind: 'Workspace',
      per: 'month',
      freeAt: Date.parse('2026-02-01T00:00:00Z'),
    });
  });

  test('a limit for each run never holds one back', () => {
    const world = new BudgetWorld({ agent: [{ per: 'run', tokens: 0 }] });

    expect(world.ledger.exhausted.expectRoom(newRun('b'))).toBeUndefined();
  });

  test('is looked at again when a run leaves something or the limit is raised, and not else', () => {
    const world = new BudgetWorld({ agent: [{ per: 'day', tokens: 50_000 }] });
    let freed = 0;
    world.ledger.exhausted.onFreed(() => (freed += 1));
    const working = (usage: number, granted: number, returned: number) =>
      newRun('a', { phase: 'running', usage: usageOf(usage), budget: { at, granted: { tokens: granted }, returned } });
    world.show(working(0, 50_000, 0), 'a');
    const isHeld = () => (world.ledger.exhausted.review(), world.ledger.exhausted.of('lab', 'helper') !== undefined);
    world.ledger.exhausted.expectRoom(newRun('b'));

    world.show(working(100, 50_000, 0), 'a');
    expect([freed, isHeld()]).toEqual([0, true]);
    world.show(working(49_900, 49_900, 1), 'a');
    expect([freed, isHeld()]).toEqual([1, true]);
    world.agent.spec = { budget: [{ per: 'day', tokens: 60_000 }] };
    world.agentChanged();
    expect([freed, isHeld()]).toEqual([2, false]);

    world.agent.spec = { budget: [{ per: 'day', tokens: 50_000 }] };
    world.ledger.exhausted.expectRoom(newRun('b'));
    world.show(used('a', 10_000), 'a');
    expect([freed, isHeld()]).toEqual([3, false]);
  });

  test('what a run was granted that waits again is free', () => {
    const world = new BudgetWorld({ agent: [{ per: 'day', tokens: 50_000 }] });
    const first = newRun('a');
    world.show(first, 'a');
    world.ledger.admit(first);
    expect(world.ledger.exhausted.expectRoom(newRun('b'))).toBeDefined();

    world.ledger.release(first);
    expect(world.ledger.exhausted.expectRoom(newRun('b'))).toBeUndefined();
  });
});

/** One run as it really is; caches may show an older state. */
interface Live {
  name: string;
  run: AgentRun;
  spent: number;
  grant: Grant | undefined;
  job: boolean;
  ended: boolean;
}
const STEPS = ['start', 'spend', 'want', 'grant', 'return', 'end', 'remove', 'showRun', 'showJob', 'showSums'] as const;
type Step = (typeof STEPS)[number];

/** Runs, their gateways and the controller, at every pace; what is written names the version that was seen. */
class Play {
  readonly lives: Live[];
  readonly #gone = new Set<string>();
  #periods: ReturnType<typeof addToPeriods> = [];

  constructor(
    readonly world: BudgetWorld,
    runs: readonly AgentRun[],
  ) {
    this.lives = runs.map((run) => ({
      name: run.metadata.name,
      run,
      spent: 0,
      grant: undefined,
      job: false,
      ended: false,
    }));
    for (const { run, name } of this.lives) world.show(run, name);
  }

  do(step: Step, index: number, tokens: number): void {
    const live = this.lives[index % this.lives.length] as Live;
    const { status } = live.run;
    if (step === 'start') this.#start(live);
    if (step === 'spend' && !live.ended) this.#spend(live, tokens);
    if (step === 'want' && !live.ended && status?.budget !== undefined) {
      live.run.status = { ...status, budget: { ...status.budget, wanted: { tokens: live.spent + tokens } } };
      if (tokens % 2 === 0) this.world.show(live.run, live.name);
    }
    if (step === 'grant') this.#grant(live);
    if (step === 'return' && !live.ended && status?.budget !== undefined) {
      const { at, returned = 0 } = status.budget;
      const usage = usageOf(live.spent);
      const budget = { at, granted: { tokens: live.spent }, returned: returned + 1 };
      live.run.status = { ...status, usage, budget };
    }
    if (step === 'end' && !live.ended) {
      live.ended = true;
      live.run.status = { ...status, phase: 'done', usage: usageOf(live.spent), usageFinal: true };
    }
    if (step === 'remove' && live.ended && !this.#gone.has(live.name)) this.#remove(live);
    if (step === 'showRun') this.world.show(this.#gone.has(live.name) ? undefined : live.run, live.name);
    if (step === 'showJob' && live.job) {
      this.world.jobs.set(`${NAMESPACE}/${live.name}`, { ownerUid: `uid-${live.name}`, grant: live.grant });
    }
    if (step === 'showSums') {
      const folded = { runs: 0, inputTokens: 0, outputTokens: 0, costMicroUsd: 0, periods: this.#periods };
      this.world.agent.status = { folded, folding: [...this.#gone].map((name) => `uid-${name}`) };
    }
  }

  #start(live: Live): void {
    if (live.job || live.ended) return;
    live.grant = this.world.ledger.admit(live.run);
    live.job = true;
    if (live.grant === undefined) return;
    live.run.status = {
      phase: 'running',
      ...live.run.status,
      budget: { at: live.grant.at, granted: { tokens: live.grant.tokens ?? 0 } },
    };
  }

  /** As much as it may, or a part; the status follows later, or only at the end. */
  #spend(live: Live, tokens: number): void {
    const left = (live.run.status?.budget?.granted.tokens ?? 0) - live.spent;
    live.spent += tokens > 20_000 ? left : Math.min(left, tokens);
    if (tokens % 2 === 0 && live.run.status !== undefined) {
      live.run.status = { ...live.run.status, usage: usageOf(live.spent) };
    }
  }

  /** The write names the version that was seen: an old view gets a conflict. */
  #grant(live: Live): void {
    const seen = this.world.runs.get(`${NAMESPACE}/${live.name}`);
    const budget = seen === undefined ? undefined : this.world.ledger.enlarge(seen);
    if (budget === undefined || live.run.status === undefined || JSON.stringify(seen) !== JSON.stringify(live.run))
      return;
    live.run.status = { ...live.run.status, budget };
  }

  /** It is in the sums of its agent and of the runs above it before it is gone. */
  #remove(live: Live): void {
    this.#gone.add(live.name);
    const { status } = live.run;
    const at = status?.budget?.at;
    if (at !== undefined && live.run.spec.agent === 'helper') {
      this.#periods = addToPeriods(this.#periods, at, amountOf(status?.usage));
    }
    const uid = live.run.metadata.uid ?? '';
    for (const { name } of callersOf(live.run)) {
      const above = this.lives.find((one) => one.name === name)?.run;
      if (above === undefined || this.#gone.has(name)) continue;
      const { folded, folding = [] } = above.status ?? {};
      const sums = rollUp(folded, [{ uid, createdAt: '2026-01-01T00:00:00Z', usage: status?.usage }]);
      above.status = { phase: 'running', ...above.status, folded: sums, folding: [...folding, uid] };
    }
  }
}

/** Most of what happens is work: runs that end at once find no trouble. */
const OFTEN: Step[] = [
  'start',
  'spend',
  'spend',
  'want',
  'want',
  'grant',
  'grant',
  'return',
  'showRun',
  'showRun',
  'showRun',
];
const steps = (runs: number) =>
  array(record({ do: constantFrom(...STEPS, ...OFTEN, ...OFTEN), run: nat(runs - 1), tokens: nat(60_000) }), {
    minLength: 100,
    maxLength: 400,
    size: 'max',
  });

test('50 runs on one small budget never spend more than it, whatever the caches show when', () => {
  const LIMIT = 120_000;
  assert(
    property(steps(50), (all) => {
      const runs = Array.from({ length: 50 }, (_, index) => newRun(`r${index}`, { phase: 'running' }));
      const play = new Play(new BudgetWorld({ agent: [{ per: 'day', tokens: LIMIT }] }), runs);
      for (const { do: step, run, tokens } of all) play.do(step, run, tokens);
      expect(play.lives.reduce((sum, live) => sum + live.spent, 0)).toBeLessThanOrEqual(LIMIT);
    }),
    { numRuns: 200 },
  );
});

test('a run and all those below it never spend more than its limit, whatever the caches show when', () => {
  const LIMIT = 120_000;
  const CHILDREN = [['a'], ['a'], ['a', 'b'], ['a', 'b'], ['a', 'b', 'd']];
  assert(
    property(steps(6), (all) => {
      const below = CHILDREN.map((callers, index) =>
        newRun('bcdef'[index] ?? '', { phase: 'running' }, calledBy(callers, index % 2 === 0)),
      );
      const runs = [newRun('a', { phase: 'running' }), ...below];
      const play = new Play(new BudgetWorld({ agent: [{ per: 'run', tokens: LIMIT }] }), runs);
      for (const { do: step, run, tokens } of all) {
        // A run goes after those below it here: without it they are cancelled, and its limit is nobody's.
        if (step === 'remove' && run === 0) continue;
        play.do(step, run, tokens);
      }
      expect(play.lives.reduce((sum, live) => sum + live.spent, 0)).toBeLessThanOrEqual(LIMIT);
    }),
    { numRuns: 300 },
  );
});

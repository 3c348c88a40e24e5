import * as fc from '../../../test/builders/properties.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { exceededBacklog } from './backlog-budget.js';
import { countLiveRuns } from './backlog.js';
import type { CountedRun } from './backlog.js';
import { OwnRuns, UNCLEAR_MS, UNSEEN_MS } from './own-runs.js';

const REF = { box: 'team', agent: 'cleo' };

/** A cache that shows what it is told to, when it is told to. */
class SlowCache {
  readonly #runs = new Map<string, CountedRun>();
  readonly #listeners: ((change: { key: string; current?: CountedRun }) => void)[] = [];

  get(key: string): CountedRun | undefined {
    return this.#runs.get(key);
  }

  values(): Iterable<CountedRun> {
    return this.#runs.values();
  }

  onChange(listener: (change: { key: string; current?: CountedRun }) => void): () => void {
    this.#listeners.push(listener);
    return () => undefined;
  }

  show(key: string, current: CountedRun | undefined): void {
    if (current === undefined) this.#runs.delete(key);
    else this.#runs.set(key, current);
    for (const listener of this.#listeners) listener({ key, ...(current === undefined ? {} : { current }) });
  }
}

function setup() {
  const clock = new FakeClock();
  const cache = new SlowCache();
  return { clock, cache, own: new OwnRuns(countLiveRuns(cache), cache, clock) };
}

function run(name: string, inputBytes = 10): CountedRun {
  return { ...REF, namespace: 'bw-team', name, inputBytes, terminal: false };
}

const limitsOf = (runs: number, bytes: number) => ({
  installation: { runs: 4 * runs, bytes: 4 * bytes },
  box: { runs: 2 * runs, bytes: 2 * bytes },
  guaranteed: { runs: 0, bytes: 0 },
});

test.each([
  ['runs', { runs: 100, bytes: 1_000_000 }, 100],
  ['bytes', { runs: 5_000, bytes: 1_005 }, 101],
])(
  'while the watch shows nothing, of 1,000 calls as many are accepted as the budget has %s',
  (_what, limit, expected) => {
    const { own } = setup();
    let accepted = 0;
    for (let call = 0; call < 1_000; call++) {
      if (exceededBacklog(own, REF, limitsOf(limit.runs, limit.bytes)) !== undefined) continue;
      accepted += 1;
      const place = own.reserve(run(`cleo-${call}`));
      // Every other one is still under way when the next call comes.
      if (call % 2 === 0) place.settle('stored');
    }
    expect(accepted).toBe(expected);
  },
);

test('counts in the agent, its Box and the installation, beside what the cache shows', () => {
  const { cache, own } = setup();
  cache.show('bw-team/cleo-0', run('cleo-0', 5));
  own.reserve(run('cleo-1', 7));
  expect(own.agent('team', 'cleo')).toEqual({ runs: 2, bytes: 12 });
  expect(own.box('team')).toEqual({ runs: 2, bytes: 12 });
  expect(own.installation()).toEqual({ runs: 2, bytes: 12 });
  expect(own.agent('team', 'bert')).toEqual({ runs: 0, bytes: 0 });
  expect(own.box('other')).toEqual({ runs: 0, bytes: 0 });
});

test('a run that the cache shows counts once, also when the cache is faster than the answer', () => {
  const { cache, own } = setup();
  const [slow, fast] = [own.reserve(run('cleo-1')), own.reserve(run('cleo-2'))];
  fast.settle('stored');
  cache.show('bw-team/cleo-1', run('cleo-1'));
  cache.show('bw-team/cleo-2', run('cleo-2'));
  slow.settle('stored');
  expect([own.installation(), own.size]).toEqual([{ runs: 2, bytes: 20 }, 0]);
  cache.show('bw-team/cleo-1', { ...run('cleo-1'), terminal: true });
  cache.show('bw-team/cleo-2', undefined);
  expect(own.installation()).toEqual({ runs: 0, bytes: 0 });
});

test('a run that was not created gives its place back', () => {
  const { own } = setup();
  own.reserve(run('cleo-1')).settle('absent');
  expect([own.installation(), own.size]).toEqual([{ runs: 0, bytes: 0 }, 0]);
});

test.each([
  ['unclear', UNCLEAR_MS],
  ['stored', UNSEEN_MS],
] as const)('a run with the end %s counts %i ms without being shown', async (end, ms) => {
  const { clock, own } = setup();
  own.reserve(run('cleo-1')).settle(end);
  await clock.advance(ms - 1);
  expect(own.agent('team', 'cleo').runs).toBe(1);
  await clock.advance(1);
  expect([own.agent('team', 'cleo').runs, own.size]).toEqual([0, 0]);
});

describe('repeated deliveries with one name', () => {
  test('take one place, which stays while one of them is under way or has stored the run', () => {
    const { own } = setup();
    const [first, second, third] = [1, 2, 3].map(() => own.reserve(run('cleo-1')));
    first?.settle('absent');
    expect(own.installation()).toEqual({ runs: 1, bytes: 10 });
    second?.settle('stored');
    third?.settle('absent');
    expect(own.installation()).toEqual({ runs: 1, bytes: 10 });
  });

  test('an unclear end does not shorten that of a stored run, a stored one lengthens it', async () => {
    const { clock, own } = setup();
    const [first, second, third] = [1, 2, 3].map(() => own.reserve(run('cleo-1')));
    first?.settle('unclear');
    second?.settle('stored');
    third?.settle('unclear');
    await clock.advance(UNSEEN_MS - 1);
    expect(own.size).toBe(1);
    await clock.advance(1);
    expect(own.size).toBe(0);
  });

  test('take none when the cache shows the run', () => {
    const { cache, own } = setup();
    cache.show('bw-team/cleo-1', { ...run('cleo-1'), terminal: true });
    own.reserve(run('cleo-1')).settle('stored');
    expect([own.installation(), own.size]).toEqual([{ runs: 0, bytes: 0 }, 0]);
  });
});

const LIMIT = { runs: 12, bytes: 150 };
const MAX_BYTES = 30;

/** What happens next; `pick` chooses among what is under way. */
const stepArbitrary = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('call' as const), bytes: fc.integer({ min: 1, max: MAX_BYTES }) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('store' as const, 'answer' as const), pick: fc.nat() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('refuse' as const, 'lose' as const, 'finish' as const),
      pick: fc.nat(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('watch' as const), events: fc.integer({ min: 1, max: 4 }) }) },
);
type Step = typeof stepArbitrary extends fc.Arbitrary<infer S> ? S : never;

interface Start {
  run: CountedRun;
  place: ReturnType<OwnRuns['reserve']>;
}

/** One API pod before an API server whose watch comes when it comes. */
class World {
  readonly #clock = new FakeClock();
  readonly #cache = new SlowCache();
  readonly own = new OwnRuns(countLiveRuns(this.#cache), this.#cache, this.#clock);
  readonly #sent: Start[] = [];
  readonly #stored: Start[] = [];
  readonly #etcd = new Map<string, CountedRun>();
  #watch: CountedRun[] = [];
  #calls = 0;

  step(step: Step): void {
    if (step.kind === 'call') this.#call(step.bytes);
    else if (step.kind === 'watch') this.watch(step.events);
    else if (step.kind === 'finish') this.#finish(step.pick);
    else if (step.kind === 'answer') this.#take(this.#stored, step.pick)?.place.settle('stored');
    else this.#end(step.kind, step.pick);
  }

  get live(): { runs: number; bytes: number } {
    const live = [...this.#etcd.values()].filter(({ terminal }) => !terminal);
    return { runs: live.length, bytes: live.reduce((sum, { inputBytes }) => sum + inputBytes, 0) };
  }

  watch(events: number): void {
    for (const shown of this.#watch.splice(0, events)) this.#cache.show(`bw-team/${shown.name}`, shown);
  }

  /** All answers and events have come. */
  settle(): void {
    while (this.#sent.length > 0) this.step({ kind: 'refuse', pick: 0 });
    while (this.#stored.length > 0) this.step({ kind: 'answer', pick: 0 });
    this.watch(this.#watch.length);
  }

  #call(bytes: number): void {
    if (exceededBacklog(this.own, REF, limitsOf(LIMIT.runs, LIMIT.bytes)) !== undefined) return;
    const wanted = run(`cleo-${this.#calls++}`, bytes);
    this.#sent.push({ run: wanted, place: this.own.reserve(wanted) });
  }

  #end(kind: 'store' | 'refuse' | 'lose', pick: number): void {
    const start = this.#take(this.#sent, pick);
    if (start === undefined) return;
    if (kind === 'refuse') return start.place.settle('absent');
    this.#write(start.run);
    if (kind === 'lose') start.place.settle('unclear');
    else this.#stored.push(start);
  }

  #finish(pick: number): void {
    const live = [...this.#etcd.values()].filter(({ terminal }) => !terminal);
    const ended = live[pick % live.length];
    if (ended !== undefined) this.#write({ ...ended, terminal: true });
  }

  #write(changed: CountedRun): void {
    this.#etcd.set(changed.name, changed);
    this.#watch.push(changed);
  }

  #take(from: Start[], pick: number): Start | undefined {
    return from.splice(pick % Math.max(from.length, 1), 1)[0];
  }
}

test('whatever the lag of the watch, what is stored keeps to the budget, and nothing is counted for ever', () => {
  fc.assert(
    fc.property(fc.array(stepArbitrary, { maxLength: 150 }), (steps) => {
      const world = new World();
      for (const step of steps) {
        world.step(step);
        expect(world.live.runs).toBeLessThanOrEqual(LIMIT.runs);
        expect(world.live.bytes).toBeLessThan(LIMIT.bytes + MAX_BYTES);
      }
      world.settle();
      expect([world.own.installation(), world.own.size]).toEqual([world.live, 0]);
    }),
    { numRuns: 300 },
  );
});

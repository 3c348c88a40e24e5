/** Long sequences through the queue: who gets the places in the end. */
import * as fc from '../../../../test/builders/properties.js';
import { FakeClock } from '../../../../test/builders/fake-clock.js';
import { RunQueue } from './run-queue.js';
import type { QueuedRun } from './run-queue.js';

interface Simulation {
  weights: number[];
  /** Runs of the installation that may work at once. */
  maxRunning: number;
  /** Places that end in each step are drawn from this. */
  seed: number;
}

const RUNS_OF_A_BOX = 3000;
const SESSIONS_OF_A_BOX = 500;

function simulate({ weights, maxRunning, seed }: Simulation) {
  const random = randomFrom(seed);
  const box = (index: number) => ({
    gate: undefined,
    maxRunning: 1e6,
    maxRunningPerAgent: 1e6,
    weight: weights[index] ?? 1,
  });
  const queue = new RunQueue({
    clock: new FakeClock(),
    maxRunning,
    facts: {
      box: (name) => box(Number(name)),
      agentGate: () => undefined,
      hasNoBudget: () => false,
      hasManyBoxes: () => true,
      boxesInNeed: () => [],
    },
  });
  const runs = new Map<string, QueuedRun>();
  for (let i = 0; i < RUNS_OF_A_BOX; i++) {
    for (const index of weights.keys()) {
      const key = `${index}/r${String(i).padStart(5, '0')}`;
      const session = `${index}/s${i % SESSIONS_OF_A_BOX}`;
      const run = { key, uid: key, box: String(index), agent: 'x', session, acceptedAt: i, working: false };
      runs.set(key, run);
      queue.update(key, run);
    }
  }
  const started: QueuedRun[] = [];
  let working: string[] = [];
  // As long as every Box has runs that wait: the heaviest one empties first.
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const steps = Math.floor((RUNS_OF_A_BOX * total) / Math.max(...weights)) - maxRunning - total;
  while (started.length < steps) {
    for (const key of queue.admitNext()) {
      const run = runs.get(key) as QueuedRun;
      started.push(run);
      working.push(key);
    }
    for (const key of working) {
      // Some pods have their nodes at once, others later.
      if (random() < 0.5) queue.update(key, { ...(runs.get(key) as QueuedRun), working: true });
    }
    const ends = working.filter(() => random() < 0.3);
    working = working.filter((key) => !ends.includes(key));
    for (const key of ends) queue.update(key, undefined);
  }
  return started;
}

/** A small generator (mulberry32): the same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
}

describe('over a long sequence of Boxes that always have runs waiting', () => {
  const simulations = fc.record({
    weights: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 2, maxLength: 4 }),
    maxRunning: fc.integer({ min: 1, max: 40 }),
    seed: fc.integer(),
  });

  it('each Box starts its share within 10 % of its weight, and sessions keep their order', () => {
    fc.assert(
      fc.property(simulations, (simulation) => {
        const started = simulate(simulation);
        const total = simulation.weights.reduce((sum, weight) => sum + weight, 0);
        for (const [index, weight] of simulation.weights.entries()) {
          const share = started.filter(({ box }) => box === String(index)).length / started.length;
          // All have had the same number of turns (375 at least), but for one, for what they owe, and for what they may save up.
          expect(Math.abs(share / (weight / total) - 1)).toBeLessThanOrEqual(0.1);
        }
        const last = new Map<string, number>();
        for (const { session, acceptedAt } of started) {
          expect(acceptedAt).toBeGreaterThan(last.get(session) ?? -1);
          last.set(session, acceptedAt);
        }
      }),
      {
        numRuns: 12,
        // Shares of less than one place, so that reserved places are in demand without end.
        examples: [
          [{ weights: [3, 6, 1], maxRunning: 10, seed: 0 }],
          [{ weights: [1, 1, 8, 8], maxRunning: 10, seed: 0 }],
        ],
      },
    );
  });
});

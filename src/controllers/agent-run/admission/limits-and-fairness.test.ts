import {
  MOST_TURNS_OWED,
  PLACING_BY_WEIGHT,
  admit,
  goesBehind,
  isBehindNewPods,
  waitReason,
} from './limits-and-fairness.js';
import type { AdmissionInput, AgentQueue, BoxQueue, WaitingRun } from './limits-and-fairness.js';

/** `box/agent/name@time~session`, the session is the run's own when absent. */
function run(text: string): WaitingRun {
  const [path = '', rest = ''] = text.split('@');
  const [time = '0', session] = rest.split('~');
  const [box = '', agent = '', name = ''] = path.split('/');
  return { key: `bw-${box}/${name}`, box, agent, session: session ?? `s-${name}`, acceptedAt: Number(time) };
}

function agent(name: string, waiting: string[], more: Partial<AgentQueue> = {}): AgentQueue {
  return { agent: name, gate: undefined, running: 0, waiting: waiting.map(run), ...more };
}

function box(name: string, agents: AgentQueue[], more: Partial<BoxQueue> = {}): BoxQueue {
  return {
    box: name,
    gate: undefined,
    running: 0,
    placing: 0,
    maxRunning: 20,
    maxRunningPerAgent: 5,
    weight: 1,
    agents,
    ...more,
  };
}

function admitted(boxes: BoxQueue[], more: Partial<AdmissionInput> = {}): string[] {
  const input: AdmissionInput = {
    running: 0,
    maxRunning: 100,
    reserved: 0,
    boxes,
    busySessions: new Set(),
    turn: undefined,
    ...more,
  };
  return admit(input).admitted.map(({ key }) => key);
}

describe('admission', () => {
  it('takes everything while there is room, the oldest first, equal times by name', () => {
    expect(admitted([box('a', [agent('x', ['a/x/r2@1', 'a/x/r3@1']), agent('y', ['a/y/r1@0'])])])).toEqual([
      'bw-a/r1',
      'bw-a/r2',
      'bw-a/r3',
    ]);
  });

  it('stops at the limit of the agent and goes on with other agents', () => {
    const boxes = [box('a', [agent('x', ['a/x/r1@0', 'a/x/r2@1'], { running: 4 }), agent('y', ['a/y/r3@2'])])];
    expect(admitted(boxes)).toEqual(['bw-a/r1', 'bw-a/r3']);
  });

  it('stops at the limit of the Box', () => {
    expect(admitted([box('a', [agent('x', ['a/x/r1@0', 'a/x/r2@1'])], { maxRunning: 3, running: 2 })])).toEqual([
      'bw-a/r1',
    ]);
  });

  it('stops at the limit of the installation', () => {
    const boxes = [box('a', [agent('x', ['a/x/r1@0', 'a/x/r2@1'])])];
    expect(admitted(boxes, { running: 99 })).toEqual(['bw-a/r1']);
    expect(admitted(boxes, { running: 100 })).toEqual([]);
  });

  it('goes round the Boxes, so that a flood in one delays another by one place', () => {
    const flood = Array.from({ length: 50 }, (_, i) => `a/x/f${i}@${i}`);
    const boxes = [
      box('a', [agent('x', flood)], { maxRunningPerAgent: 50 }),
      box('b', [agent('y', ['b/y/r1@1000', 'b/y/r2@1001'])]),
    ];
    expect(admitted(boxes, { maxRunning: 4 })).toEqual(['bw-a/f0', 'bw-b/r1', 'bw-a/f1', 'bw-b/r2']);
  });

  it('goes on after the Box that got the last place', () => {
    const boxes = ['a', 'b', 'c'].map((name) => box(name, [agent('x', [`${name}/x/${name}1@0`])]));
    const turn = { box: 'a', credit: 0 };
    const result = admit({ running: 0, maxRunning: 1, reserved: 0, boxes, busySessions: new Set(), turn });
    expect(result).toMatchObject({ admitted: [{ key: 'bw-b/b1' }], turn: { box: 'b', credit: 0 } });
    expect(admitted(boxes, { maxRunning: 2, turn: { box: 'c', credit: 0 } })).toEqual(['bw-a/a1', 'bw-b/b1']);
  });

  it('gives a Box as many places in its turn as its weight says, also one place at a time', () => {
    const queue = (name: string) =>
      agent(
        'x',
        [0, 1, 2, 3, 4, 5].map((i) => `${name}/x/${name}${i}@${i}`),
      );
    let boxes = [
      box('a', [queue('a')], { weight: 3, maxRunningPerAgent: 50 }),
      box('b', [queue('b')], { maxRunningPerAgent: 50 }),
    ];
    expect(admitted(boxes, { maxRunning: 6 })).toEqual([
      'bw-a/a0',
      'bw-a/a1',
      'bw-a/a2',
      'bw-b/b0',
      'bw-a/a3',
      'bw-a/a4',
    ]);
    const order: string[] = [];
    let turn: AdmissionInput['turn'];
    for (let i = 0; i < 8; i++) {
      const result = admit({ running: 0, maxRunning: 1, reserved: 0, boxes, busySessions: new Set(), turn });
      ({ turn } = result);
      const [run] = result.admitted;
      order.push(run?.box ?? '');
      const without = (queues: readonly AgentQueue[]) =>
        queues.map((one) => ({ ...one, waiting: one.waiting.filter(({ key }) => key !== run?.key) }));
      boxes = boxes.map((one) => ({ ...one, agents: without(one.agents) }));
    }
    expect(order.join('')).toBe('aaabaaab');
  });

  it('saves nothing up for a Box that had nothing to start', () => {
    const idle = box('a', [agent('x', ['a/x/r1@0'])], { weight: 5 });
    const busy = box('b', [agent('y', ['b/y/r2@1', 'b/y/r3@2'])]);
    expect(admitted([idle, busy], { turn: { box: 'a', credit: 4 } })).toEqual(['bw-a/r1', 'bw-b/r2', 'bw-b/r3']);
    const result = admit({
      running: 0,
      maxRunning: 9,
      reserved: 0,
      boxes: [idle],
      busySessions: new Set(),
      turn: undefined,
    });
    expect(result.turn).toMatchObject({ box: 'a', credit: 0 });
  });

  it('starts one run of a session at a time, and never a younger one before an older', () => {
    const boxes = [box('a', [agent('x', ['a/x/r1@0~s', 'a/x/r2@1~s', 'a/x/r3@2'])])];
    expect(admitted(boxes)).toEqual(['bw-a/r1', 'bw-a/r3']);
    expect(admitted(boxes, { busySessions: new Set(['s']) })).toEqual(['bw-a/r3']);
  });

  it('has few pods without a node in a Box at a time, more in one of more weight', () => {
    const flood = (name: string) =>
      agent(
        'x',
        Array.from({ length: 20 }, (_, i) => `${name}/x/${name}${String(i).padStart(2, '0')}@${i}`),
      );
    const roomy = { maxRunning: 50, maxRunningPerAgent: 50 };
    const of = (name: string, more: Partial<BoxQueue>) =>
      admitted([box(name, [flood(name)], { ...roomy, ...more })]).length;
    expect(of('a', {})).toBe(PLACING_BY_WEIGHT);
    expect(of('a', { weight: 2 })).toBe(2 * PLACING_BY_WEIGHT);
    expect(of('a', { running: 9, placing: PLACING_BY_WEIGHT - 2 })).toBe(2);
    expect(of('a', { running: 9, placing: PLACING_BY_WEIGHT })).toBe(0);
  });

  it('gives a Box in its next turn what its pods without a node kept it from taking', () => {
    const queue = (name: string) =>
      agent(
        'x',
        [0, 1, 2, 3, 4, 5].map((i) => `${name}/x/${name}${i}@${i}`),
      );
    const next = (placing: number, turn: AdmissionInput['turn']) => {
      const boxes = [box('a', [queue('a')], { placing, running: placing, weight: 2 }), box('b', [queue('b')])];
      return admit({ running: 0, maxRunning: 4, reserved: 0, boxes, busySessions: new Set(), turn });
    };
    const { admitted: first, turn } = next(2 * PLACING_BY_WEIGHT - 1, undefined);
    expect(first.map(({ key }) => key)).toEqual(['bw-a/a0', 'bw-b/b0', 'bw-b/b1', 'bw-b/b2']);
    const { admitted: second } = next(0, turn);
    expect(second.map(({ key }) => key)).toEqual(['bw-a/a0', 'bw-a/a1', 'bw-a/a2', 'bw-b/b0']);
  });

  it('keeps the last places for Boxes in which nothing works, who pay for them in their turns', () => {
    const queue = (name: string) =>
      agent(
        'x',
        [0, 1, 2].map((i) => `${name}/x/${name}${i}@${i}`),
      );
    const boxes = [
      box('a', [queue('a')], { running: 7, weight: 3 }),
      box('b', [queue('b')]),
      box('c', [queue('c')], { running: 1 }),
    ];
    const result = admit({
      running: 8,
      maxRunning: 10,
      reserved: 1,
      boxes,
      busySessions: new Set(),
      turn: { box: 'a', credit: 2 },
    });
    expect(result.admitted.map(({ key }) => key)).toEqual(['bw-a/a0', 'bw-b/b0']);
    expect(result.turn).toEqual({ box: 'a', credit: 1, owed: new Map([['b', 1]]) });
    const later = [box('a', [queue('a')], { running: 7 }), box('b', [queue('b')], { running: 1 })];
    const next = (turn: AdmissionInput['turn']) =>
      admit({ running: 8, maxRunning: 10, reserved: 1, boxes: later, busySessions: new Set(), turn });
    const paid = next({ box: 'a', credit: 0, owed: new Map([['b', 1]]) });
    expect(paid.admitted.map(({ key }) => key)).toEqual(['bw-a/a0']);
    expect(next(paid.turn).admitted.map(({ key }) => key)).toEqual(['bw-b/b0']);
    expect(admitted(boxes, { running: 10, maxRunning: 10, reserved: 1 })).toEqual([]);
  });

  describe('of Boxes in which nothing works', () => {
    const boxes = [
      box('a', [agent('x', ['a/x/a0@0'])], { running: 9 }),
      box('b', [agent('x', ['b/x/b0@0'])], { weight: 2 }),
      box('c', [agent('x', ['c/x/c0@0'])]),
    ];
    const next = (owed: ReadonlyMap<string, number>, running = 9) =>
      admit({
        running,
        maxRunning: 10,
        reserved: 1,
        boxes,
        busySessions: new Set(),
        turn: { box: 'a', credit: 0, owed },
      }).admitted.map(({ key }) => key);

    it('the one that owes the fewest turns gets the reserved place', () => {
      expect(next(new Map())).toEqual(['bw-b/b0']);
      expect(next(new Map([['b', 1]]))).toEqual(['bw-c/c0']);
      expect(
        next(
          new Map([
            ['b', 1],
            ['c', 1],
          ]),
        ),
      ).toEqual(['bw-b/b0']);
    });

    it('one that owes as many turns as it may waits for one', () => {
      const owed = (turns: number) =>
        new Map([
          ['b', 2 * turns],
          ['c', turns],
        ]);
      expect(next(owed(MOST_TURNS_OWED))).toEqual([]);
      expect(next(owed(MOST_TURNS_OWED), 8)).toEqual(['bw-a/a0', 'bw-b/b0']);
      expect(next(owed(MOST_TURNS_OWED - 1))).toEqual(['bw-b/b0']);
    });
  });

  it('keeps a debt that pods without a node come across', () => {
    const queue = (name: string) =>
      agent(
        'x',
        [0, 1, 2].map((i) => `${name}/x/${name}${i}@${i}`),
      );
    const boxes = [box('a', [queue('a')], { placing: PLACING_BY_WEIGHT, running: 5 }), box('b', [queue('b')])];
    const turn = { box: 'a', credit: 1, owed: new Map([['a', 3]]) };
    const result = admit({ running: 5, maxRunning: 6, reserved: 0, boxes, busySessions: new Set(), turn });
    expect(result.admitted.map(({ key }) => key)).toEqual(['bw-b/b0']);
    expect(result.turn?.owed).toEqual(new Map([['a', 2]]));
  });

  it('starts nothing behind a gate', () => {
    const queue = () => agent('x', ['a/x/r1@0']);
    expect(admitted([box('a', [queue()], { gate: 'NoCapacity' })])).toEqual([]);
    expect(admitted([box('a', [{ ...queue(), gate: 'AgentPaused' }])])).toEqual([]);
  });
});

describe('the reason of a run that waits', () => {
  const limits = { gate: undefined, running: 0, placing: 0, weight: 1, maxRunning: 20, maxRunningPerAgent: 5 };
  const idle = { gate: undefined, running: 0 };

  it.each([
    ['AgentInactive', { box: limits, agent: { ...idle, gate: 'AgentInactive' as const }, sessionBusy: true }],
    ['AgentPaused', { box: limits, agent: { ...idle, gate: 'AgentPaused' as const }, sessionBusy: false }],
    ['BoxPaused', { box: { ...limits, gate: 'BoxPaused' as const }, agent: idle, sessionBusy: true }],
    ['WorkspacePaused', { box: { ...limits, gate: 'WorkspacePaused' as const }, agent: idle, sessionBusy: false }],
    ['BoxNotReady', { box: { ...limits, gate: 'BoxNotReady' as const }, agent: idle, sessionBusy: true }],
    ['NoCapacity', { box: { ...limits, gate: 'NoCapacity' as const }, agent: idle, sessionBusy: false }],
    ['SessionBusy', { box: limits, agent: { ...idle, running: 5 }, sessionBusy: true }],
    ['AgentLimit', { box: { ...limits, running: 20 }, agent: { ...idle, running: 5 }, sessionBusy: false }],
    ['BoxLimit', { box: { ...limits, running: 20 }, agent: idle, sessionBusy: false }],
    ['NoCapacity', { box: { ...limits, running: 5, placing: PLACING_BY_WEIGHT }, agent: idle, sessionBusy: false }],
    ['InstallationLimit', { box: limits, agent: idle, sessionBusy: false }],
  ])('%s', (reason, state) => {
    expect(waitReason(state)).toBe(reason);
  });
});

test('a run is behind new pods when nothing else holds it back', () => {
  const box = {
    gate: undefined,
    running: 5,
    placing: PLACING_BY_WEIGHT,
    weight: 1,
    maxRunning: 20,
    maxRunningPerAgent: 9,
  };
  const state = { box, agent: { gate: undefined, running: 5 }, sessionBusy: false };
  expect(isBehindNewPods(state)).toBe(true);
  expect(isBehindNewPods({ ...state, sessionBusy: true })).toBe(false);
  expect(isBehindNewPods({ ...state, box: { ...box, gate: 'NoCapacity' } })).toBe(false);
  expect(isBehindNewPods({ ...state, box: { ...box, maxRunning: 5 } })).toBe(false);
  expect(isBehindNewPods({ ...state, box: { ...box, placing: 4 } })).toBe(false);
});

test.each([
  [{ running: 6, weight: 1 }, { running: 1, weight: 1 }, true],
  [{ running: 0, weight: 1 }, { running: 6, weight: 1 }, false],
  [{ running: 0, weight: 1 }, { running: 1, weight: 1 }, false],
  [{ running: 1, weight: 1 }, { running: 1, weight: 1 }, true],
  [{ running: 1, weight: 2 }, { running: 1, weight: 1 }, false],
  [{ running: 2, weight: 2 }, { running: 1, weight: 1 }, true],
])('%j goes behind %j, of which a pod waits for room: %s', (box, waiting, goes) => {
  expect(goesBehind(box, waiting)).toBe(goes);
});

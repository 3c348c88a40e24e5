import { admit, waitReason } from './limits-and-fairness.js';
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
  return { box: name, gate: undefined, running: 0, maxRunning: 20, maxRunningPerAgent: 5, weight: 1, agents, ...more };
}

function admitted(boxes: BoxQueue[], more: Partial<AdmissionInput> = {}): string[] {
  const input: AdmissionInput = {
    running: 0,
    maxRunning: 100,
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
    const result = admit({ running: 0, maxRunning: 1, boxes, busySessions: new Set(), turn });
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
      const result = admit({ running: 0, maxRunning: 1, boxes, busySessions: new Set(), turn });
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
    const result = admit({ running: 0, maxRunning: 9, boxes: [idle], busySessions: new Set(), turn: undefined });
    expect(result.turn).toEqual({ box: 'a', credit: 0 });
  });

  it('starts one run of a session at a time, and never a younger one before an older', () => {
    const boxes = [box('a', [agent('x', ['a/x/r1@0~s', 'a/x/r2@1~s', 'a/x/r3@2'])])];
    expect(admitted(boxes)).toEqual(['bw-a/r1', 'bw-a/r3']);
    expect(admitted(boxes, { busySessions: new Set(['s']) })).toEqual(['bw-a/r3']);
  });

  it('starts nothing behind a gate', () => {
    const queue = () => agent('x', ['a/x/r1@0']);
    expect(admitted([box('a', [queue()], { gate: 'NoCapacity' })])).toEqual([]);
    expect(admitted([box('a', [{ ...queue(), gate: 'AgentPaused' }])])).toEqual([]);
  });
});

describe('the reason of a run that waits', () => {
  const limits = { gate: undefined, running: 0, maxRunning: 20, maxRunningPerAgent: 5 };
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
    ['InstallationLimit', { box: limits, agent: idle, sessionBusy: false }],
  ])('%s', (reason, state) => {
    expect(waitReason(state)).toBe(reason);
  });
});

import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import type { RunStatus } from './status.js';
import { transition, type StatusEvent } from './transition.js';

const ACCEPTED = '2026-01-01T00:00:00.000Z';
const NOW = '2026-01-01T00:00:12.340Z';
const LATER = '2026-01-01T00:01:00.000Z';

const CLAIM = {
  podUid: 'u1',
  podName: 'worker-1-x',
  at: NOW,
  gatewayPod: 'g',
  gatewayUid: 'gu',
  gatewayAddress: '10.0.0.1:8443',
  epoch: 1,
};
const usageOf = (tokens: number) => ({
  steps: 1,
  inputTokens: tokens,
  outputTokens: 0,
  totalTokens: tokens,
  costUsd: '0.001000',
});
const OPEN_CALL = { inputTokens: 50, outputTokens: 50, costUsd: '0.002000' };
const CHARGED = { steps: 1, inputTokens: 150, outputTokens: 50, totalTokens: 200, costUsd: '0.003000' };
const BUDGET = { at: NOW, granted: { tokens: 1_000 } };
const TRANSCRIPT = { state: 'full' as const, chunks: 1, bytes: 10 };
const GONE = { state: 'expired' as const, chunks: 0, bytes: 0 };
const WORK = { fencingToken: 1, usage: usageOf(200), transcript: TRANSCRIPT };

function after(run: AgentRun, ...events: StatusEvent[]): AgentRun {
  return events.reduce((one, event) => {
    const status = transition(one, event);
    if (status === undefined) throw new Error(`${event.type} changes nothing`);
    return { ...one, status };
  }, run);
}

const FINISHED = {
  type: 'finished',
  by: 'gateway',
  outcome: { reason: 'Completed', message: 'ok' },
  now: NOW,
} as const;
const LOST = {
  type: 'finished',
  by: 'run controller',
  outcome: { reason: 'PodDeleted', message: 'gone' },
  now: NOW,
} as const;
const CLAIMED = {
  type: 'claimed',
  claim: CLAIM,
  facts: { provider: 'boxwright', model: 'm', budget: BUDGET },
  now: NOW,
} as const;
const QUEUED = { type: 'queued', reason: 'SessionBusy', message: 'another run works', now: NOW } as const;

const FILE = { name: 'a.txt', mediaType: 'text/plain', bytes: 1, sha256: 'f', part: 0, parts: 1 };

/** One event of each type. */
const EVENTS: { [T in StatusEvent['type']]: Extract<StatusEvent, { type: T }> } = {
  queued: { ...QUEUED, reason: 'BoxLimit' },
  admitted: { type: 'admitted', now: NOW },
  'agent-found': { type: 'agent-found', agentUid: 'a' },
  claimed: CLAIMED,
  'taken-over': { type: 'taken-over', from: 'gu', by: { gatewayPod: 'h', gatewayUid: 'hu', gatewayAddress: 'h:1' } },
  progressed: { type: 'progressed', work: WORK },
  awaited: { type: 'awaited' },
  'approval-used': { type: 'approval-used', approvals: { always: ['shell'] } },
  published: { type: 'published', fencingToken: 1, files: [FILE] },
  'budget-asked': { type: 'budget-asked', work: WORK, wanted: { tokens: 2_000 } },
  'budget-returned': { type: 'budget-returned', work: WORK, granted: { tokens: 200 } },
  'budget-granted': { type: 'budget-granted', budget: { ...BUDGET, granted: { tokens: 2_000 } } },
  cancelling: { type: 'cancelling', now: NOW },
  finished: LOST,
  'usage-closed': { type: 'usage-closed', work: WORK },
  'stored-gone': { type: 'stored-gone', transcript: GONE },
  retried: { type: 'retried', by: 'worker-2' },
  'not-archived': { type: 'not-archived', message: 'wait', now: NOW },
};

const accepted: AgentRun = {
  apiVersion: 'boxwright.dev/v1alpha1',
  kind: 'AgentRun',
  metadata: { name: 'worker-1', namespace: 'bw-a', creationTimestamp: ACCEPTED },
  spec: { agent: 'worker', message: 'hello' },
  status: { phase: 'running' },
};
const queued = after(accepted, QUEUED);
const working = after(accepted, CLAIMED, {
  type: 'progressed',
  work: { fencingToken: 1, usage: usageOf(100), openCall: OPEN_CALL },
});

const STATES = {
  accepted,
  queued,
  starting: after(queued, EVENTS.admitted),
  working,
  cancelling: after(working, EVENTS.cancelling),
  ended: after(working, LOST),
  settled: after(working, { ...FINISHED, end: { work: WORK } }),
};
type State = keyof typeof STATES;

const LIVE: State[] = ['accepted', 'queued', 'starting', 'working', 'cancelling'];
const WORKING: State[] = ['working', 'cancelling'];

/** In which states the event changes something. */
const HEARD: Record<StatusEvent['type'], State[]> = {
  queued: ['accepted', 'queued', 'starting'],
  admitted: ['queued'],
  'agent-found': LIVE,
  claimed: ['accepted', 'queued', 'starting'],
  'taken-over': WORKING,
  progressed: WORKING,
  awaited: LIVE,
  'approval-used': LIVE,
  published: WORKING,
  'budget-asked': WORKING,
  'budget-returned': WORKING,
  'budget-granted': WORKING,
  cancelling: ['working'],
  finished: LIVE,
  'usage-closed': ['ended'],
  'stored-gone': ['ended', 'settled'],
  retried: ['ended', 'settled'],
  'not-archived': ['ended', 'settled'],
};

const OUTCOME = ['phase', 'reason', 'message', 'finishedAt', 'duration', 'output', 'pending', 'claim'] as const;
const table = Object.values(EVENTS).flatMap((event) =>
  Object.entries(STATES).map(([state, run]) => [event.type, state as State, run, event] as const),
);

test.each(table)('%s in state %s', (type, state, run, event) => {
  const frozen = JSON.stringify(run);
  const next = transition(run, event);
  expect(JSON.stringify(run)).toBe(frozen);
  expect(next !== undefined).toBe(HEARD[type].includes(state));
  if (next === undefined) return;
  const isLive = LIVE.includes(state);
  expect(next.phase === 'running').toBe(isLive && type !== 'finished');
  if (isLive) return;
  const outcomeOf = (status: RunStatus | undefined) => OUTCOME.map((field) => status?.[field]);
  expect(outcomeOf(next)).toEqual(outcomeOf(run.status));
  expect(next.usage?.totalTokens).toBeGreaterThanOrEqual(run.status?.usage?.totalTokens ?? 0);
});

describe('the first outcome wins', () => {
  test.each([
    ['the gateway', FINISHED],
    ['the run controller', LOST],
    ['the gateway with its last word', { ...FINISHED, end: { work: WORK } }],
  ] as const)('over what %s says later', (_who, event) => {
    expect(transition(STATES.ended, event)).toBeUndefined();
    expect(transition(STATES.settled, event)).toBeUndefined();
  });

  test('over every event of its life', () => {
    const late = (['queued', 'admitted', 'claimed', 'taken-over', 'progressed', 'cancelling'] as const).map((type) =>
      transition(STATES.ended, EVENTS[type]),
    );
    expect(late).toEqual(late.map(() => undefined));
  });
});

describe('waiting', () => {
  test('is running, with the reason why', () => {
    expect(queued.status).toMatchObject({ phase: 'running', reason: 'SessionBusy', message: 'another run works' });
  });

  test('for the same reason is no news', () => {
    expect(transition(queued, { ...QUEUED, now: LATER })).toBeUndefined();
    expect(transition(queued, { ...QUEUED, message: 'two work', now: LATER })?.conditions).toMatchObject([
      { message: 'two work', lastTransitionTime: NOW },
    ]);
  });

  test('ends with the admission', () => {
    expect(STATES.starting.status).toMatchObject({ phase: 'running', reason: 'Starting', message: '' });
  });
});

describe('a claim', () => {
  test('makes a run work, and wait no longer', () => {
    const claimed = after(queued, { ...CLAIMED, now: LATER }).status;
    expect(claimed).toMatchObject({ phase: 'running', reason: 'Working', claim: CLAIM, model: 'm', budget: BUDGET });
    expect(claimed?.conditions).toEqual([
      { type: 'Queued', status: 'False', reason: 'Admitted', message: '', lastTransitionTime: LATER },
      { type: 'Started', status: 'True', reason: 'Claimed', message: '', lastTransitionTime: LATER },
    ]);
  });

  test('is taken over with the next fencing token, from the gateway that was seen and no other', () => {
    const taken = after(working, EVENTS['taken-over']);
    expect(taken.status?.claim).toEqual({
      ...CLAIM,
      gatewayPod: 'h',
      gatewayUid: 'hu',
      gatewayAddress: 'h:1',
      epoch: 2,
    });
    expect(taken.status?.openCall).toEqual(OPEN_CALL);
    expect(transition(taken, EVENTS['taken-over'])).toBeUndefined();
  });

  test.each(['progressed', 'budget-asked', 'budget-returned'] as const)('of a newer owner: %s is not heard', (type) => {
    expect(transition(after(working, EVENTS['taken-over']), EVENTS[type])).toBeUndefined();
  });

  test('of a newer owner: neither its end nor its last word comes from the old one', () => {
    const taken = after(working, EVENTS['taken-over']);
    expect(transition(taken, { ...FINISHED, end: { work: WORK } })).toBeUndefined();
    expect(transition(after(taken, LOST), EVENTS['usage-closed'])).toBeUndefined();
  });
});

describe('the end', () => {
  test('has its outcome, its time and its duration', () => {
    expect(STATES.ended.status).toMatchObject({
      phase: 'error',
      reason: 'PodDeleted',
      message: 'gone',
      finishedAt: NOW,
      duration: '12.3s',
    });
  });

  test('of a run that nobody claimed closes usage', () => {
    expect(after(queued, LOST).status).toMatchObject({ usageFinal: true });
    expect(after(queued, LOST).status).not.toHaveProperty('usage');
    expect(after(queued, FINISHED).status).toMatchObject({ usageFinal: true, usage: { totalTokens: 0 } });
  });

  test.each([FINISHED, LOST])('of a claimed run without the word of its owner leaves usage open', (event) => {
    const { status } = after(working, event);
    expect(status).toMatchObject({ usage: usageOf(100), openCall: OPEN_CALL });
    expect(status).not.toHaveProperty('usageFinal');
  });

  test('with the word of its owner closes usage, and says what the session waits for', () => {
    const pending = { kind: 'question' as const, text: 'Which?', callId: 'c1' };
    const { status } = after(working, { ...FINISHED, end: { work: WORK, pending } });
    expect(status).toMatchObject({ usage: usageOf(200), usageFinal: true, transcript: TRANSCRIPT, pending });
    expect(status).not.toHaveProperty('openCall');
  });

  test('keeps an output of 8 KiB, and says when it is cut', () => {
    const said = (output: string, outputTruncated?: boolean) => {
      const more = outputTruncated === undefined ? {} : { outputTruncated };
      return after(working, { ...FINISHED, outcome: { ...FINISHED.outcome, output, ...more } }).status;
    };
    expect(said('done')).toMatchObject({ output: 'done' });
    expect(said('done')).not.toHaveProperty('outputTruncated');
    expect(said('half', true)).toMatchObject({ output: 'half', outputTruncated: true });
    expect(said('é'.repeat(5_000))).toMatchObject({ output: 'é'.repeat(4_096), outputTruncated: true });
  });
});

describe('usage', () => {
  test('of a lost gateway is closed with the call that nobody counted, once', () => {
    const closed = after(STATES.ended, { type: 'usage-closed' });
    expect(closed.status).toMatchObject({ usage: CHARGED, usageFinal: true });
    expect(closed.status).not.toHaveProperty('openCall');
    expect(transition(closed, { type: 'usage-closed' })).toBeUndefined();
    expect(transition(closed, EVENTS['usage-closed'])).toBeUndefined();
  });

  test('with a call still open at the last word is charged with it', () => {
    const work = { fencingToken: 1, usage: usageOf(100), openCall: OPEN_CALL };
    const { status } = after(STATES.ended, { type: 'usage-closed', work });
    expect(status).toMatchObject({ usage: CHARGED, usageFinal: true });
    expect(status).not.toHaveProperty('openCall');
  });

  test('that was not counted yet stands in the status until it is', () => {
    const counted = after(working, EVENTS.progressed).status;
    expect(working.status?.openCall).toEqual(OPEN_CALL);
    expect(counted).toMatchObject({ usage: usageOf(200) });
    expect(counted).not.toHaveProperty('openCall');
  });
});

test('a transcript that is gone does not come back with the last word', () => {
  const { status } = after(STATES.ended, EVENTS['stored-gone'], EVENTS['usage-closed']);
  expect(status).toMatchObject({ transcript: GONE, usage: usageOf(200), usageFinal: true });
});

test('a grant is asked for, answered and given back', () => {
  const asked = after(working, EVENTS['budget-asked']).status?.budget;
  expect(asked).toEqual({ ...BUDGET, wanted: { tokens: 2_000 } });
  const answered = { ...BUDGET, granted: { tokens: 2_000 }, wanted: { tokens: 2_000 }, answered: { tokens: 2_000 } };
  const granted = after(working, { type: 'budget-granted', budget: answered });
  expect(after(granted, EVENTS['budget-asked']).status?.budget).not.toHaveProperty('answered');
  const returned = { at: NOW, granted: { tokens: 200 }, returned: 1 };
  expect(after(granted, EVENTS['budget-returned']).status?.budget).toEqual(returned);
});

test('a budget is neither asked for nor granted where none limits the run', () => {
  const unlimited = after(accepted, { ...CLAIMED, facts: {} });
  const types = ['budget-asked', 'budget-returned', 'budget-granted'] as const;
  expect(types.map((type) => transition(unlimited, EVENTS[type]))).toEqual([undefined, undefined, undefined]);
});

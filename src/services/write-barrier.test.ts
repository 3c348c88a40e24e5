import { FakeClock } from '../../test/builders/fake-clock.js';
import type { CacheChange } from '../kube/types.js';
import { barrierRoute, createWriteBarrier, peerUrls } from './write-barrier.js';
import { projectPeerPod } from '../projections/pod.js';
import type { PeerPod } from '../projections/pod.js';

/** Says of each text that it is its own seal; what counts a MAC is in barrier-seal.test.ts. */
const seal = {
  of: (text: string): string | undefined => `sealed ${text}`,
  isGenuine: (mark: string | string[] | undefined, bytes: Buffer) =>
    Promise.resolve(mark === `sealed ${String(bytes)}`),
};
const asked = (body: string, mark = `sealed ${body}`) => ({
  headers: { 'x-boxwright-seal': mark },
  body: Buffer.from(body),
  signal: new AbortController().signal,
});
const WRITE = { kind: 'AgentTrigger', resourceVersion: '41' };

/** An informer that is at a position, or gets there never. */
const at = (position: number) => ({
  get: () => undefined,
  onChange: () => () => undefined,
  waitForResourceVersion: (wanted: string, signal: AbortSignal) =>
    Number(wanted) <= position
      ? Promise.resolve(true)
      : new Promise<boolean>((resolve) => signal.addEventListener('abort', () => resolve(false))),
});

function setup(own: number, answers: Record<string, number | 'hangs' | 'refuses'>) {
  const clock = new FakeClock();
  const posted: string[] = [];
  const barrier = createWriteBarrier({
    informers: new Map([['AgentTrigger', at(own)]]),
    peers: () => Object.keys(answers),
    seal,
    post: (url, { body, headers }, signal) => {
      posted.push(`${url} ${body}`);
      expect(headers).toEqual({ 'x-boxwright-seal': `sealed ${body}` });
      const answer = answers[url.replace('/internal/v1/barrier', '')];
      if (answer === 'refuses') return Promise.reject(new Error('ECONNREFUSED'));
      if (typeof answer === 'number') return Promise.resolve(answer);
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    },
    clock,
  });
  return { clock, posted, barrier };
}

describe('the asking side', () => {
  test('passes when this pod and every other one are there, and asks each once', async () => {
    const { barrier, posted, clock } = setup(41, { 'http://a:8081': 200, 'http://b:8081': 200 });
    await expect(barrier.passed(WRITE)).resolves.toBe(true);
    expect(posted).toEqual([
      'http://a:8081/internal/v1/barrier {"kind":"AgentTrigger","resourceVersion":"41"}',
      'http://b:8081/internal/v1/barrier {"kind":"AgentTrigger","resourceVersion":"41"}',
    ]);
    expect(clock.pending).toBe(0);
  });

  test.each([
    ['a peer is not there in time', 41, { 'http://a:8081': 504 }],
    ['a peer refuses the connection', 41, { 'http://a:8081': 'refuses' }],
    ['a peer does not answer', 41, { 'http://a:8081': 'hangs' }],
    ['this pod is behind', 40, { 'http://a:8081': 200 }],
  ] as const)('does not pass when %s, and takes 2 seconds at most', async (_name, own, answers) => {
    const { barrier, clock } = setup(own, answers);
    const passed = barrier.passed(WRITE);
    await clock.advance(2_000);
    await expect(passed).resolves.toBe(false);
  });

  test('asks nobody and does not pass before it can seal a question', async () => {
    const posted: string[] = [];
    const barrier = createWriteBarrier({
      informers: new Map([['AgentTrigger', at(41)]]),
      peers: () => ['http://a:8081'],
      seal: { ...seal, of: () => undefined },
      post: (url) => Promise.resolve(posted.push(url) * 200),
      clock: new FakeClock(),
    });
    await expect(barrier.passed(WRITE)).resolves.toBe(false);
    expect(posted).toEqual([]);
  });

  test('a kind without informer is never confirmed', async () => {
    const { barrier } = setup(41, {});
    await expect(barrier.passed({ kind: 'Secret', resourceVersion: '1' })).resolves.toBe(false);
  });
});

describe('a deletion', () => {
  const trigger = (uid: string, deleting = false) => ({ uid, deleting });
  const gone = { kind: 'AgentTrigger', gone: { key: 'bw-lab/a.b', uid: 'u1' } };

  function watching(object: object | undefined) {
    const listeners = new Set<(change: CacheChange<unknown>) => void>();
    const informer = {
      ...at(0),
      get: (key: string) => (key === 'bw-lab/a.b' ? object : undefined),
      onChange: (listener: (change: CacheChange<unknown>) => void) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    };
    const clock = new FakeClock();
    const ask = () => barrierRoute(new Map([['AgentTrigger', informer]]), seal, clock)(asked(JSON.stringify(gone)));
    const change = (current?: object) => {
      for (const listener of listeners) listener({ key: 'bw-lab/a.b', ...(current === undefined ? {} : { current }) });
    };
    return { ask, change, clock, listeners };
  }

  test.each([
    ['is not there', undefined],
    ['is being deleted', trigger('u1', true)],
    ['has a successor of its name', trigger('u2')],
  ])('is confirmed at once when the object %s', async (_what, object) => {
    await expect(watching(object).ask()).resolves.toEqual({ status: 200 });
  });

  test.each([
    ['goes', undefined],
    ['begins to go', trigger('u1', true)],
  ])('is confirmed when the object %s', async (_what, next) => {
    const { ask, change, clock, listeners } = watching(trigger('u1'));
    const answer = ask();
    // The seal is looked at first.
    await clock.advance(0);
    change(trigger('u1'));
    change(next);
    await expect(answer).resolves.toEqual({ status: 200 });
    expect([clock.pending, listeners.size]).toEqual([0, 0]);
  });

  test('is not confirmed when the object stays for 2 seconds', async () => {
    const { ask, clock, listeners } = watching(trigger('u1'));
    const answer = ask();
    await clock.advance(2_000);
    await expect(answer).resolves.toEqual({ status: 504 });
    expect(listeners.size).toBe(0);
  });
});

describe('the confirming side', () => {
  const route = (position: number, clock = new FakeClock()) =>
    barrierRoute(new Map([['AgentTrigger', at(position)]]), seal, clock);

  test('200 when the watch is there', async () => {
    await expect(route(41)(asked(JSON.stringify(WRITE)))).resolves.toEqual({ status: 200 });
  });

  test('504 when it is not there within 2 seconds', async () => {
    const clock = new FakeClock();
    const answer = route(40, clock)(asked(JSON.stringify(WRITE)));
    await clock.advance(2_000);
    await expect(answer).resolves.toEqual({ status: 504 });
  });

  test('401 for whoever is no pod of ours, before anything is looked at or waited for', async () => {
    const clock = new FakeClock();
    await expect(route(40, clock)(asked(JSON.stringify(WRITE), 'forged'))).resolves.toMatchObject({ status: 401 });
    expect(clock.pending).toBe(0);
  });

  test.each([
    '',
    '{}',
    '{"kind":"Secret","resourceVersion":"1"}',
    '{"kind":"AgentTrigger","resourceVersion":"x"}',
    '{"kind":"constructor","resourceVersion":"1"}',
  ])('400 for %s', async (body) => expect(await route(41)(asked(body))).toMatchObject({ status: 400 }));
});

describe('peers', () => {
  const pod = (uid: string, more: { ip?: string; ready?: boolean; deleting?: boolean } = {}): PeerPod =>
    projectPeerPod({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: uid, uid, ...(more.deleting === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
      spec: {},
      status: {
        podIP: more.ip ?? '10.0.0.1',
        conditions: [{ type: 'Ready', status: more.ready === false ? 'False' : 'True' }],
      },
    });

  test('are the other pods that take traffic', () => {
    const pods = [
      pod('self'),
      pod('a'),
      pod('v6', { ip: 'fd00::1' }),
      pod('b', { deleting: true }),
      pod('c', { ready: false }),
    ];
    expect(peerUrls({ values: () => pods.values() }, 'self')).toEqual([
      'http://10.0.0.1:8081',
      'http://[fd00::1]:8081',
    ]);
  });
});

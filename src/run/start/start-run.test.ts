import { gunzipSync } from 'node:zlib';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { RecordingApi, apiError } from '../../../test/builders/recording-api.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { KubeConnectionError } from '../../kube/errors.js';
import type { CreateEnd, ReserveRun } from './own-runs.js';
import { StartRunError, findStartedRun, startRun } from './start-run.js';
import type { StartRunRequest } from './start-run.js';

const REQUEST: StartRunRequest = {
  agent: { box: 'box', agent: 'greeter' },
  agentUid: 'uid-agent',
  message: 'hello',
  trigger: { origin: 'trigger', name: 'hook', uid: 'uid-trigger' },
  sessionTitle: 'trigger: hook',
  actor: 'trigger',
};
const cut = (afterWrite = false) => ({
  verb: 'create' as const,
  error: new KubeConnectionError('connection reset', 'network'),
  afterWrite,
});

function setup(last?: string) {
  const clock = new FakeClock(Date.parse('2026-05-01T10:00:00.000Z'));
  const api = new RecordingApi({ clock });
  const timeout = new AbortController();
  clock.after(15_000, () => timeout.abort());
  const start = (request: Partial<StartRunRequest> = {}) =>
    startRun({ api, clock, lastOfSession: () => last }, { ...REQUEST, ...request }, timeout.signal);
  return { clock, api, start };
}

/** Lets a start go on while the fake clock moves. */
async function settle<T>(clock: FakeClock, started: Promise<T>, ms: number): Promise<T | Error> {
  const outcome = started.catch((error: Error) => error);
  await clock.advance(ms);
  return outcome;
}

describe('startRun', () => {
  test('is one create of a complete object and no read', async () => {
    const { api, start } = setup();
    const started = await start();
    expect(api.reads).toEqual([]);
    expect(api.writes).toEqual([
      {
        verb: 'create',
        resource: 'agentruns',
        key: `bw-box/${started.runId}`,
        body: {
          apiVersion: 'boxwright.dev/v1alpha1',
          kind: 'AgentRun',
          metadata: {
            namespace: 'bw-box',
            name: started.runId,
            labels: { 'boxwright.dev/agent': 'greeter' },
            annotations: { 'boxwright.dev/requested-by': 'trigger' },
            finalizers: ['boxwright.dev/fold'],
          },
          spec: {
            agent: 'greeter',
            agentUid: 'uid-agent',
            message: 'hello',
            trigger: { origin: 'trigger', name: 'hook', uid: 'uid-trigger' },
            sessionTitle: 'trigger: hook',
            createdAt: '2026-05-01T10:00:00.000Z',
            actor: 'trigger',
          },
        },
      },
    ]);
    expect(started.runId).toMatch(/^greeter-[0-9a-hjkmnp-tv-z]{26}$/);
    expect(started.sessionId).toBe(`s-${started.runId}`);
    expect(started.resourceVersion).toMatch(/^\d+$/);
    expect(started.existed).toBe(false);
  });

  test.each([
    ['an older run', '2026-05-01T09:00:00.000Z', '2026-05-01T10:00:00.000Z'],
    ['a run of the same millisecond', '2026-05-01T10:00:00.000Z', '2026-05-01T10:00:00.001Z'],
    ['a run from a clock that is ahead', '2026-05-01T10:00:07.000Z', '2026-05-01T10:00:07.001Z'],
  ])('in a session it comes after %s', async (_name, last, createdAt) => {
    const { api, start } = setup(last);
    const { sessionId } = await start({ sessionId: 's-first' });
    expect(sessionId).toBe('s-first');
    expect(api.all(AgentRuns)[0]?.spec).toMatchObject({ sessionId: 's-first', createdAt });
  });

  test.each([
    [4096, true],
    [4097, false],
  ])('a message of %i bytes stands inline: %s', async (bytes, inline) => {
    const { api, start } = setup();
    const message = 'é'.repeat(bytes / 2) + 'a'.repeat(bytes % 2);
    await start({ message });
    const spec = api.all(AgentRuns)[0]?.spec;
    expect(spec?.message).toBe(inline ? message : undefined);
    if (inline) return;
    expect(spec?.input).toMatchObject({ encoding: 'gzip', bytes, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(gunzipSync(Buffer.from(spec?.input?.data ?? '', 'base64')).toString()).toBe(message);
  });

  test('a message above 128 KiB is refused without a call', async () => {
    const { api, start } = setup();
    await expect(start({ message: 'a'.repeat(131_073) })).rejects.toMatchObject({ kind: 'too-large' });
    expect(api.writes).toEqual([]);
  });

  test('a long title is cut to what the resource holds, at a character', async () => {
    const { api, start } = setup();
    await start({ sessionTitle: ` a\n\nb ${'😀'.repeat(200)}` });
    const title = api.all(AgentRuns)[0]?.spec.sessionTitle ?? '';
    expect(Array.from(title)).toHaveLength(128);
    expect(title.startsWith('a b 😀')).toBe(true);
    expect(title.endsWith('😀…')).toBe(true);
  });

  test.each([
    ['a cut connection', cut().error],
    ['429', apiError(429, 'TooManyRequests')],
    ['500', apiError(500, 'InternalError')],
    ['504', apiError(504, 'Timeout')],
  ])('%s is tried again with the same name', async (_name, error) => {
    const { api, clock, start } = setup();
    api.failNext({ verb: 'create', error, times: 2 });
    const outcome = await settle(clock, start(), 1_000);
    expect(outcome).not.toBeInstanceOf(Error);
    expect(api.writes).toHaveLength(3);
    expect(new Set(api.writes.map(({ key }) => key)).size).toBe(1);
    expect(api.all(AgentRuns)).toHaveLength(1);
  });

  test('a create whose answer was lost is found by its own name: one run, one read', async () => {
    const { api, clock, start } = setup();
    api.failNext(cut(true));
    const outcome = await settle(clock, start(), 1_000);
    expect(outcome).toMatchObject({ runId: api.all(AgentRuns)[0]?.metadata.name, existed: false });
    expect(api.all(AgentRuns)).toHaveLength(1);
    expect(api.reads).toHaveLength(1);
  });

  test('a start of a name that an earlier start has used says so; a lost answer of its own create does not', async () => {
    const { api, clock, start } = setup();
    const name = 'greeter-00000000000000000000000000';
    api.failNext(cut(true));
    expect(await settle(clock, start({ name }), 1_000)).toMatchObject({ runId: name, existed: false });
    expect(await settle(clock, start({ name }), 1_000)).toMatchObject({ runId: name, existed: true });
    expect(api.all(AgentRuns)).toHaveLength(1);
  });

  test('a foreign run of that name is not taken for ours', async () => {
    const { api, clock, start } = setup();
    const create = api.create.bind(api);
    api.create = (type, object, options) => {
      api.seed(type, { ...object, spec: { agent: 'greeter', message: 'hello', agentUid: 'other' } });
      return create(type, object, options);
    };
    expect(await settle(clock, start(), 1_000)).toMatchObject({ kind: 'unconfirmed' });
  });

  test.each([403, 404, 422])('an answer %i refuses the run at once', async (status) => {
    const { api, start } = setup();
    api.failNext({ verb: 'create', error: apiError(status, 'No') });
    await expect(start()).rejects.toMatchObject({ kind: 'refused' });
    expect(api.writes).toHaveLength(1);
    expect(api.reads).toEqual([]);
  });

  test('without an answer in the time of the caller the name is read once: present is success', async () => {
    const { api, clock, start } = setup();
    api.failNext({ ...cut(), times: 1000 });
    const started = start();
    await clock.advance(14_999);
    const [attempt] = api.writes;
    api.seed(AgentRuns, attempt?.body as never);
    const outcome = await settle(clock, started, 2_000);
    expect(outcome).toMatchObject({ runId: api.all(AgentRuns)[0]?.metadata.name });
    expect(api.reads).toHaveLength(1);
  });

  test('without an answer and without the run it is unconfirmed, after 15 seconds', async () => {
    const { api, clock, start } = setup();
    api.failNext({ ...cut(), times: 1000 });
    const outcome = await settle(clock, start(), 17_100);
    expect(outcome).toBeInstanceOf(StartRunError);
    expect(outcome).toMatchObject({ kind: 'unconfirmed' });
    expect(api.all(AgentRuns)).toEqual([]);
  });

  test('an attempt that hangs is given up after 5 seconds and tried again', async () => {
    const { api, clock, start } = setup();
    const create = api.create.bind(api);
    let attempts = 0;
    api.create = (type, object, options) => {
      attempts += 1;
      if (attempts > 1) return create(type, object, options);
      return new Promise((_resolve, reject) => {
        options?.signal?.addEventListener('abort', () => reject(new KubeConnectionError('aborted', 'aborted')));
      });
    };
    const started = start();
    await clock.advance(4_999);
    expect(attempts).toBe(1);
    expect(await settle(clock, started, 1_000)).not.toBeInstanceOf(Error);
    expect(attempts).toBe(2);
  });
});

describe('the place in the backlog budget', () => {
  function setupPlaces() {
    const clock = new FakeClock(Date.parse('2026-05-01T10:00:00.000Z'));
    const api = new RecordingApi({ clock });
    const places: object[] = [];
    const ends: CreateEnd[] = [];
    const timeout = new AbortController();
    clock.after(15_000, () => timeout.abort());
    const start = (request: Partial<StartRunRequest> = {}) => {
      const reserve: ReserveRun = (place) => {
        expect(api.writes).toEqual([]);
        places.push(place);
        return { settle: (end) => ends.push(end) };
      };
      const deps = { api, clock, lastOfSession: () => undefined, reserve };
      return settle(clock, startRun(deps, { ...REQUEST, ...request }, timeout.signal), 17_100);
    };
    return { api, start, places, ends };
  }

  test('is taken before the create, with the bytes that are stored', async () => {
    const { api, start, places, ends } = setupPlaces();
    await start({ message: 'a'.repeat(100_000) });
    const [created] = api.all(AgentRuns);
    const inputBytes = created?.spec.input?.data?.length;
    expect(places).toEqual([
      { box: 'box', agent: 'greeter', namespace: 'bw-box', name: created?.metadata.name, inputBytes },
    ]);
    expect(ends).toEqual(['stored']);
  });

  test.each<[string, { error: Error; afterWrite?: boolean; times?: number }[], CreateEnd]>([
    ['a lost answer of a stored run', [cut(true)], 'stored'],
    ['a refusal', [{ error: apiError(403, 'Forbidden') }], 'absent'],
    ['a refusal after an attempt without an answer', [cut(), { error: apiError(403, 'Forbidden') }], 'unclear'],
    ['an API server that is too busy all the time', [{ error: apiError(429, 'Busy'), times: 1000 }], 'absent'],
    ['no answer at all', [{ ...cut(), times: 1000 }], 'unclear'],
    ['errors of the API server all the time', [{ error: apiError(500, 'No'), times: 1000 }], 'unclear'],
  ])('after %s', async (_name, failures, end) => {
    const { api, start, ends } = setupPlaces();
    for (const failure of failures) api.failNext({ verb: 'create', ...failure });
    await start();
    expect(ends).toEqual([end]);
  });

  test('is not taken by a message that is too large', async () => {
    const { start, places } = setupPlaces();
    await start({ message: 'a'.repeat(131_073) });
    expect(places).toEqual([]);
  });

  test('is given back when the name is that of another run', async () => {
    const { api, start, ends } = setupPlaces();
    const name = 'greeter-00000000000000000000000000';
    api.seed(AgentRuns, {
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'AgentRun',
      metadata: { namespace: 'bw-box', name },
      spec: { agent: 'greeter', message: 'hello', trigger: { origin: 'trigger', name: 'hook', uid: 'uid-other' } },
    });
    await start({ name });
    expect(ends).toEqual(['absent']);
  });
});

describe('findStartedRun', () => {
  const name = 'greeter-00000000000000000000000000';

  test('finds the run of an earlier start with one read', async () => {
    const { api, clock, start } = setup();
    await start({ name });
    api.clearRecords();
    expect(await findStartedRun({ api, clock }, { ...REQUEST, name })).toMatchObject({ runId: name, existed: true });
    expect([api.reads.length, api.writes.length]).toEqual([1, 0]);
  });

  test('finds nothing where no run is, and no run of another trigger', async () => {
    const { api, clock, start } = setup();
    expect(await findStartedRun({ api, clock }, { ...REQUEST, name })).toBeUndefined();
    await start({ name });
    const trigger = { ...REQUEST.trigger, uid: 'uid-other' };
    expect(await findStartedRun({ api, clock }, { ...REQUEST, name, trigger })).toBeUndefined();
  });

  test('does not wait longer than 2 seconds for an answer', async () => {
    const { api, clock } = setup();
    api.get = (_type, _ref, options) =>
      new Promise((_resolve, reject) => {
        options?.signal?.addEventListener('abort', () => reject(new KubeConnectionError('aborted', 'aborted')));
      });
    expect(await settle(clock, findStartedRun({ api, clock }, { ...REQUEST, name }) as Promise<unknown>, 2_000)).toBe(
      undefined,
    );
  });
});

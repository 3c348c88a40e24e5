import type { KubeObject } from '../api/meta.js';
import { CONTINUE, continueAndRequeueAfter, DONE, requeueAfter, runSteps, sameStatus } from './steps.js';
import type { Step } from './steps.js';

interface Thing extends KubeObject {
  status?: { phase?: string; conditions?: { type: string; status: string; lastTransitionTime: string }[] };
}

const thing: Thing = {
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: 'a', resourceVersion: '7' },
  status: { phase: 'Old', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }] },
};

async function run(steps: Step<Thing, { n: number }>['run'][], writeStatus?: () => Promise<unknown>) {
  const written: Thing[] = [];
  const ran: string[] = [];
  const outcome = runSteps<Thing, { n: number }>({
    object: thing,
    inputs: { n: 1 },
    steps: steps.map((step, index) => ({
      name: `step ${index}`,
      run: (draft, inputs, signal) => {
        ran.push(`step ${index}`);
        return step(draft, inputs, signal);
      },
    })),
    writeStatus: (object) => {
      written.push(structuredClone(object));
      return writeStatus?.() ?? Promise.resolve();
    },
    signal: new AbortController().signal,
  });
  const result = await outcome.catch((error: unknown) => error);
  return { result, written, ran };
}

test('steps run in order until one is done; what they set is written once, with the version that was read', async () => {
  const { result, written, ran } = await run([
    (draft) => {
      draft.status = { ...draft.status, phase: 'New' };
      return CONTINUE;
    },
    () => DONE,
    () => CONTINUE,
  ]);

  expect(result).toEqual({});
  expect(ran).toEqual(['step 0', 'step 1']);
  expect(written).toHaveLength(1);
  expect(written[0]).toMatchObject({ metadata: { resourceVersion: '7' }, status: { phase: 'New' } });
  expect(thing.status?.phase).toBe('Old');
});

test.each([
  ['nothing was set', () => CONTINUE],
  [
    'the same values were set',
    (draft: Thing) => {
      draft.status = structuredClone(thing.status as NonNullable<Thing['status']>);
      return CONTINUE;
    },
  ],
  [
    'only a transition time moved',
    (draft: Thing) => {
      draft.status = {
        phase: 'Old',
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-02-02T00:00:00Z' }],
      };
      return CONTINUE;
    },
  ],
])('there is no write when %s', async (_name, step) => {
  const { written } = await run([step]);

  expect(written).toEqual([]);
});

test('the earliest wish for another look counts; requeueAfter also stops', async () => {
  const { result, ran } = await run([
    () => continueAndRequeueAfter(500),
    () => continueAndRequeueAfter(900),
    () => requeueAfter(700),
    () => CONTINUE,
  ]);

  expect(result).toEqual({ requeueAfterMs: 500 });
  expect(ran).toHaveLength(3);
});

test('a step that throws ends the run with its error, after the status so far was written', async () => {
  const failure = new Error('no');
  const { result, written, ran } = await run([
    (draft) => {
      draft.status = { phase: 'Failing' };
      throw failure;
    },
    () => CONTINUE,
  ]);

  expect(result).toBe(failure);
  expect(result).toHaveProperty('step', 'step 0');
  expect(written.map((object) => object.status)).toEqual([{ phase: 'Failing' }]);
  expect(ran).toEqual(['step 0']);
});

test('the error of the step wins over the error of the write that follows it', async () => {
  const failure = new Error('no');
  const { result } = await run(
    [
      (draft) => {
        draft.status = { phase: 'Failing' };
        throw failure;
      },
    ],
    () => Promise.reject(new Error('conflict')),
  );

  expect(result).toBe(failure);
});

test('a failed status write is thrown', async () => {
  const { result } = await run(
    [
      (draft) => {
        draft.status = { phase: 'New' };
        return DONE;
      },
    ],
    () => Promise.reject(new Error('conflict')),
  );

  expect(result).toEqual(new Error('conflict'));
});

test('an aborted run starts no step', async () => {
  const ran: string[] = [];
  const running = runSteps<Thing, undefined>({
    object: thing,
    inputs: undefined,
    steps: [
      {
        name: 'a',
        run: () => {
          ran.push('a');
          return CONTINUE;
        },
      },
    ],
    writeStatus: () => Promise.resolve(),
    signal: AbortSignal.abort(new Error('stopped')),
  });

  await expect(running).rejects.toThrow('stopped');
  expect(ran).toEqual([]);
});

test.each([
  [{ a: undefined, b: 1 }, { b: 1 }, true],
  [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
  [{ a: [1, 2] }, { a: [2, 1] }, false],
  [{ a: null }, {}, false],
  [undefined, {}, false],
])('sameStatus(%j, %j) is %s', (a, b, expected) => {
  expect(sameStatus(a, b)).toBe(expected);
});

import { retryOf, type Retryable } from './retry.js';

const ENDED = '2026-01-01T00:01:00.000Z';
const NOW = Date.parse(ENDED);
const CLAIM = {} as NonNullable<NonNullable<Retryable['status']>['claim']>;

function ended(status: Partial<NonNullable<Retryable['status']>>, spec: Partial<Retryable['spec']> = {}): Retryable {
  return {
    metadata: { name: 'ada-1', namespace: 'bw-dev', uid: 'uid-1' },
    spec: { agent: 'ada', ...spec },
    status: { phase: 'error', finishedAt: ENDED, usageFinal: true, ...status },
  };
}

const atRest = (reason: string) => ended({ reason, claim: CLAIM, atRest: true });

test.each([
  ['a model that fails', atRest('ModelError')],
  ['a drained node, between two steps', atRest('Evicted')],
  ['a pod that is told to stop, between two steps', atRest('Interrupted')],
  ['an image that cannot be pulled', ended({ reason: 'ImagePullFailed' })],
  ['a node that is lost before the claim', ended({ reason: 'NodeLost' })],
])('a run is taken further after %s', (_what, run) => {
  expect(retryOf(run, 1, NOW)).toMatchObject({ attempt: 1, at: NOW + 30_000 });
});

test.each([
  ['a call of a tool was under way', ended({ reason: 'Evicted', claim: CLAIM })],
  ['its pod was lost without a word', ended({ reason: 'NodeLost', claim: CLAIM })],
  ['it was cancelled', ended({ phase: 'cancelled', reason: 'Cancelled' })],
  ['somebody asked for its end', ended({ reason: 'ImagePullFailed' }, { cancelRequested: true })],
  ['it took too long', atRest('DeadlineExceeded')],
  ['its budget is used up', atRest('BudgetExhausted')],
  ['the model refused', atRest('ModelRefused')],
  ['nothing stands behind its provider', atRest('ModelNotConfigured')],
  ['somebody deleted its Job', ended({ reason: 'JobDeleted' })],
  ['it is done', ended({ phase: 'done', reason: 'Completed', claim: CLAIM, atRest: true })],
  ['it was retried already', ended({ reason: 'NodeLost', retriedBy: 'ada-2' })],
  ['what it used is not known yet', ended({ reason: 'NodeLost', usageFinal: false })],
  ['another run waits for it', ended({ reason: 'NodeLost' }, { parent: {} as never })],
  ['it is the case of an eval', ended({ reason: 'NodeLost' }, { trigger: { origin: 'eval' } })],
  ['it is a message for a run at work', ended({ reason: 'NodeLost' }, { steer: true })],
])('a run is not taken further when %s', (_why, run) => {
  expect(retryOf(run, 5, NOW)).toBeUndefined();
});

test('attempts end with spec.retries, and wait twice as long each', () => {
  const after = (attempt: number) =>
    ended({ reason: 'NodeLost' }, { retryOf: { name: 'ada-0', uid: 'uid-0', attempt } });
  expect(retryOf(after(1), 3, NOW)).toMatchObject({ attempt: 2, at: NOW + 60_000 });
  expect(retryOf(after(2), 3, NOW)).toMatchObject({ attempt: 3, at: NOW + 120_000 });
  expect(retryOf(after(3), 3, NOW)).toBeUndefined();
  expect(retryOf(ended({ reason: 'NodeLost' }), 0, NOW)).toBeUndefined();
});

test('an error of long ago is history', () => {
  const run = ended({ reason: 'NodeLost' });
  expect(retryOf(run, 1, NOW + 3_629_999)).toBeDefined();
  expect(retryOf(run, 1, NOW + 3_630_000)).toBeUndefined();
  expect(retryOf(ended({ reason: 'NodeLost', finishedAt: undefined }), 1, NOW)).toBeUndefined();
});

test('the name is a run name, the same for everybody, and another one for each run', () => {
  const name = (uid: string) => {
    const run = ended({ reason: 'NodeLost' });
    return retryOf({ ...run, metadata: { ...run.metadata, uid } }, 1, NOW)?.name;
  };
  expect(name('uid-1')).toMatch(/^ada-[0-9a-z]{26}$/);
  expect(name('uid-1')).toBe(name('uid-1'));
  expect(name('uid-1')).not.toBe(name('uid-2'));
});

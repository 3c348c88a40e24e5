import { PositionWaiters } from './position-waiters.js';

const never = new AbortController().signal;

test.each([
  ['the same version', '100', true],
  ['an older version with fewer digits', '99', true],
  ['a newer version', '101', false],
  ['no version', 'abc', false],
])('at position 100, waiting for %s gives at once or at the signal: %s -> %s', async (_name, version, expected) => {
  const waiters = new PositionWaiters();
  waiters.moved('100');

  expect(await waiters.wait(version, AbortSignal.abort())).toBe(expected);
});

test('waiters are released in the order of their versions, beyond 2^53 too', async () => {
  const waiters = new PositionWaiters();
  const released: string[] = [];
  for (const version of ['9007199254740993', '9007199254740992', '10']) {
    void waiters.wait(version, never).then((reached) => released.push(`${version} ${reached}`));
  }

  waiters.moved('9007199254740992');
  await Promise.resolve();
  const first = [...released];
  waiters.moved('9007199254740993');
  await Promise.resolve();

  expect(first.sort()).toEqual(['10 true', '9007199254740992 true']);
  expect(released).toContain('9007199254740993 true');
});

test('the signal and the end of the informer release with false', async () => {
  const waiters = new PositionWaiters();
  const given = new AbortController();
  const byCaller = waiters.wait('5', given.signal);
  const byClose = waiters.wait('5', never);

  given.abort();
  waiters.close();

  expect(await byCaller).toBe(false);
  expect(await byClose).toBe(false);
  expect(await waiters.wait('5', never)).toBe(false);
});

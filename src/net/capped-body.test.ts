import { Readable } from 'node:stream';
import { BODY_BASE_BYTES, BodyBudget } from './body-budget.js';
import { readAnswer, readCappedBody, readText, type BodyLimits } from './capped-body.js';

/** A body that goes on when it is told to. */
function open(): Readable {
  return new Readable({ read: () => undefined });
}

function bodyOf(...pieces: string[]): Readable {
  return Readable.from(pieces.map((piece) => Buffer.from(piece)));
}

test.each<[string, string[], BodyLimits, object]>([
  ['all of it', ['ab', 'c'], { maxBytes: 3 }, { state: 'complete', body: Buffer.from('abc'), drained: true }],
  ['nothing', [], { maxBytes: 0 }, { state: 'complete', body: Buffer.alloc(0), drained: true }],
  ['a byte too much', ['ab', 'c', 'd'], { maxBytes: 2 }, { state: 'too_large', drained: false }],
  [
    'too much, read to its end',
    ['ab', 'c', 'd'],
    { maxBytes: 2, maxReadBytes: 4 },
    { state: 'too_large', drained: true },
  ],
  ['too much to read', ['ab', 'c', 'd', 'e'], { maxBytes: 2, maxReadBytes: 3 }, { state: 'too_large', drained: false }],
  ['what nobody keeps', ['ab'], { maxBytes: 2, keep: false }, { state: 'complete', body: Buffer.alloc(0) }],
  ['too much of what nobody keeps', ['abc'], { maxBytes: 2, keep: false }, { state: 'too_large' }],
])('%s', async (_name, pieces, limits, expected) => {
  expect(await readCappedBody(bodyOf(...pieces), limits)).toMatchObject(expected);
});

test('a body that is too large is read no further, and its stream stays open', async () => {
  const body = open();
  const read = readCappedBody(body, { maxBytes: 1 });
  body.push('ab');
  expect(await read).toMatchObject({ state: 'too_large', drained: false });
  expect([body.destroyed, body.isPaused(), body.listenerCount('data')]).toEqual([false, true, 0]);
});

test('a body that has to make room is given up, and counts no more', async () => {
  const all = new BodyBudget(4 * 65_536);
  const first = open();
  const second = open();
  const budget = { all, address: 'a' };
  const slow = readCappedBody(first, { maxBytes: 200_000, budget });
  const quick = readCappedBody(second, { maxBytes: 200_000, budget });
  first.push(Buffer.alloc(100_000));
  await new Promise(setImmediate);
  second.push(Buffer.alloc(150_000));
  expect(await slow).toMatchObject({ state: 'stalled', drained: false });
  second.push(null);
  expect((await quick).body).toHaveLength(150_000);
  expect(all.bytes).toBe(0);
  const refused = readCappedBody(open(), { maxBytes: 9, budget: { all: new BodyBudget(1), address: 'a' } });
  expect(await refused).toMatchObject({ state: 'stalled' });
});

test('a body in single bytes is held in one buffer, no larger than the limit', async () => {
  const all = new BodyBudget(1_000_000);
  const body = open();
  const read = readCappedBody(body, { maxBytes: 1000, budget: { all, address: 'a' } });
  for (let n = 0; n < 600; n++) body.push(Buffer.from('x'));
  await new Promise(setImmediate);
  expect(all.bytes).toBe(BODY_BASE_BYTES + 1000);
  body.push(null);
  expect((await read).body.toString()).toBe('x'.repeat(600));
});

test('a body that breaks off says why', async () => {
  const body = open();
  const read = readCappedBody(body, { maxBytes: 9 });
  body.push('ab');
  const error = new Error('reset');
  body.destroy(error);
  expect(await read).toMatchObject({ state: 'aborted', body: Buffer.alloc(0), drained: false, error });
  expect(await readCappedBody(body, { maxBytes: 9 })).toMatchObject({ state: 'aborted', error });
});

test.each([
  ['little', 'ab', 'stalled'],
  ['too much', 'abcd', 'too_large'],
])('a body that is given up after %s came', async (_name, text, state) => {
  const body = open();
  const giveUp = new AbortController();
  const read = readCappedBody(body, { maxBytes: 3, maxReadBytes: 9, giveUp: giveUp.signal });
  body.push(text);
  await new Promise(setImmediate);
  giveUp.abort();
  expect(await read).toMatchObject({ state, body: Buffer.alloc(0), drained: false });
});

describe('an answer', () => {
  test('is read whole', async () => {
    expect(await readText(bodyOf('gr', 'ün'), 5)).toBe('grün');
  });

  test('that is too large is cut', async () => {
    const answer = open();
    const read = readAnswer(answer, 1);
    answer.push('ab');
    expect([await read, answer.destroyed]).toEqual([undefined, true]);
  });

  test('that breaks off rejects with the reason', async () => {
    const answer = open();
    const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    answer.destroy(reset);
    await expect(readAnswer(answer, 9)).rejects.toBe(reset);
    const silent = open();
    silent.destroy();
    await expect(readAnswer(silent, 9)).rejects.toMatchObject({ code: 'ERR_STREAM_PREMATURE_CLOSE' });
  });
});

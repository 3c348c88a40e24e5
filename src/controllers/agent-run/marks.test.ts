import { FakeClock } from '../../../test/builders/fake-clock.js';
import { Marks } from './marks.js';

const RUN = { key: 'bw-dev/ada-1', uid: 'uid-1' };

/** Marks of which one has stood for a second. */
async function setUp() {
  const clock = new FakeClock();
  const marks = new Marks(clock);
  expect(marks.elapsed(RUN, 'ended', true)).toBe(0);
  await clock.advance(1000);
  return marks;
}

describe('a mark', () => {
  it('stands as long as it holds, each by itself', async () => {
    const marks = await setUp();
    expect(marks.elapsed(RUN, 'ended', true)).toBe(1000);
    expect(marks.elapsed(RUN, 'node-gone', true)).toBe(0);
    expect(marks.elapsed(RUN, 'ended', false)).toBe(0);
    expect(marks.elapsed(RUN, 'ended', true)).toBe(0);
  });

  it('is not taken over by another run of the same name', async () => {
    const marks = await setUp();
    expect(marks.elapsed({ ...RUN, uid: 'uid-2' }, 'ended', true)).toBe(0);
  });

  it('is forgotten by the key of its run', async () => {
    const marks = await setUp();
    marks.forget(RUN.key);
    expect(marks.elapsed(RUN, 'ended', true)).toBe(0);
  });
});

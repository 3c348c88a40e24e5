import { FakeClock } from '../../test/builders/fake-clock.js';
import { TokenBucket } from './token-bucket.js';

test('gives its burst at once, then one token for each interval, and never more than the burst', async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, { burst: 3, perSecond: 0.5 });
  const taken = () => Array.from({ length: 5 }, () => bucket.take()).filter(Boolean).length;
  expect([bucket.waitMs(), taken(), bucket.waitMs()]).toEqual([0, 3, 2_000]);
  await clock.advance(1_500);
  expect([taken(), bucket.waitMs()]).toEqual([0, 500]);
  await clock.advance(500);
  expect(taken()).toBe(1);
  await clock.advance(3_600_000);
  expect(taken()).toBe(3);
});

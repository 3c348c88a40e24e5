import { FakeClock } from '../../test/builders/fake-clock.js';
import { RecentMap } from './recent-map.js';

test('forgets what was not used for its time', async () => {
  const clock = new FakeClock();
  const map = new RecentMap<number>({ clock, keepMs: 1_000, maxSize: 10 });
  map.set('used', 1);
  map.set('unused', 2);
  await clock.advance(900);
  expect(map.get('used')).toBe(1);
  await clock.advance(900);
  expect([map.get('used'), map.get('unused')]).toEqual([1, undefined]);
});

test('beyond its size forgets what was not used for longest', () => {
  const map = new RecentMap<number>({ clock: new FakeClock(), keepMs: 1_000, maxSize: 2 });
  map.set('a', 1);
  map.set('b', 2);
  map.get('a');
  map.set('c', 3);
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([1, undefined, 3]);
});

import { ObjectCache } from './cache.js';
import type { CacheChange } from './types.js';

interface Thing {
  owner: string;
  tags: string[];
}

function newCache(onListenerError?: (error: unknown) => void) {
  const changes: CacheChange<Thing>[] = [];
  const cache = new ObjectCache<Thing>({
    indexes: { byOwner: (thing) => [thing.owner], byTag: (thing) => thing.tags },
    ...(onListenerError === undefined ? {} : { onListenerError }),
  });
  cache.onChange((change) => changes.push(change));
  return { cache, changes };
}

const a = { owner: 'x', tags: ['red', 'blue'] };
const b = { owner: 'x', tags: [] };

test('objects are found by key and by every value of every index', () => {
  const { cache } = newCache();

  cache.set('ns/a', a, '1');
  cache.set('ns/b', b, '2');

  expect(cache.get('ns/a')).toBe(a);
  expect(cache.size).toBe(2);
  expect([...cache.values()]).toEqual([a, b]);
  expect(cache.byIndex('byOwner', 'x')).toEqual([a, b]);
  expect(cache.byIndex('byTag', 'blue')).toEqual([a]);
  expect(cache.byIndex('byTag', 'green')).toEqual([]);
  expect(() => cache.byIndex('byColour', 'red')).toThrow('there is no index byColour');
});

test('every change is counted, and nothing else', () => {
  const { cache } = newCache();
  expect(cache.changes).toBe(0);
  cache.set('ns/a', a, '1');
  cache.set('ns/a', b, '2');
  expect(cache.changes).toBe(2);
  cache.delete('ns/a');
  cache.delete('ns/a');
  expect(cache.changes).toBe(3);
  cache.replaceAll(new Map([['ns/b', { value: b, version: '3' }]]));
  expect(cache.changes).toBe(4);
  cache.replaceAll(new Map([['ns/b', { value: b, version: '3' }]]));
  cache.replay();
  expect(cache.changes).toBe(4);
});

test('a changed object leaves the index values that it no longer has', () => {
  const { cache } = newCache();
  cache.set('ns/a', a, '1');

  cache.set('ns/a', { owner: 'y', tags: ['red'] }, '2');

  expect(cache.byIndex('byOwner', 'x')).toEqual([]);
  expect(cache.byIndex('byTag', 'blue')).toEqual([]);
  expect(cache.byIndex('byOwner', 'y')).toHaveLength(1);
  expect(cache.byIndex('byTag', 'red')).toHaveLength(1);
});

test('listeners get the previous and the current object', () => {
  const { cache, changes } = newCache();

  cache.set('a', a, '1');
  cache.set('a', b, '2');
  cache.delete('a');
  cache.delete('a');

  expect(changes).toEqual([
    { key: 'a', current: a },
    { key: 'a', previous: a, current: b },
    { key: 'a', previous: b },
  ]);
  expect(cache.byIndex('byOwner', 'x')).toEqual([]);
});

test('a full list deletes what is missing, changes what is new, and is silent about the rest', () => {
  const { cache, changes } = newCache();
  cache.set('stays', a, '1');
  cache.set('changes', a, '2');
  cache.set('goes', a, '3');
  changes.length = 0;

  cache.replaceAll(
    new Map([
      ['stays', { value: { ...a }, version: '1' }],
      ['changes', { value: b, version: '9' }],
      ['comes', { value: b, version: '10' }],
    ]),
  );

  expect(changes).toEqual([
    { key: 'goes', previous: a },
    { key: 'changes', previous: a, current: b },
    { key: 'comes', current: b },
  ]);
  expect(cache.get('stays')).toBe(a);
});

test('a listener that throws harms neither the store nor the other listeners', () => {
  const errors: unknown[] = [];
  const seen: string[] = [];
  const cache = new ObjectCache<Thing>({ onListenerError: (error) => errors.push(error) });
  const failure = new Error('listener');
  cache.onChange(() => {
    throw failure;
  });
  cache.onChange((change) => seen.push(change.key));

  cache.set('a', a, '1');

  expect(errors).toEqual([failure]);
  expect(seen).toEqual(['a']);
  expect(cache.get('a')).toBe(a);
});

test('the resync tells every object as unchanged, and an unsubscribed listener nothing', () => {
  const { cache, changes } = newCache();
  const silent = jestNever();
  cache.onChange(silent)();
  cache.set('a', a, '1');
  changes.length = 0;

  cache.replay();

  expect(changes).toEqual([{ key: 'a', previous: a, current: a }]);
});

function jestNever(): () => void {
  return () => {
    throw new Error('must not be called');
  };
}

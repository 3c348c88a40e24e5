import { ObjectCache } from '../kube/cache.js';
import type { ApiCaches } from './caches.js';
import { MAX_MEMOIZED_LISTS, memoizedLists, memoizedRecords } from './memoized-lists.js';

describe('memoizedRecords', () => {
  const recordOf = memoizedRecords((projection: { name: string }, status: string) => ({
    name: projection.name,
    status,
  }));

  test('the record of a projection and a fact is made once, and cannot be changed', () => {
    const projection = { name: 'ada' };
    const record = recordOf(projection, 'idle');
    expect(record).toEqual({ name: 'ada', status: 'idle' });
    expect(recordOf(projection, 'idle')).toBe(record);
    expect(Object.isFrozen(record)).toBe(true);
  });

  test('another fact, and another projection, have a record of their own', () => {
    const projection = { name: 'ada' };
    const idle = recordOf(projection, 'idle');
    expect(recordOf(projection, 'running')).toEqual({ name: 'ada', status: 'running' });
    expect(recordOf(projection, 'idle')).toEqual(idle);
    expect(recordOf({ name: 'bob' }, 'idle')).toEqual({ name: 'bob', status: 'idle' });
  });
});

describe('memoizedLists', () => {
  function world() {
    const caches = { Box: new ObjectCache<object>(), Agent: new ObjectCache<object>() };
    const lists = memoizedLists<number>(['Agent']);
    let made = 0;
    const read = (key = 'a') => lists(caches as unknown as ApiCaches, key, () => [++made]);
    return { caches, read };
  }

  test('a list is made once for each key, and cannot be changed', () => {
    const { read } = world();
    const list = read();
    expect(list).toEqual([1]);
    expect(read('b')).toEqual([2]);
    expect(read()).toBe(list);
    expect(Object.isFrozen(list)).toBe(true);
  });

  test('it is made again after every change of the kinds that it is made of, and of no other', () => {
    const { caches, read } = world();
    read();
    caches.Box.set('box', {});
    expect(read()).toEqual([1]);
    caches.Agent.set('ada', {});
    expect(read()).toEqual([2]);
    caches.Agent.set('ada', {});
    expect(read()).toEqual([3]);
    caches.Agent.delete('ada');
    expect(read()).toEqual([4]);
  });

  test('a walk over many keys keeps no more than the limit', () => {
    const { read } = world();
    for (let key = 0; key <= MAX_MEMOIZED_LISTS; key++) read(`key-${key}`);
    expect(read(`key-${MAX_MEMOIZED_LISTS}`)).toEqual([MAX_MEMOIZED_LISTS + 1]);
    expect(read('key-0')).toEqual([MAX_MEMOIZED_LISTS + 2]);
  });

  test('two sets of caches have lists of their own', () => {
    const lists = memoizedLists<string>(['Agent']);
    const caches = () => ({ Agent: new ObjectCache<object>() }) as unknown as ApiCaches;
    expect(lists(caches(), 'a', () => ['one'])).toEqual(['one']);
    expect(lists(caches(), 'a', () => ['two'])).toEqual(['two']);
  });
});

import { ObjectCache } from '../kube/cache.js';
import type { ApiCaches } from './caches.js';
import { MAX_KEPT_LISTS, keptLists, keptRecords } from './memoized-lists.js';

describe('keptRecords', () => {
  const recordOf = keptRecords((view: { name: string }, status: string) => ({ name: view.name, status }));

  test('the record of a view and a fact is made once, and cannot be changed', () => {
    const view = { name: 'ada' };
    const record = recordOf(view, 'idle');
    expect(record).toEqual({ name: 'ada', status: 'idle' });
    expect(recordOf(view, 'idle')).toBe(record);
    expect(Object.isFrozen(record)).toBe(true);
  });

  test('another fact, and another view, have a record of their own', () => {
    const view = { name: 'ada' };
    const idle = recordOf(view, 'idle');
    expect(recordOf(view, 'running')).toEqual({ name: 'ada', status: 'running' });
    expect(recordOf(view, 'idle')).toEqual(idle);
    expect(recordOf({ name: 'bob' }, 'idle')).toEqual({ name: 'bob', status: 'idle' });
  });
});

describe('keptLists', () => {
  function world() {
    const caches = { Box: new ObjectCache<object>(), Agent: new ObjectCache<object>() };
    const lists = keptLists<number>(['Agent']);
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
    for (let key = 0; key <= MAX_KEPT_LISTS; key++) read(`key-${key}`);
    expect(read(`key-${MAX_KEPT_LISTS}`)).toEqual([MAX_KEPT_LISTS + 1]);
    expect(read('key-0')).toEqual([MAX_KEPT_LISTS + 2]);
  });

  test('two sets of caches have lists of their own', () => {
    const lists = keptLists<string>(['Agent']);
    const caches = () => ({ Agent: new ObjectCache<object>() }) as unknown as ApiCaches;
    expect(lists(caches(), 'a', () => ['one'])).toEqual(['one']);
    expect(lists(caches(), 'a', () => ['two'])).toEqual(['two']);
  });
});

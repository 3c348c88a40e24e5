import * as fc from '../../../test/builders/properties.js';
import { readPage } from './message-pages.js';
import type { PageQuery } from './message-pages.js';

interface Run {
  name: string;
  messages: number | undefined;
  /** How many it really has. */
  has: number;
}

const run = (name: string, has: number, messages: number | undefined = has): Run => ({ name, messages, has });

/** Messages of a run, newest first. */
const messagesOf = ({ name, has }: Run): string[] => Array.from({ length: has }, (_, n) => `${name}.${has - n}`);

async function page(runs: readonly Run[], query: PageQuery) {
  const read: string[] = [];
  const result = await readPage(runs, query, (one) => {
    read.push(one.name);
    return Promise.resolve(messagesOf(one));
  });
  return { ...result, read };
}

/** All pages from the newest on, put together again. */
async function allPages(runs: readonly Run[], limit: number): Promise<string[]> {
  const all: string[] = [];
  for (let offset = 0; ; offset += limit) {
    const { messages, more } = await page(runs, { limit, offset });
    expect(messages.length).toBeLessThanOrEqual(limit);
    all.unshift(...messages);
    if (!more) return all;
  }
}

const counted = (n: number) => Array.from({ length: n }, (_, index) => run(`r${n - index}`, 2));

test('a page reads the runs that stand on it and no other', async () => {
  const runs = counted(100);
  expect(await page(runs, { limit: 4, offset: 0 })).toEqual({
    messages: ['r99.1', 'r99.2', 'r100.1', 'r100.2'],
    more: true,
    read: ['r100', 'r99'],
  });
  expect(await page(runs, { limit: 3, offset: 150 })).toEqual({
    messages: ['r24.2', 'r25.1', 'r25.2'],
    more: true,
    read: ['r25', 'r24'],
  });
});

test('the end of the conversation is known without reading past it', async () => {
  expect(await page(counted(3), { limit: 4, offset: 2 })).toMatchObject({ more: false, read: ['r2', 'r1'] });
  expect(await page(counted(3), { limit: 3, offset: 2 })).toMatchObject({ more: true, read: ['r2', 'r1'] });
  expect(await page([run('b', 2), run('a', 0)], { limit: 2, offset: 0 })).toMatchObject({ more: false, read: ['b'] });
});

test('a page beyond the end is empty and costs nothing', async () => {
  expect(await page(counted(50), { limit: 50, offset: 1000 })).toEqual({ messages: [], more: false, read: [] });
});

test('runs that do not say their number are read, eight at a time, until the page is full', async () => {
  const runs = Array.from({ length: 30 }, (_, n) => ({ name: `r${30 - n}`, messages: undefined, has: 2 }));
  const { read, messages } = await page(runs, { limit: 4, offset: 0 });
  expect(read).toHaveLength(8);
  expect(messages).toEqual(['r29.1', 'r29.2', 'r30.1', 'r30.2']);
});

test('a working run at the top does not make the ones below it dear', async () => {
  const runs = [{ name: 'works', messages: undefined, has: 1 }, ...counted(100)];
  const { read } = await page(runs, { limit: 4, offset: 101 });
  expect(read).toEqual(['works', 'r50', 'r49']);
});

test('a message that is lost leaves its place empty: nothing is shown twice', async () => {
  const runs = [run('c', 2), run('b', 1, 3), run('a', 2)];
  expect(await allPages(runs, 2)).toEqual(['a.1', 'a.2', 'b.1', 'c.1', 'c.2']);
});

test('the pages are the conversation, whatever the runs say and however long a page is', async () => {
  const anyRun = fc.record({ has: fc.nat({ max: 12 }), says: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(anyRun, { maxLength: 40 }), fc.integer({ min: 1, max: 20 }), async (made, limit) => {
      const runs = made
        .map(({ has, says }, n) => run(`r${n}`, has, says ? has : undefined))
        .map((one, n) => ({
          ...one,
          messages: made[n]?.says === true ? one.has : undefined,
        }));
      expect(await allPages(runs, limit)).toEqual(runs.flatMap(messagesOf).toReversed());
    }),
  );
});

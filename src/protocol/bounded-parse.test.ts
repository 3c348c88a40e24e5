import { z } from 'zod';
import { boundedRecord, findOversized, parseBounded } from './bounded-parse.js';

let checked = 0;
const Counted = z.string().refine((text) => {
  checked += 1;
  return text === 'good';
});
const Entry = z.discriminatedUnion('type', [
  z.object({ type: z.literal('list'), items: z.array(Counted).max(3) }),
  z.object({ type: z.literal('long'), items: z.array(Counted).max(50) }),
]);
const Schema = z.object({
  list: z.array(Counted).max(1000).optional(),
  record: boundedRecord(z.string(), Counted, 2).optional(),
  entries: z.array(Entry).max(100).optional(),
  either: z.union([z.string(), z.array(Counted).max(2)]).nullish(),
});

beforeEach(() => {
  checked = 0;
});

const good = (count: number) => Array<string>(count).fill('good');

test.each([
  ['a list', { list: good(1001) }, 'list', 1000],
  ['a record', { record: { a: '1', b: '2', c: '3' } }, 'record', 2],
  ['a list in a list', { entries: [{ type: 'list', items: good(4) }] }, 'entries.0.items', 3],
  ['a list in a union', { either: good(3) }, 'either', 2],
])('%s that is too long is found before an entry is checked', (_what, value, path, maximum) => {
  const issue = findOversized(Schema, value);
  expect(issue).toMatchObject({ code: 'too_big', maximum });
  expect(issue?.path.join('.')).toBe(path);
  expect(parseBounded(Schema, value).error?.issues).toEqual([issue]);
  expect(checked).toBe(0);
});

test.each([
  [{}],
  [{ list: good(1000), record: { a: 'good' }, either: 'any' }],
  [{ entries: [{ type: 'long', items: good(4) }], either: null }],
  [{ list: 'no list', record: 1, entries: [1] }],
])('values of a right size are parsed as by zod: %j', (value) => {
  expect(findOversized(Schema, value)).toBeUndefined();
  const { success, data } = Schema.safeParse(value);
  expect(parseBounded(Schema, value)).toMatchObject({ success, ...(success ? { data } : {}) });
});

test('of a long list with many faults only the first is found', () => {
  const issues = parseBounded(Schema, { list: ['good', ...Array<string>(900).fill('bad')] }).error?.issues;
  expect(issues?.map(({ path }) => path)).toEqual([['list', 1]]);
  expect(checked).toBe(2);
});

test('of a short one all are found', () => {
  expect(parseBounded(Schema, { either: 1, list: ['bad', 'bad'] }).error?.issues).toHaveLength(3);
});

import * as fc from '../../test/builders/properties.js';
import { bytesOf, hasFrozenList, memoizedJson } from './memoized-text.js';
import type { Piece } from './memoized-text.js';

const joined = (pieces: readonly Piece[]) => pieces.map(String).join('');

/** Names of fields are never numbers, whose order an object would change. */
const name = fc.string({ unit: 'binary' }).map((text) => `f${text}`);
const record = fc.dictionary(name, fc.oneof(fc.string({ unit: 'binary' }), fc.double(), fc.constant(null)));
const list = fc
  .array(fc.oneof(record.map(Object.freeze), record, fc.string(), fc.integer(), fc.constant(null)), { maxLength: 6 })
  .map(Object.freeze);
const payload = fc.dictionary(name, fc.oneof(list, fc.jsonValue(), fc.constant(undefined)));

test('the text is that of JSON.stringify, the first time and again, and so is the text inside a string', () => {
  fc.assert(
    fc.property(payload, (value) => {
      for (let round = 0; round < 2; round++) {
        const { plain, quoted } = memoizedJson(value);
        expect(joined(plain)).toBe(JSON.stringify(value));
        expect(`"${joined(quoted)}"`).toBe(JSON.stringify(JSON.stringify(value)));
      }
    }),
  );
});

test('half a surrogate pair at the end of a record joins with nothing', () => {
  const records = Object.freeze(['\ud83d', '\ude00'].map((half) => Object.freeze({ half })));
  expect(joined(memoizedJson({ records }).plain)).toBe('{"records":[{"half":"\\ud83d"},{"half":"\\ude00"}]}');
});

test('the text of a frozen list is made once, that of a frozen record once for all lists', () => {
  let made = 0;
  const record = Object.freeze({ toJSON: () => ({ made: ++made }) });
  const list = Object.freeze([record]);
  const other = Object.freeze([record, record]);
  for (const agents of [list, list, other]) memoizedJson({ agents });
  expect(made).toBe(1);
  expect(joined(memoizedJson({ agents: other }).plain)).toBe('{"agents":[{"made":1},{"made":1}]}');
});

test('only a list that cannot change counts', () => {
  expect(hasFrozenList({ agents: Object.freeze([]), note: 'x' })).toBe(true);
  expect(hasFrozenList({ agents: [Object.freeze({})], note: 'x' })).toBe(false);
  expect(hasFrozenList({})).toBe(false);
});

test('the bytes are those of the whole text, and memoized ones are the same object', () => {
  const memoized = Buffer.from('kept');
  const bytes = bytesOf(['é', 'a', memoized, memoized, 'z']);
  expect(Buffer.concat(bytes).toString()).toBe('éakeptkeptz');
  expect(bytes.filter((one) => one === memoized)).toHaveLength(2);
  expect(Buffer.concat(bytesOf([]))).toHaveLength(0);
  expect(bytesOf(['a', 'b'])).toHaveLength(1);
});

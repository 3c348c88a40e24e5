import * as fc from '../../test/builders/properties.js';
import {
  JsonLimitError,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  numberAsWritten,
  parseJson,
  parseJsonText,
} from './json-limits.js';

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
const list = (values: number) => `[${Array<string>(values).fill('0').join(',')}]`;

test('reads what stays within the limits', () => {
  expect(parseJson(Buffer.from('{"a":[1,"x,[{\\"",null]}'))).toEqual({ a: [1, 'x,[{"', null] });
  expect(parseJsonText(nested(MAX_JSON_DEPTH))).toBeDefined();
  expect(parseJsonText(list(MAX_JSON_VALUES - 2))).toHaveLength(MAX_JSON_VALUES - 2);
});

test.each([
  ['depth', nested(MAX_JSON_DEPTH + 1), {}, 'nests deeper than 64'],
  ['objects in depth', '{"a":'.repeat(4) + '1' + '}'.repeat(4), { depth: 3 }, 'nests deeper than 3'],
  ['values', list(MAX_JSON_VALUES), {}, 'has more than 100000 values'],
  ['values of an object', '{"a":1,"b":2,"c":3}', { values: 3 }, 'has more than 3 values'],
  ['names of an object', '{"a":1,"b":2}', { values: 4 }, 'has more than 4 values'],
  ['empty lists', `[${Array<string>(60_000).fill('[]').join(',')}]`, {}, 'has more than 100000 values'],
  ['what is no JSON, too', '[[[', { depth: 2 }, 'nests deeper than 2'],
])('refuses too much: %s', (_what, text, limits, message) => {
  expect(() => parseJsonText(text, limits)).toThrow(new JsonLimitError(message));
  expect(() => parseJson(Buffer.from(text), limits)).toThrow(new JsonLimitError(message));
});

test.each([
  ['no JSON', Buffer.from('{')],
  ['no UTF-8', Buffer.from([0x22, 0xff, 0x22])],
])('%s is a syntax error', (_what, body) => {
  expect(() => parseJson(body)).toThrow(SyntaxError);
});

test('counts at least as many values and names as the parser makes, and no more than twice as many', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1), (value, indent) => {
      const made = valuesIn(value);
      const text = JSON.stringify(value, null, indent);
      expect(() => parseJsonText(text, { values: made * 2 })).not.toThrow();
      if (made > 2) expect(() => parseJsonText(text, { values: Math.floor((made - 1) / 2) })).toThrow(JsonLimitError);
    }),
  );
});

function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  const names = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce<number>((sum, inner) => sum + valuesIn(inner), 1 + names);
}

describe('a number as it was written', () => {
  test.each([
    ['{"id":1.50}', '1.50'],
    ['{"id" : -12345678901234567890 }', '-12345678901234567890'],
    ['{"a":{"id":1},"id":2e2,"b":[{"id":3}],"c":"\\"id\\":4"}', '2e2'],
    ['{"id":1.1,"id":2.2}', '2.2'],
    ['{"\\u0069d":7.5}', '7.5'],
    ['{"id":1.5,"id":"text"}', undefined],
    ['{"x":"id","y":1.5}', undefined],
    ['[{"id":1.5}]', undefined],
    ['{}', undefined],
  ])('%s', (text, found) => {
    expect(numberAsWritten(text, 'id')).toBe(found);
  });

  test('is found in any JSON', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.boolean(), (other, isFirst) => {
        delete other['id'];
        const rest = JSON.stringify(other).slice(1, -1);
        const members = [rest, '"id":100000000000000000001'].filter((member) => member !== '');
        const text = `{${(isFirst ? members.toReversed() : members).join(',')}}`;
        expect(numberAsWritten(text, 'id')).toBe('100000000000000000001');
      }),
    );
  });
});

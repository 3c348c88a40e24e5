import * as fc from '../../../test/builders/properties.js';
import { MAX_JSON_DEPTH, prettyJson } from './pretty-json.js';

const LIMIT = 65_536;
const pretty = (text: string, limit = LIMIT) => prettyJson(text, limit).text;

describe('prettyJson', () => {
  it.each([
    ['an object', '{"a":1,"b":[true,null,"x"]}', '{\n  "a": 1,\n  "b": [\n    true,\n    null,\n    "x"\n  ]\n}'],
    ['empty containers', '{"a":{},"b":[ ]}', '{\n  "a": {},\n  "b": []\n}'],
    ['white space around everything', ' \t{ "a" : \n1 }\r\n', '{\n  "a": 1\n}'],
    ['a 64-bit id, digit by digit', '{"id":9007199254740993}', '{\n  "id": 9007199254740993\n}'],
    ['escapes as the sender wrote them', '["\\u00e4\\n\\/"]', '[\n  "\\u00e4\\n\\/"\n]'],
    ['a name that comes twice', '{"a":1,"a":2}', '{\n  "a": 1,\n  "a": 2\n}'],
  ])('prints %s', (_name, text, expected) => expect(pretty(text)).toBe(expected));

  it.each([
    ['a scalar', '1'],
    ['text', 'hello'],
    ['nothing', ''],
    ['a missing comma', '[1 2]'],
    ['a comma at the end', '[1,]'],
    ['a name without quotes', '{a:1}'],
    ['a missing colon', '{"a" 1}'],
    ['a bracket of the other kind', '[1}'],
    ['an open container', '[1'],
    ['an open string', '["a'],
    ['a raw newline in a string', '["a\nb"]'],
    ['an unknown escape', '["\\x"]'],
    ['a broken unicode escape', '["\\u12g4"]'],
    ['a number with a leading zero', '[01]'],
    ['a number without digits', '[-]'],
    ['text behind the end', '{} {}'],
  ])('leaves %s alone', (_name, text) => expect(pretty(text)).toBeUndefined());

  it('prints like JSON.stringify with two spaces, for every value within the depth', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
        const text = JSON.stringify([value]);
        expect(pretty(text)).toBe(JSON.stringify(JSON.parse(text), null, 2));
      }),
    );
  });

  it('accepts the text that JSON.parse accepts, and no other, when nothing is cut', () => {
    const mutated = fc
      .tuple(fc.jsonValue({ maxDepth: 4 }), fc.nat(), fc.constantFrom('', ',', '"', '}', ']', ':', '\\', '0', 'e'))
      .map(([value, at, character]) => {
        const text = JSON.stringify({ value });
        const cut = at % text.length;
        return text.slice(0, cut) + character + text.slice(cut + 1);
      });
    fc.assert(fc.property(mutated, (text) => expect(pretty(text) !== undefined).toBe(isJsonContainer(text))));
  });

  it(`prints ${MAX_JSON_DEPTH} levels and leaves one more alone`, () => {
    expect(pretty('['.repeat(64) + ']'.repeat(64))).toContain('[]');
    expect(pretty('['.repeat(65) + ']'.repeat(65))).toBe(pretty('['.repeat(64) + '[]' + ']'.repeat(64)));
    expect(pretty('['.repeat(66) + ']'.repeat(66))).toBeUndefined();
  });

  it('stops soon after the limit, wherever the text is long', () => {
    const long = 'x'.repeat(1_000_000);
    for (const text of [`["${long}"]`, `{"${long}":1}`, `[${'1,'.repeat(400_000)}1]`]) {
      const { text: printed, steps } = prettyJson(text, 1_000);
      expect(printed?.length).toBeGreaterThanOrEqual(1_000);
      expect(printed?.length).toBeLessThan(2_100);
      expect(steps).toBeLessThan(3_000);
    }
  });

  it('costs at most one step a character of a body of 1 MB, however it is nested or spaced', () => {
    const size = 1_048_576;
    const bodies = {
      nested: '['.repeat(size),
      nestedObjects: '{"a":'.repeat(size / 5),
      spaced: `[${' '.repeat(size)}`,
      strings: `[${'"",'.repeat(size / 3)}`,
      escapes: `["${'\\"'.repeat(size / 2)}`,
      digits: `[${'1'.repeat(size)}`,
    };
    const steps = Object.fromEntries(
      Object.entries(bodies).map(([name, body]) => [name, prettyJson(body, LIMIT).steps]),
    );
    expect(steps['nested']).toBeLessThan(100);
    expect(steps['nestedObjects']).toBeLessThan(500);
    expect(steps['spaced']).toBe(size);
    expect(steps['strings']).toBeLessThan(LIMIT);
    expect(steps['escapes']).toBeLessThanOrEqual(LIMIT + 8);
    expect(steps['digits']).toBeLessThan(10);
  });
});

function isJsonContainer(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null;
  } catch {
    return false;
  }
}

import { MAX_OUTPUT_SCHEMA_BYTES, OutputSchemaError, outputCheckOf } from './output-schema.js';

const INVOICE = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  description: 'An invoice.',
  properties: {
    number: { type: 'string', pattern: '^R-' },
    total: { type: 'number', minimum: 0 },
    state: { enum: ['open', 'paid'], default: 'open' },
    lines: { type: 'array', items: { $ref: '#/definitions/line' }, minItems: 1 },
    note: { type: ['string', 'null'] },
  },
  required: ['number', 'total', 'by'],
  additionalProperties: true,
  definitions: { line: { properties: { text: { type: 'string' } }, required: ['text'], additionalProperties: false } },
};
const RIGHT = { number: 'R-1', total: 2, by: null, lines: [{ text: 'a' }], note: null };

test('JSON that fits is given back alone, out of its fence and as it was written', () => {
  const check = outputCheckOf(INVOICE);
  const json = JSON.stringify(RIGHT);
  for (const text of [json, `\n ${json} `, `\`\`\`json\n${json}\n\`\`\``, `\`\`\`\n${json}\`\`\``])
    expect(check(text)).toEqual({ json });
});

test.each([
  ['a wrong type', { total: '2' }, /^total: /],
  ['a value below its bound', { total: -1 }, /^total: /],
  ['a text without its pattern', { number: '1' }, /^number: /],
  ['none of the values', { state: 'lost' }, /^state: /],
  ['a fault in a list behind a reference', { lines: [{ text: 'a', more: 1 }] }, /^lines.0: /],
  ['a list that is too short', { lines: [] }, /^lines: /],
  ['a name that is required and described nowhere', { by: undefined }, /^by: /],
])('%s is a problem with its place', (_what, change, problem) => {
  expect(outputCheckOf(INVOICE)(JSON.stringify({ ...RIGHT, ...change }))).toEqual({
    problem: expect.stringMatching(problem),
  });
});

test.each(['', 'Here it is: {}', '{"a":', '```json\n{}', 'null null'])('%j is no JSON alone', (text) => {
  expect(outputCheckOf({ type: 'object' })(text)).toEqual({ problem: 'it is not JSON alone' });
});

test('JSON that nests without end is not read', () => {
  expect(outputCheckOf({})('['.repeat(1000))).toEqual({ problem: expect.stringContaining('nests deeper') });
});

test('a schema that says nothing takes any JSON', () => {
  expect(outputCheckOf({})('[1]')).toEqual({ json: '[1]' });
});

test.each([
  [{ if: {} }, '/if is not supported'],
  [{ properties: { a: { not: {} } } }, '/properties/a/not is not supported'],
  [{ properties: 5 }, '/properties must be an object'],
  [{ anyOf: [] }, '/anyOf must be a list of schemas'],
  [{ enum: 'a' }, '/enum must be a list'],
  [{ const: {} }, '/const can hold texts'],
  [{ required: 'a' }, '/required must be a list of names'],
  [{ type: 'text' }, 'Unsupported type: text'],
  [{ $ref: 'https://example.com/a.json' }, 'refers to another document'],
  [{ $ref: 'http://127.0.0.1:1/a.json#/$defs/a' }, 'refers to another document'],
  [{ $ref: '#/$defs/a' }, 'refers to #/$defs/a, which is not there'],
  [{ $ref: '#/$defs/constructor' }, 'which is not there'],
  [{ $ref: '#/properties/a', properties: { a: {} } }, 'which is not there'],
  [{ $ref: 5 }, '/$ref must be a text'],
  [{ $ref: '#' }, 'refers to itself without going into the value'],
  [{ anyOf: [{ type: 'string' }, { $ref: '#' }] }, 'refers to itself without going into the value'],
  [{ items: { $ref: '#/$defs/a' }, $defs: { a: { allOf: [{ $ref: '#/$defs/a' }] } } }, 'refers to itself'],
  [{ $defs: { a: { $ref: '#/$defs/b' }, b: { oneOf: [{ $ref: '#/$defs/a' }] } } }, 'refers to itself'],
  [doubling(12), 'checks one value more than 1000 times'],
  [{ type: 'string', pattern: '(' }, 'Invalid regular expression'],
  [{ title: 'x'.repeat(MAX_OUTPUT_SCHEMA_BYTES) }, 'bytes; at most 16384'],
  [nested(40), 'nests deeper than 32'],
])('a schema that could not be checked as it is meant is refused (%#)', (schema, message) => {
  expect(() => outputCheckOf(schema)).toThrow(OutputSchemaError);
  expect(() => outputCheckOf(schema)).toThrow(message);
});

test('a tree refers to itself where it goes into the value', () => {
  const check = outputCheckOf({ properties: { children: { items: { $ref: '#' } } }, additionalProperties: false });
  expect(check('{"children":[{"children":[]}]}')).toHaveProperty('json');
  expect(check('{"children":[{"childs":[]}]}')).toHaveProperty('problem');
});

/** Each refers twice to the next. */
function doubling(length: number): Record<string, unknown> {
  const twice = (index: number) => ({ anyOf: [{ $ref: `#/$defs/a${index}` }, { $ref: `#/$defs/a${index}` }] });
  const names = Array.from({ length }, (_, index) => [`a${index}`, index === length - 1 ? {} : twice(index + 1)]);
  return { $ref: '#/$defs/a0', $defs: Object.fromEntries(names) as object };
}

function nested(depth: number): Record<string, unknown> {
  return depth === 0 ? {} : { items: nested(depth - 1) };
}

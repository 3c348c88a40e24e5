import { OutputSchemaError } from '../run/output-schema.js';
import { boundedOutputCheck } from './output-check.js';

/** Far less than what they would take, which is hours. */
const MOST_MS = 200;
const TOO_LONG = { problem: expect.stringContaining('takes too long') };

test.each<[string, Record<string, unknown>, unknown]>([
  ['a pattern', { type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(60)}!`],
  [
    'a pattern behind a reference',
    { items: { $ref: '#/$defs/a' }, $defs: { a: { type: 'string', pattern: '^(\\w|\\d)*$' } } },
    [`${'1'.repeat(80)}!`],
  ],
  ['references within references', { $ref: '#/$defs/a0', $defs: branching(40) }, deep(40)],
])('%s that would take for ever ends', (_what, schema, value) => {
  expect(boundedOutputCheck(schema, MOST_MS)(JSON.stringify(value))).toEqual(TOO_LONG);
});

test('what fits and what does not is told as it is', () => {
  const check = boundedOutputCheck({ type: 'string', pattern: '^a+$' });
  expect(check('"aaa"')).toEqual({ json: '"aaa"' });
  expect(check('"b"')).toEqual({ problem: expect.stringContaining('pattern') });
  expect(() => boundedOutputCheck({ $ref: '#' })).toThrow(OutputSchemaError);
});

/** Each looks at what is in its list twice. */
function branching(length: number): Record<string, unknown> {
  const names = Array.from({ length }, (_, index) => {
    const items = { $ref: `#/$defs/a${index + 1}` };
    return [`a${index}`, { anyOf: [{ items }, { items, minItems: 0 }] }];
  });
  return { ...(Object.fromEntries(names) as object), [`a${length}`]: { type: 'number' } };
}

function deep(depth: number): unknown {
  return depth === 0 ? 'x' : [deep(depth - 1)];
}

import * as fc from '../../test/builders/properties.js';
import { cutJson, jsonPreview } from './cut-json.js';

describe('cutJson', () => {
  test('leaves a value alone that fits', () => {
    expect(cutJson({ a: 'b', truncated: 'mine' }, 256)).toBe('{"a":"b","truncated":"mine"}');
  });

  test('cuts inside the long string and keeps the small fields', () => {
    const cut = JSON.parse(cutJson({ exitCode: 1, output: `head${'x'.repeat(5000)}tail` }, 1024)) as Record<
      string,
      unknown
    >;
    expect(cut).toMatchObject({ exitCode: 1, truncated: true, bytes: 5034 });
    expect(cut['output']).toMatch(/^headx+\n\[\.\.\. cut, 5008 bytes in all \.\.\.\]\nx+tail$/);
  });

  test('uses most of the room', () => {
    const length = Buffer.byteLength(cutJson({ output: 'x'.repeat(100_000) }, 32_768));
    expect(length).toBeGreaterThan(32_000);
    expect(length).toBeLessThanOrEqual(32_768);
  });

  test('counts what JSON escapes', () => {
    expect(Buffer.byteLength(cutJson({ output: '\u0000"\n'.repeat(20_000) }, 4096))).toBeLessThanOrEqual(4096);
  });

  test('puts a bare string and an array into an object that can carry the mark', () => {
    expect(JSON.parse(cutJson('y'.repeat(1000), 300))).toMatchObject({ truncated: true, bytes: 1002 });
    expect(JSON.parse(cutJson(['y'.repeat(1000)], 300))).toMatchObject({ truncated: true, bytes: 1004 });
  });

  test('shows the beginning where the size is not in strings', () => {
    const cut = JSON.parse(
      cutJson(
        Array.from({ length: 5000 }, (_, i) => i),
        512,
      ),
    ) as Record<string, string>;
    expect(cut['truncated']).toBe(true);
    expect(cut['preview']).toMatch(/^\[0,1,2,3/);
  });

  test('says so when a value is nested deeper than the stack', () => {
    let value: unknown = 1;
    for (let i = 0; i < 100_000; i++) value = [value];
    expect(cutJson(value, 256)).toBe('{"truncated":true,"error":"the value cannot be written as JSON"}');
  });

  test('is valid JSON within the bound for every value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ depthSize: 'medium' }), fc.integer({ min: 256, max: 600 }), (value, max) => {
        const big = { value, filler: 'é😀"\\\n'.repeat(60) };
        const json = cutJson(big, max);
        expect(Buffer.byteLength(json)).toBeLessThanOrEqual(max);
        const parsed = JSON.parse(json) as Record<string, unknown>;
        if (json !== JSON.stringify(big)) expect(parsed['truncated']).toBe(true);
      }),
    );
  });
});

test('a preview says how large the JSON was, and is JSON', () => {
  expect(JSON.parse(jsonPreview(JSON.stringify('x'.repeat(100)), 20))).toEqual({
    truncated: true,
    bytes: 102,
    preview: `"${'x'.repeat(19)}`,
  });
});

import { readJsonLines } from './json-lines.js';

async function* chunksOf(bytes: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(text: string, size: number): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const value of readJsonLines(chunksOf(Buffer.from(text), size))) values.push(value);
  return values;
}

test.each([1, 2, 3, 7, 1000])('lines are whole however the bytes are cut: chunks of %d', async (size) => {
  const text = '{"a":"é…"}\n\n{"b":[1,2]}\n3\n';

  expect(await read(text, size)).toEqual([{ a: 'é…' }, { b: [1, 2] }, 3]);
});

test('a last line without its end was cut and is dropped', async () => {
  expect(await read('{"a":1}\n{"b":', 4)).toEqual([{ a: 1 }]);
  expect(await read('{"a":1}\n2', 4)).toEqual([{ a: 1 }]);
});

test('a line that is no JSON throws', async () => {
  await expect(read('{"a":1}\nnonsense\n', 100)).rejects.toThrow(SyntaxError);
});

import { ByteLines, TextLines } from './lines.js';

/** The lines of these pieces, and what is left. */
function linesOf(pieces: readonly string[], lines = new TextLines()): string[] {
  return [...pieces.flatMap((piece) => lines.read(Buffer.from(piece, 'latin1'))), lines.rest()];
}

test.each([
  ['line feeds', ['a\nb', 'c\n', '\nd'], ['a', 'bc', '', 'd']],
  ['returns', ['a\rb', 'c\r', '\rd'], ['a', 'bc', '', 'd']],
  ['both', ['a\r\nb', 'c\r\n', '\r\nd'], ['a', 'bc', '', 'd']],
  ['both, in two pieces', ['a\r', '\nb\r', '', '\n', '\n'], ['a', 'b', '', '']],
  ['a letter of two bytes in two pieces', ['\xc3', '\xa9\n'], ['é', '']],
  ['no end', ['a', 'b'], ['ab']],
])('%s', (_name, pieces, lines) => {
  expect(linesOf(pieces)).toEqual(lines);
});

test('a line that grows too long is dropped', () => {
  expect(linesOf(['aaa', 'bbb', 'c\nd'], new TextLines(5))).toEqual(['c', 'd']);
});

test('a long line in many small pieces is looked at once', () => {
  // Looking at all of it with each piece would take minutes.
  const pieces = Array.from({ length: 128 * 1024 }, () => 'x'.repeat(64));
  const [line, rest] = linesOf([...pieces, '\n']);
  expect([line?.length, rest]).toEqual([8 * 1024 * 1024, '']);
});

describe('lines of bytes', () => {
  const linesOf = (pieces: readonly string[], maxBytes: number) => {
    const lines = new ByteLines(maxBytes);
    return pieces.flatMap((piece) => lines.read(Buffer.from(piece)).map(String));
  };

  test('end at line feeds alone', () => {
    expect(linesOf(['a\r\nb', 'c\n', '\nd'], 9)).toEqual(['a\r', 'bc', '']);
  });

  test('are cut where they grow too long', () => {
    expect(linesOf(['aaa', 'bbb', 'c\nd\n'], 5)).toEqual(['aaabb', 'd']);
  });
});

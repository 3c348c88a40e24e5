import { baseName, mediaTypeOfName, whyNoFileName } from './file-name.js';

test.each(['report.pdf', 'Bericht März.docx', '報告.txt', '.env', 'a b (1).csv'])('%s is a name', (name) => {
  expect(whyNoFileName(name)).toBeUndefined();
});

test.each([
  '',
  ' ',
  '.',
  '..',
  'a/b',
  'a\\b',
  'a\nb',
  'a\0b',
  'exe\u202Efdp.sh',
  'a\u200Bb',
  'a\u2028b',
  '\uD800',
  'é'.repeat(101),
])('name %j is refused', (name) => {
  expect(whyNoFileName(name)).toBeDefined();
});

test('the name of a path is its last part', () => {
  expect(['out/report.pdf', 'report.pdf', 'out/', ''].map(baseName)).toEqual(['report.pdf', 'report.pdf', 'out', '']);
});

test('the type is told from the ending', () => {
  expect(['a.PDF', 'a.md', 'a.tar.gz', 'pdf', '.pdf', 'a.constructor'].map(mediaTypeOfName)).toEqual([
    'application/pdf',
    'text/markdown; charset=utf-8',
    'application/gzip',
    'application/octet-stream',
    'application/octet-stream',
    'application/octet-stream',
  ]);
});

import { pdfOf } from '../../../../test/builders/pdf.js';
import { pdfText } from './pdf-text.js';

const never = () => false;

test('title, pages and lines', async () => {
  const pdf = pdfOf([['One', 'Two'], [], ['Three']], { title: ' The mill ' });
  expect(await pdfText(pdf, never)).toEqual({
    title: 'The mill',
    markdown: '[page 1]\nOne\nTwo\n\n[page 2]\n\n[page 3]\nThree',
  });
});

test('a reader that gives up has the pages up to there', async () => {
  let pages = 0;
  const { markdown } = await pdfText(pdfOf([['a'], ['b'], ['c']]), () => ++pages === 2);
  expect(markdown).toBe('[page 1]\na\n\n[page 2]\nb\n\n[only the first 2 of 3 pages were read]');
});

/** The standard handler with a user password that is not empty. */
const ENCRYPT = `/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <${'41'.repeat(32)}> /U <${'42'.repeat(32)}> >> /ID [<00> <00>]`;

test.each([
  ['without text', pdfOf([[], []]), 'The PDF of 2 pages has no text: it may hold pictures of pages.'],
  ['encrypted', pdfOf([['secret']], { trailer: ENCRYPT }), 'The PDF is encrypted: it needs a password.'],
  ['cut', pdfOf([['a']]).subarray(0, 60), 'The PDF is damaged.'],
  ['that is none', Buffer.from('<html>'), 'The PDF is damaged.'],
])('a PDF %s says so', async (_case, pdf, message) => {
  await expect(pdfText(pdf, never)).rejects.toThrow(message);
});

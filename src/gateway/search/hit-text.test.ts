import { textOfHits } from './hit-text.js';

const hit = (title: string, snippet = '', url = 'https://a.example/') => ({ title, snippet, url });

test('each hit is a title, an address and a snippet', () => {
  expect(textOfHits([hit('One', 'First.'), hit('', 'No title.'), hit('Two')], 8)).toBe(
    '1. One\nhttps://a.example/\nFirst.\n\n2. https://a.example/\nhttps://a.example/\nNo title.\n\n3. Two\nhttps://a.example/',
  );
});

test.each([
  ['markup', '<strong>a</strong> &amp; &#x27;b&#x27; 1 < 2', "a & 'b' 1 < 2"],
  ['lines and control characters', 'a\n\n2. b\u0000\u001b[0m', 'a 2. b [0m'],
  ['a long text', 'x'.repeat(5000), `${'x'.repeat(199)}…`],
  ['half a character at the cut', `${'x'.repeat(198)}😀😀`, `${'x'.repeat(198)}\ufffd…`],
])('%s of a stranger becomes one plain line', (_case, title, expected) => {
  expect(textOfHits([hit(title)], 8)).toBe(`1. ${expected}\nhttps://a.example/`);
});

test('only addresses of the web, no more than asked for, and a word when there is none', () => {
  const all = [hit('a', '', 'javascript:alert(1)'), hit('b', '', `https://a/${'x'.repeat(2000)}`), hit('c'), hit('d')];
  expect(textOfHits(all, 1)).toBe('1. c\nhttps://a.example/');
  expect(textOfHits(all.slice(0, 2), 8)).toBe('Nothing was found.');
});

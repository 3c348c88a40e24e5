import { pageText } from './page-text.js';

const BASE = 'https://docs.example/guide/start.html';
const body = (html: string) => pageText(html, BASE).markdown;

test.each([
  ['a heading', '<h2>Install <em>now</em></h2>', '## Install *now*'],
  ['paragraphs', '<p>One\n two.</p><p>Three.</p>', 'One two.\n\nThree.'],
  ['text beside blocks', 'Before<p>In</p>After', 'Before\n\nIn\n\nAfter'],
  ['line breaks', '<p>a <br> b</p>', 'a\nb'],
  ['marks', '<p><b>bold </b>and <i> thin</i> <code>x  y</code></p>', '**bold** and *thin* `x y`'],
  [
    'a list in a list',
    '<ul><li>a<ol><li>one</li><li>two</li></ol></li><li>b</li></ul>',
    '- a\n  1. one\n  2. two\n- b',
  ],
  ['code, as it is', '<pre>\nif (a) {\n  b\n}\n</pre>', '```\nif (a) {\n  b\n}\n```'],
  ['code with fences in it', '<pre>```\nx\n```</pre>', '````\n```\nx\n```\n````'],
  ['a quote', '<blockquote><p>a</p><p>b</p></blockquote>', '> a\n>\n> b'],
  ['a rule', '<p>a</p><hr><p>b</p>', 'a\n\n---\n\nb'],
  [
    'a table',
    '<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td>1|2</td><td>3</td></tr><tr><td>4</td></tr></tbody></table>',
    '| A | B |\n| --- | --- |\n| 1\\|2 | 3 |\n| 4 |  |',
  ],
  ['a table for layout', '<table><tr><td>a</td></tr><tr><td>b</td></tr></table>', 'a\n\nb'],
  [
    'an image with words',
    '<p><img src="/i.png" alt="A cat"><img src="x.png"></p>',
    '![A cat](https://docs.example/i.png)',
  ],
])('%s', (_name, html, markdown) => {
  expect(body(html)).toBe(markdown);
});

test.each([
  ['relative', 'next.html', '[x](https://docs.example/guide/next.html)'],
  ['absolute path', '/a?b=c', '[x](https://docs.example/a?b=c)'],
  ['another host', '//other.example/', '[x](https://other.example/)'],
  ['parentheses', 'a_(b)', '[x](https://docs.example/guide/a_%28b%29)'],
  ['a place on the page', '#here', 'x'],
  ['a script', 'javascript:alert(1)', 'x'],
  ['inline data', 'data:text/html,x', 'x'],
  ['nothing that is an address', 'http://[', 'x'],
])('a link that is %s', (_name, href, markdown) => {
  expect(body(`<p><a href="${href}">x</a></p>`)).toBe(markdown);
});

test('the base of the page counts', () => {
  expect(pageText('<html><head><base href="/v2/"></head><body><a href="a">x</a></body></html>', BASE).markdown).toBe(
    '[x](https://docs.example/v2/a)',
  );
});

test('scripts, styles and forms are not text', () => {
  expect(body('<style>p{}</style><script>alert(1)</script><svg><text>s</text></svg><p>Hi</p><button>Go</button>')).toBe(
    'Hi',
  );
});

test('of a page with an article, only the article is shown, with the title of the page', () => {
  const paragraph = `<p>${'The mill grinds slowly, and it grinds fine. '.repeat(12)}</p>`;
  const html = `<!doctype html><html><head><title>\n The  Mill </title></head><body>
    <nav><a href="/">Home</a> <a href="/all">All articles</a></nav>
    <article><h1>The Mill</h1>${paragraph.repeat(4)}</article>
    <aside class="sidebar"><a href="/ad">Buy flour today</a></aside></body></html>`;
  const page = pageText(html, BASE);
  expect(page.title).toBe('The Mill');
  expect(page.markdown).toContain('The mill grinds slowly');
  expect(page.markdown).not.toMatch(/Buy flour|All articles/);
});

test('a page without an article is shown whole', () => {
  expect(body('<html><body><a href="/a">A</a><a href="/b">B</a></body></html>')).toContain(
    '[A](https://docs.example/a)',
  );
});

test('an empty page is empty', () => {
  expect(pageText('', BASE)).toEqual({ title: '', markdown: '' });
});

test('nesting beyond the bound becomes plain text', () => {
  expect(body(`${'<ul><li>'.repeat(300)}deep`).endsWith('deep')).toBe(true);
});

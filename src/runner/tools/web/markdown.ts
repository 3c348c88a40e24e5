/**
 * A parsed page as markdown. Our own, because it must stand pages that were made to break it: nesting is cut at a depth,
 * the text at a size, and every link is absolute. Pure.
 */

/** As much of a DOM node as is looked at. */
export interface PageNode {
  nodeType: number;
  nodeName: string;
  childNodes: Iterable<PageNode>;
  textContent: string | null;
  getAttribute?(name: string): string | null;
}

const ELEMENT = 1;
const TEXT = 3;
/** Deeper nesting is shown as plain text. */
const MAX_DEPTH = 100;
const MAX_CELLS = 50;

const DROPPED = new Set(
  'SCRIPT STYLE NOSCRIPT TEMPLATE IFRAME OBJECT EMBED SVG MATH CANVAS AUDIO VIDEO HEAD INPUT SELECT TEXTAREA BUTTON'.split(
    ' ',
  ),
);
const BLOCKS = new Set(
  'ADDRESS ARTICLE ASIDE BLOCKQUOTE BODY CENTER DD DETAILS DIALOG DIV DL DT FIELDSET FIGCAPTION FIGURE FOOTER FORM H1 H2 H3 H4 H5 H6 HEADER HR HTML LI MAIN MENU NAV OL P PRE SECTION SUMMARY TABLE TBODY TD TFOOT TH THEAD TR UL'.split(
    ' ',
  ),
);

/** Markdown of everything below the node. `base` makes links absolute. */
export function markdownOf(root: PageNode, base: string): string {
  return blocksOf(root, { base, depth: 0 }).join('\n\n').trim();
}

interface Place {
  base: string;
  depth: number;
}

/** Paragraphs, lists, tables …; text between blocks becomes a paragraph of its own. */
function blocksOf(node: PageNode, place: Place): string[] {
  if (place.depth > MAX_DEPTH) return nonEmpty(collapse(node.textContent ?? ''));
  const below = { ...place, depth: place.depth + 1 };
  const blocks: string[] = [];
  let line = '';
  const endLine = () => {
    blocks.push(...nonEmpty(tidy(line)));
    line = '';
  };
  for (const child of node.childNodes) {
    if (child.nodeType === ELEMENT && BLOCKS.has(nameOf(child))) {
      endLine();
      blocks.push(...blockOf(child, below));
    } else line += inlineOf(child, below);
  }
  endLine();
  return blocks;
}

function blockOf(node: PageNode, place: Place): string[] {
  const name = nameOf(node);
  if (/^H[1-6]$/.test(name)) {
    return nonEmpty(oneLine(node, place)).map((text) => `${'#'.repeat(Number(name[1]))} ${text}`);
  }
  if (name === 'HR') return ['---'];
  if (name === 'PRE') return nonEmpty((node.textContent ?? '').replace(/^\n+/, '').trimEnd()).map(fenced);
  if (name === 'BLOCKQUOTE') return nonEmpty(prefixed(blocksOf(node, place).join('\n\n'), '> ', '> '));
  if (name === 'UL' || name === 'OL' || name === 'MENU') return nonEmpty(listOf(node, place, name === 'OL'));
  if (name === 'TABLE') return nonEmpty(tableOf(node, place));
  return blocksOf(node, place);
}

function listOf(node: PageNode, place: Place, ordered: boolean): string {
  const items: string[] = [];
  for (const child of node.childNodes) {
    if (child.nodeType !== ELEMENT || DROPPED.has(nameOf(child))) continue;
    const text = (nameOf(child) === 'LI' ? blocksOf(child, place) : blockOf(child, place)).join('\n');
    if (text === '') continue;
    const mark = ordered ? `${items.length + 1}. ` : '- ';
    items.push(prefixed(text, mark, ' '.repeat(mark.length)));
  }
  return items.join('\n');
}

/** Rows of the table itself; the first is the head, as markdown wants one. */
function tableOf(node: PageNode, place: Place): string {
  const rows = rowsOf(node, place, 0).filter((cells) => cells.some((cell) => cell !== ''));
  const width = Math.max(0, ...rows.map((cells) => cells.length));
  // A table of one column is there for the layout of the page.
  if (width <= 1) return rows.map(([cell = '']) => cell).join('\n\n');
  const lines = rows.map((cells) => `| ${[...cells, ...Array<string>(width - cells.length).fill('')].join(' | ')} |`);
  return [lines[0], `| ${Array<string>(width).fill('---').join(' | ')} |`, ...lines.slice(1)].join('\n');
}

function rowsOf(node: PageNode, place: Place, depth: number): string[][] {
  const rows: string[][] = [];
  for (const child of node.childNodes) {
    const name = nameOf(child);
    if (name === 'TR') rows.push(cellsOf(child, place));
    else if (depth === 0 && /^(THEAD|TBODY|TFOOT)$/.test(name)) rows.push(...rowsOf(child, place, 1));
  }
  return rows;
}

function cellsOf(row: PageNode, place: Place): string[] {
  const cells: string[] = [];
  for (const child of row.childNodes) {
    if (cells.length >= MAX_CELLS || !/^T[HD]$/.test(nameOf(child))) continue;
    cells.push(oneLine(child, place).replaceAll('|', '\\|'));
  }
  return cells;
}

/** Text with its marks; blocks inside are set off with a space. */
function inlineOf(node: PageNode, place: Place): string {
  if (node.nodeType === TEXT) return collapse(node.textContent ?? '');
  if (node.nodeType !== ELEMENT || DROPPED.has(nameOf(node))) return '';
  if (place.depth > MAX_DEPTH) return collapse(node.textContent ?? '');
  const name = nameOf(node);
  if (name === 'BR') return '\n';
  if (name === 'IMG') return imageOf(node, place);
  if (name === 'CODE' || name === 'KBD' || name === 'SAMP') return around('`', collapse(node.textContent ?? ''));
  const below = { ...place, depth: place.depth + 1 };
  let text = '';
  for (const child of node.childNodes) text += inlineOf(child, below);
  if (name === 'A') return linkOf(node, text, place);
  if (name === 'STRONG' || name === 'B') return around('**', text);
  if (name === 'EM' || name === 'I') return around('*', text);
  return BLOCKS.has(name) ? ` ${text} ` : text;
}

function linkOf(node: PageNode, text: string, place: Place): string {
  const target = absolute(node.getAttribute?.('href'), place.base);
  const label = collapse(text).trim();
  if (target === undefined || label === '') return text;
  return `${text.startsWith(' ') ? ' ' : ''}[${label}](${target})${text.endsWith(' ') ? ' ' : ''}`;
}

function imageOf(node: PageNode, place: Place): string {
  const alt = collapse(node.getAttribute?.('alt') ?? '').trim();
  const source = absolute(node.getAttribute?.('src'), place.base);
  return alt === '' || source === undefined ? '' : `![${alt}](${source})`;
}

/** Only addresses that can be fetched: no script, no inline data. */
function absolute(target: string | null | undefined, base: string): string | undefined {
  if (target === null || target === undefined || target.startsWith('#')) return undefined;
  const url = URL.parse(target, base);
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  return url.href.replaceAll('(', '%28').replaceAll(')', '%29');
}

/** Marks go around the words, not around the spaces beside them. */
function around(mark: string, text: string): string {
  const words = text.trim();
  if (words === '' || words.includes('\n') || words.startsWith(mark)) return text;
  const start = text.indexOf(words);
  return `${text.slice(0, start)}${mark}${words}${mark}${text.slice(start + words.length)}`;
}

function fenced(code: string): string {
  const longest = Math.max(2, ...(code.match(/`+/g) ?? []).map((run) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${code}\n${fence}`;
}

function prefixed(text: string, first: string, rest: string): string {
  if (text === '') return '';
  return text
    .split('\n')
    .map((line, index) => (line === '' ? rest.trimEnd() : `${index === 0 ? first : rest}${line}`))
    .join('\n');
}

function oneLine(node: PageNode, place: Place): string {
  return collapse(inlineOf(node, place)).trim();
}

function collapse(text: string): string {
  return text.replace(/\s+/g, ' ');
}

/** Line breaks stay, spaces around them go. */
function tidy(line: string): string {
  return line
    .replace(/[^\S\n]+/g, ' ')
    .replace(/ ?\n ?/g, '\n')
    .trim();
}

function nonEmpty(text: string): string[] {
  return text === '' ? [] : [text];
}

function nameOf(node: PageNode): string {
  return node.nodeName.toUpperCase();
}

/** Where a text that does not occur in a file was most likely meant to be, as a small diff: a model mends its call by it. */
import { cutUtf8 } from '../../runtime/text.js';
import { printable } from './plain-text.js';

/** Of the text that is looked for, and of the file: what a look costs is their product. */
const MAX_WANTED_LINES = 40;
const MAX_FILE_LINES = 50_000;
const MAX_SHOWN_LINE = 200;
/** Share of words in common below which a place is none. */
const LEAST_ALIKE = 0.3;

/** Two sentences and a diff of the lines (`-` as given, `+` as in the file); undefined when nothing is alike. */
export function nearestPlace(file: string, wanted: string): string | undefined {
  const given = linesOf(wanted).slice(0, MAX_WANTED_LINES);
  const lines = linesOf(file).slice(0, MAX_FILE_LINES);
  const start = bestStart(lines, given);
  if (start === undefined) return undefined;
  const place = narrowed(start, diff(given, lines.slice(start, start + given.length)));
  const there = lines.slice(place.start, place.start + place.length);
  const range =
    there.length === 1 ? `line ${place.start + 1}` : `lines ${place.start + 1} to ${place.start + there.length}`;
  const reason = isAlikeButForSpace(given, there) ? ' Only white space differs.' : '';
  const shown = place.parts.map(({ sign, line }) => `${sign} ${short(line)}`);
  return `The nearest place is ${range} (- as given, + as in the file):${reason}\n${shown.join('\n')}`;
}

interface Part {
  sign: '-' | '+' | ' ';
  line: string;
}

/** Without lines of the file alone at its edges, which belong to the window and not to the place. */
function narrowed(start: number, parts: Part[]): { start: number; length: number; parts: Part[] } {
  const isOfPlace = ({ sign }: Part) => sign !== '+';
  const hasCommon = parts.some(({ sign }) => sign === ' ');
  const first = hasCommon ? parts.findIndex(isOfPlace) : 0;
  const kept = hasCommon ? parts.slice(first, parts.findLastIndex(isOfPlace) + 1) : parts;
  return { start: start + first, length: kept.filter(({ sign }) => sign !== '-').length, parts: kept };
}

function linesOf(text: string): string[] {
  return text.replace(/\r?\n$/, '').split('\n');
}

/** The first line of the window whose words are most like those of the given lines. */
function bestStart(lines: readonly string[], given: readonly string[]): number | undefined {
  const known = lines.map(wordsOf);
  const sought = given.map(wordsOf);
  let best: { start: number; score: number } | undefined;
  for (let start = 0; start < known.length; start++) {
    let score = 0;
    for (const [index, words] of sought.entries()) score += alike(words, known[start + index]);
    if (score > (best?.score ?? LEAST_ALIKE * given.length)) best = { start, score };
  }
  return best?.start;
}

function wordsOf(line: string): Set<string> {
  return new Set(line.match(/[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu));
}

/** From 0 to 1; empty lines are a little alike, and no reason to choose a place. */
function alike(a: ReadonlySet<string>, b: ReadonlySet<string> | undefined): number {
  if (b === undefined) return 0;
  if (a.size === 0 || b.size === 0) return a.size === b.size ? 0.1 : 0;
  let common = 0;
  for (const word of a) if (b.has(word)) common += 1;
  return (2 * common) / (a.size + b.size);
}

function isAlikeButForSpace(given: readonly string[], there: readonly string[]): boolean {
  const bare = (lines: readonly string[]) => lines.join('\n').replace(/\s+/g, '');
  return bare(given) === bare(there);
}

/** By the longest common run of lines; both sides have few. */
function diff(given: readonly string[], there: readonly string[]): Part[] {
  const lengths = commonLengths(given, there);
  const at = (i: number, j: number) => lengths[i]?.[j] ?? 0;
  const parts: Part[] = [];
  let [i, j] = [0, 0];
  while (i < given.length || j < there.length) {
    const [old = '', found = ''] = [given[i], there[j]];
    if (i < given.length && j < there.length && old === found) {
      parts.push({ sign: ' ', line: old });
      i += 1;
      j += 1;
    } else if (i < given.length && (j === there.length || at(i + 1, j) >= at(i, j + 1))) {
      parts.push({ sign: '-', line: old });
      i += 1;
    } else {
      parts.push({ sign: '+', line: found });
      j += 1;
    }
  }
  return parts;
}

/** Cell (i, j): how many lines the rests from i and j on have in common. */
function commonLengths(a: readonly string[], b: readonly string[]): number[][] {
  const lengths = Array.from({ length: a.length + 1 }, () => Array.from({ length: b.length + 1 }, () => 0));
  const cell = (i: number, j: number) => lengths[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    const row = lengths[i] ?? [];
    for (let j = b.length - 1; j >= 0; j--) {
      row[j] = a[i] === b[j] ? cell(i + 1, j + 1) + 1 : Math.max(cell(i + 1, j), cell(i, j + 1));
    }
  }
  return lengths;
}

/** Tabs and other invisible characters are written out: they are often what differs. */
function short(line: string): string {
  return cutUtf8(printable(line), MAX_SHOWN_LINE);
}

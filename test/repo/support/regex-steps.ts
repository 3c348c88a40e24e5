/**
 * A backtracking matcher of regular expressions that counts its steps, and inputs that make bad patterns take many: how
 * often a pattern reads each character does not depend on the speed or load of a machine.
 */
import { parseRegex, type RegexNode } from './regex-tree.js';

type Next = (at: number) => boolean;
/** Whether the node matches at a place and what follows matches behind it. */
type Matcher = (at: number, next: Next) => boolean;

class TooManySteps extends Error {}

interface Search {
  text: readonly string[];
  steps: number;
  limit: number;
}

/** The steps of finding every match in the text, as far as `limit`. */
export function countSteps(pattern: RegExp, text: string, limit: number): number {
  const search: Search = { text: hasUnicode(pattern) ? Array.from(text) : text.split(''), steps: 0, limit };
  const matcher = compile({ type: 'choice', options: parseRegex(pattern.source) }, search, pattern.flags);
  try {
    findAll(matcher, search, pattern.sticky);
  } catch (error) {
    if (!(error instanceof TooManySteps)) throw error;
  }
  return search.steps;
}

function findAll(matcher: Matcher, search: Search, sticky: boolean): void {
  for (let start = 0; start <= search.text.length; start++) {
    let end = -1;
    const found = matcher(start, (at) => {
      end = at;
      return true;
    });
    if (found && end > start) start = end - 1;
    if (!found && sticky) return;
  }
}

function hasUnicode({ flags }: RegExp): boolean {
  return /[uv]/.test(flags);
}

function step(search: Search): void {
  search.steps += 1;
  if (search.steps > search.limit) throw new TooManySteps();
}

function compile(node: RegexNode, search: Search, flags: string): Matcher {
  switch (node.type) {
    case 'choice':
      return choice(node.options, search, flags);
    case 'repeat':
      return repeated(node, search, flags);
    case 'edge':
    case 'look': {
      const holds = conditionOf(node, search, flags);
      return (at, next) => {
        step(search);
        return holds(at) && next(at);
      };
    }
    case 'character': {
      const isIn = characterTest(node.raw, flags);
      return (at, next) => {
        step(search);
        const character = search.text[at];
        return character !== undefined && isIn(character) && next(at + 1);
      };
    }
  }
}

function choice(options: readonly RegexNode[][], search: Search, flags: string): Matcher {
  const matchers = options.map((sequence) =>
    sequence
      .map((node) => compile(node, search, flags))
      .reduceRight<Matcher>(
        (rest, first) => (at, next) => first(at, (then) => rest(then, next)),
        (at, next) => next(at),
      ),
  );
  return (at, next) => matchers.some((matcher) => matcher(at, next));
}

/** As the engine itself decides it, remembered for each character. */
function characterTest(raw: string, flags: string): (character: string) => boolean {
  const single = new RegExp(`^(?:${raw})$`, flags.replace(/[gymd]/g, ''));
  const known = new Map<string, boolean>();
  return (character) => {
    const found = known.get(character) ?? single.test(character);
    known.set(character, found);
    return found;
  };
}

function repeated(
  { of, min, max, greedy }: Extract<RegexNode, { type: 'repeat' }>,
  search: Search,
  flags: string,
): Matcher {
  if (of.type === 'character' && greedy) return run(characterTest(of.raw, flags), { min, max }, search);
  const one = compile(of, search, flags);
  const repeat = (count: number, at: number, next: Next): boolean => {
    step(search);
    const more = () => count < max && one(at, (then) => (then > at || count < min) && repeat(count + 1, then, next));
    const enough = () => count >= min && next(at);
    return greedy ? more() || enough() : enough() || more();
  };
  return (at, next) => repeat(0, at, next);
}

/** Without a call for each character, which would fill the stack. */
function run(
  isIn: (character: string) => boolean,
  { min, max }: { min: number; max: number },
  search: Search,
): Matcher {
  return (start, next) => {
    let at = start;
    for (; at - start < max; at++) {
      step(search);
      const character = search.text[at];
      if (character === undefined || !isIn(character)) break;
    }
    for (; at - start >= min; at--) {
      step(search);
      if (next(at)) return true;
    }
    return false;
  };
}

function conditionOf(
  node: Extract<RegexNode, { type: 'edge' | 'look' }>,
  search: Search,
  flags: string,
): (at: number) => boolean {
  const { text } = search;
  if (node.type === 'look') {
    const matches = choice(node.options, search, flags);
    if (!node.behind) return (at) => matches(at, () => true) !== node.negate;
    // Those of ours look at one character.
    return (at) => (at > 0 && matches(at - 1, (end) => end === at)) !== node.negate;
  }
  const isWord = (at: number) => /\w/.test(text[at] ?? '');
  const isBreak = (at: number) => flags.includes('m') && /[\n\r\u2028\u2029]/.test(text[at] ?? '');
  if (node.kind === 'start') return (at) => at === 0 || isBreak(at - 1);
  if (node.kind === 'end') return (at) => at === text.length || isBreak(at);
  return (at) => (isWord(at - 1) !== isWord(at)) !== node.negate;
}

const CHARACTERS = Array.from(` \t\n\r\u2028\u00a0\u0000abzAZ09-_.,:;/\\@!?'"\`*+=~#$%&|^()[]{}<>é中`);
const ENDS = ['', '!', '\u0000', '\u2028!', '\n\n!', ' '];
const MAX_WORDS = 16;

/** Texts of about `length` characters in which repetitions of what the pattern looks for begin, and then fail. */
export function* hostileTexts(pattern: RegExp, length: number): Generator<string> {
  const { characters, words, prefixes } = partsOf(pattern);
  const pairs = characters.flatMap((first) => characters.map((second) => first + second));
  const joined = prefixes.flatMap((prefix) =>
    characters.flatMap((character) => [prefix + character, character + prefix]),
  );
  const pumps = new Set([...characters, ...words, ...prefixes, ...pairs, ...joined].filter((pump) => pump !== ''));
  for (const pump of pumps) {
    const repeated = pump.repeat(Math.ceil(length / pump.length));
    for (const prefix of new Set(['', ...prefixes])) yield prefix + repeated;
    for (const end of ENDS) for (const prefix of ['', prefixes.at(-1) ?? '']) yield prefix + repeated + end;
  }
}

interface Parts {
  /** One of each set of characters that the pattern tells apart. */
  characters: readonly string[];
  /** What parts of the pattern match. */
  words: readonly string[];
  /** What the pattern matches in front of each repetition. */
  prefixes: readonly string[];
}

function partsOf(pattern: RegExp): Parts {
  // Word boundaries tell these apart, too.
  const tests: ((character: string) => boolean)[] = [(character) => /\w/.test(character)];
  const words = new Set<string>();
  const prefixes = new Set<string>();
  const visit = (node: RegexNode, before: string): void => {
    if (node.type === 'character') tests.push(characterTest(node.raw, pattern.flags));
    else if (node.type === 'repeat') {
      prefixes.add(before);
      words.add(wordOf(node.of, pattern.flags));
      visit(node.of, before);
    } else if (node.type !== 'edge') visitAll(node.options, before);
  };
  const visitAll = (options: readonly RegexNode[][], before: string): void => {
    for (const sequence of options) {
      let text = before;
      for (const node of sequence) {
        visit(node, text);
        text += wordOf(node, pattern.flags);
      }
      words.add(text.slice(before.length));
    }
  };
  visitAll(parseRegex(pattern.source), '');
  const kinds = new Map<string, string>();
  const own = Array.from(pattern.source).filter((character) => /[a-z0-9]/i.test(character));
  for (const character of [...CHARACTERS, ...own]) {
    const kind = tests.map((isIn) => Number(isIn(character))).join('');
    if (!kinds.has(kind)) kinds.set(kind, character);
  }
  return {
    characters: [...kinds.values()].slice(0, MAX_WORDS),
    words: [...words].slice(0, MAX_WORDS),
    prefixes: [...prefixes].slice(-MAX_WORDS),
  };
}

/** A short text that the node matches. */
function wordOf(node: RegexNode, flags: string): string {
  if (node.type === 'character') {
    // What is no set stands for itself.
    const plain = /^\\?([^\\[.])$/.exec(node.raw)?.[1] ?? '';
    const isIn = characterTest(node.raw, flags);
    const candidates = [plain, ...CHARACTERS.filter((character) => /[a-z0-9]/i.test(character)), ...CHARACTERS];
    return candidates.find((character) => character !== '' && isIn(character)) ?? '';
  }
  if (node.type === 'repeat') return wordOf(node.of, flags).repeat(Math.max(node.min, Math.min(1, node.max)));
  if (node.type !== 'choice') return '';
  return (node.options[0] ?? []).map((part) => wordOf(part, flags)).join('');
}

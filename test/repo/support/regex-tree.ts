/** The parts of a regular expression, as far as the product uses them; what it does not use is an error. */

export type RegexNode =
  /** One character of a set, as it is written. */
  | { type: 'character'; raw: string }
  | { type: 'choice'; options: readonly RegexNode[][] }
  | { type: 'repeat'; of: RegexNode; min: number; max: number; greedy: boolean }
  | { type: 'edge'; kind: 'start' | 'end' | 'word'; negate: boolean }
  | { type: 'look'; behind: boolean; negate: boolean; options: readonly RegexNode[][] };

/** The alternatives of a pattern, each a sequence. */
export function parseRegex(source: string): RegexNode[][] {
  const parser = new Parser(source);
  const options = parser.options();
  if (parser.rest !== '') throw new Error(`${source} is not understood at ${parser.rest}`);
  return options;
}

const EDGES: Readonly<Record<string, { kind: 'start' | 'end' | 'word'; negate: boolean }>> = {
  '^': { kind: 'start', negate: false },
  $: { kind: 'end', negate: false },
  '\\b': { kind: 'word', negate: false },
  '\\B': { kind: 'word', negate: true },
};
const LOOKS: Readonly<Record<string, { behind: boolean; negate: boolean }>> = {
  '(?=': { behind: false, negate: false },
  '(?!': { behind: false, negate: true },
  '(?<=': { behind: true, negate: false },
  '(?<!': { behind: true, negate: true },
};
const CHARACTER =
  /^(?:\\(?:u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[pP]\{[^}]*\}|c[A-Za-z]|[^1-9k])|\[(?:\\[^]|[^\]\\])*\]|[^()|])/u;

class Parser {
  constructor(public rest: string) {}

  options(): RegexNode[][] {
    const options = [this.#sequence()];
    while (this.#take(/^\|/) !== undefined) options.push(this.#sequence());
    return options;
  }

  #sequence(): RegexNode[] {
    const nodes: RegexNode[] = [];
    while (this.rest !== '' && !/^[|)]/.test(this.rest)) nodes.push(this.#repeated(this.#single()));
    return nodes;
  }

  #single(): RegexNode {
    const edge = EDGES[this.#take(/^(?:[\^$]|\\[bB])/) ?? ''];
    if (edge !== undefined) return { type: 'edge', ...edge };
    const opening = this.#take(/^\((?:\?(?:[:=!]|<[=!]|<\w+>))?/);
    if (opening === undefined) return { type: 'character', raw: this.#expect(CHARACTER) };
    const options = this.options();
    this.#expect(/^\)/);
    const look = LOOKS[opening];
    return look === undefined ? { type: 'choice', options } : { type: 'look', ...look, options };
  }

  #repeated(node: RegexNode): RegexNode {
    const [, sign, least = '', comma, most = '', lazy] = /^(?:([*+?])|\{(\d+)(,)?(\d*)\})(\?)?/.exec(this.rest) ?? [];
    if (sign === undefined && least === '') return node;
    this.#expect(/^(?:[*+?]|\{[\d,]+\})\??/);
    const min = sign === undefined ? Number(least) : sign === '+' ? 1 : 0;
    const upTo = sign === undefined ? (comma === undefined ? least : most) : sign === '?' ? '1' : '';
    return { type: 'repeat', of: node, min, max: upTo === '' ? Infinity : Number(upTo), greedy: lazy === undefined };
  }

  #take(pattern: RegExp): string | undefined {
    const found = pattern.exec(this.rest)?.[0];
    if (found !== undefined) this.rest = this.rest.slice(found.length);
    return found;
  }

  #expect(pattern: RegExp): string {
    const found = this.#take(pattern);
    if (found === undefined) throw new Error(`not understood: ${this.rest}`);
    return found;
  }
}

/**
 * Pretty-prints JSON text in one pass without building values: it stops when enough was printed, keeps numbers and
 * strings as the sender wrote them (64-bit ids stay exact), and needs no memory for depth.
 */

/** Deeper JSON is shown as it came. */
export const MAX_JSON_DEPTH = 64;

export interface PrettyJson {
  /** The indented text, at least its first `limit` characters; undefined when the text is not JSON or too deep. */
  text: string | undefined;
  /** Characters looked at: the cost. */
  steps: number;
}

/** Indents an object or array like JSON.stringify(value, null, 2), until at least `limit` characters are printed. */
export function prettyJson(text: string, limit: number): PrettyJson {
  const printer = new JsonPrinter(text, limit);
  const printed = printer.print();
  return { text: printed, steps: printer.steps };
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS = ['true', 'false', 'null'];
/** Longer numbers are no JSON that a sender means; the bound keeps one number from being most of the work. */
const MAX_NUMBER = 1024;
const ESCAPES = new Set(Buffer.from('"\\/bfnrtu'));

/** A new line with the indentation of each depth. */
const NEWLINES = Array.from({ length: MAX_JSON_DEPTH + 1 }, (_, depth) => `\n${'  '.repeat(depth)}`);

/** Both are thrown inside the printer and never outside of it. */
class NotJson extends Error {}
class Full extends Error {}

class JsonPrinter {
  steps = 0;
  readonly #text: string;
  readonly #limit: number;
  readonly #out: string[] = [];
  #printed = 0;
  #at = 0;
  /** The closing brackets that are open. */
  readonly #open: ('}' | ']')[] = [];

  constructor(text: string, limit: number) {
    this.#text = text;
    this.#limit = limit;
  }

  print(): string | undefined {
    this.#skipSpace();
    if (this.#peek() !== '{' && this.#peek() !== '[') return undefined;
    try {
      this.#value();
      while (this.#open.length > 0 && !this.#full()) this.#next();
      if (!this.#full()) this.#end();
    } catch (error) {
      if (error instanceof NotJson) return undefined;
      if (!(error instanceof Full)) throw error;
    }
    return this.#out.join('');
  }

  /** After a value: a comma with the next member, or the end of the container. */
  #next(): void {
    this.#skipSpace();
    if (this.#peek() === this.#open.at(-1)) return this.#close();
    this.#expect(',');
    this.#emit(',');
    this.#member();
  }

  #member(): void {
    this.#newline();
    this.#skipSpace();
    if (this.#open.at(-1) === '}') {
      this.#string();
      this.#skipSpace();
      this.#expect(':');
      this.#emit(': ');
      this.#skipSpace();
    }
    this.#value();
  }

  /** Prints a scalar, or opens a container and prints what stands first in it. */
  #value(): void {
    const character = this.#peek();
    if (character === '"') return this.#string();
    if (character !== '{' && character !== '[') return this.#scalar();
    this.#at += 1;
    const close = character === '{' ? '}' : ']';
    this.#skipSpace();
    if (this.#peek() === close) {
      this.#at += 1;
      return this.#emit(character + close);
    }
    this.#open.push(close);
    if (this.#open.length > MAX_JSON_DEPTH) throw new NotJson();
    this.#emit(character);
    // At most MAX_JSON_DEPTH calls deep.
    this.#member();
  }

  #close(): void {
    const close = this.#open.pop() ?? '';
    this.#at += 1;
    this.#newline();
    this.#emit(close);
  }

  #string(): void {
    this.#expect('"');
    const start = this.#at - 1;
    // The rest of a string that alone fills the output is not looked at.
    const stop = Math.min(this.#text.length, start + this.#limit);
    while (this.#at < stop) {
      this.#skipPlain(stop);
      if (this.#at >= stop) break;
      const code = this.#text.charCodeAt(this.#at);
      if (code < 0x20) throw new NotJson();
      this.#at += 1;
      this.steps += 1;
      if (code === QUOTE) return this.#emit(this.#text.slice(start, this.#at));
      this.#escape();
    }
    if (this.#at >= this.#text.length) throw new NotJson();
    this.#emit(this.#text.slice(start, this.#at));
    throw new Full();
  }

  /** Moves to the next quote, backslash or control character, or to `stop`. */
  #skipPlain(stop: number): void {
    const text = this.#text;
    let at = this.#at;
    for (; at < stop; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE || code === BACKSLASH || code < 0x20) break;
    }
    this.steps += at - this.#at;
    this.#at = at;
  }

  #escape(): void {
    const code = this.#text.charCodeAt(this.#at);
    if (!ESCAPES.has(code)) throw new NotJson();
    const unicode = this.#text[this.#at] === 'u';
    if (unicode && !/^[0-9a-fA-F]{4}$/.test(this.#text.slice(this.#at + 1, this.#at + 5))) throw new NotJson();
    this.#at += unicode ? 5 : 1;
    this.steps += unicode ? 5 : 1;
  }

  #scalar(): void {
    const rest = this.#text.slice(this.#at, this.#at + MAX_NUMBER);
    NUMBER.lastIndex = 0;
    const token = WORDS.find((word) => rest.startsWith(word)) ?? NUMBER.exec(rest)?.[0];
    if (token === undefined || token.length === MAX_NUMBER) throw new NotJson();
    this.#at += token.length;
    this.steps += token.length;
    this.#emit(token);
  }

  #end(): void {
    this.#skipSpace();
    if (this.#at < this.#text.length) throw new NotJson();
  }

  #skipSpace(): void {
    SPACE.lastIndex = this.#at;
    SPACE.test(this.#text);
    this.steps += SPACE.lastIndex - this.#at;
    this.#at = SPACE.lastIndex;
  }

  #expect(character: string): void {
    if (this.#peek() !== character) throw new NotJson();
    this.#at += 1;
    this.steps += 1;
  }

  #peek(): string | undefined {
    return this.#text[this.#at];
  }

  #newline(): void {
    this.#emit(NEWLINES[this.#open.length] ?? '');
  }

  #emit(text: string): void {
    this.#out.push(text);
    this.#printed += text.length;
  }

  #full(): boolean {
    return this.#printed >= this.#limit;
  }
}

/**
 * How many tokens a text has, without the vocabulary of any model: words, numbers, signs and line breaks, each with the weight
 * that a fit to the vocabulary o200k gave them. On prose, code, JSON and YAML of this repository and of a hundred packages it
 * is within 8 % of the real count. A vocabulary itself would be megabytes in memory, and right for one provider alone; what a
 * provider counts differently is learned from its own answers (src/gateway/models/call-estimates.ts).
 */

const WEIGHTS = {
  word: 0.8,
  letter: 0.018,
  /** A word of more than seven letters is two tokens more often than one. */
  longWord: 0.55,
  /** Beyond the length of any word: keys, hashes. */
  strayLetter: 0.35,
  /** Up to three digits. */
  digits: 1.45,
  sign: 0.095,
  signs: 0.84,
  lineBreaks: 1.15,
  indent: 0.32,
  /** A letter of another alphabet, and of a script without spaces. */
  foreign: 0.31,
  ideograph: 0.71,
};
const LONG_WORD = 7;
const STRAY_AFTER = 14;
const DIGITS_IN_A_TOKEN = 3;

/** What a picture is counted with at most, whatever its bytes: providers count its area. */
const PICTURE_TOKENS = 5_000;
const BASE64 = /^(?:data:image\/[a-z.+-]{1,32};base64,)?[A-Za-z0-9+/]{4096}/;

type Kind = 'none' | 'word' | 'digits' | 'line-breaks' | 'spaces' | 'signs' | 'foreign' | 'ideographs';

/** Measures a text that comes in pieces: a word that is cut in the middle is one word. */
export class TokenMeter {
  #tokens = 0;
  #kind: Kind = 'none';
  #length = 0;
  #isLower = false;
  #characters = 0;

  add(text: string): void {
    this.#characters += text.length;
    for (let index = 0; index < text.length; index++) this.#read(text.charCodeAt(index));
  }

  /** Rounded up. */
  get tokens(): number {
    return Math.ceil(this.#tokens + this.#rest());
  }

  /** What was measured, in UTF-16 units. */
  get characters(): number {
    return this.#characters;
  }

  #read(code: number): void {
    const kind = kindOf(code);
    const isUpper = kind === 'word' && code <= 90;
    // camelCase is words.
    if (kind !== this.#kind || (isUpper && this.#isLower)) this.#begin(kind);
    this.#isLower = kind === 'word' && !isUpper;
    this.#length += 1;
    if (kind === 'word') this.#tokens += WEIGHTS.letter + (this.#length > STRAY_AFTER ? WEIGHTS.strayLetter : 0);
    else if (kind === 'signs') this.#tokens += WEIGHTS.sign;
    else if (kind === 'foreign') this.#tokens += WEIGHTS.foreign;
    else if (kind === 'ideographs') this.#tokens += WEIGHTS.ideograph;
  }

  #begin(kind: Kind): void {
    this.#tokens += this.#rest();
    this.#kind = kind;
    this.#length = 0;
  }

  /** What the run of equal characters at the end counts beside its characters. */
  #rest(): number {
    switch (this.#kind) {
      case 'word':
        return WEIGHTS.word + (this.#length > LONG_WORD ? WEIGHTS.longWord : 0);
      case 'digits':
        return WEIGHTS.digits * Math.ceil(this.#length / DIGITS_IN_A_TOKEN);
      case 'signs':
        return WEIGHTS.signs;
      case 'line-breaks':
        return WEIGHTS.lineBreaks;
      case 'spaces':
        return this.#length > 1 ? WEIGHTS.indent : 0;
      default:
        return 0;
    }
  }
}

function kindOf(code: number): Kind {
  if ((code >= 97 && code <= 122) || (code >= 65 && code <= 90)) return 'word';
  if (code === 32 || code === 9) return 'spaces';
  if (code >= 48 && code <= 57) return 'digits';
  if (code === 10 || code === 13) return 'line-breaks';
  if (code < 128) return 'signs';
  return code < 0x2e80 ? 'foreign' : 'ideographs';
}

/** Tokens of all texts, numbers and names in a JSON value. */
export function tokensIn(value: unknown): number {
  const meter = new TokenMeter();
  let pictures = 0;
  const walk = (one: unknown): void => {
    if (typeof one === 'string') {
      if (BASE64.test(one)) pictures += 1;
      else meter.add(one);
    } else if (Array.isArray(one)) {
      for (const item of one) walk(item);
    } else if (typeof one === 'object' && one !== null) {
      for (const [name, item] of Object.entries(one)) {
        meter.add(name);
        meter.add(':');
        walk(item);
        meter.add('\n');
      }
    } else meter.add(String(one));
  };
  walk(value);
  return meter.tokens + pictures * PICTURE_TOKENS;
}

/**
 * JSON from a hostile side: how deep it nests and how many values it holds, names of members included, are found before a parser makes anything of it,
 * in one pass over the bytes. A small body can hold millions of values, which cost a hundred times its size once parsed,
 * and again for every check of them.
 */

/** Far above what any call, answer or report of ours needs. */
export const MAX_JSON_DEPTH = 64;
/** A name of a member counts as a value: it costs more than most of them. */
export const MAX_JSON_VALUES = 100_000;

export interface JsonLimits {
  depth: number;
  values: number;
}

const DEFAULT_LIMITS: JsonLimits = { depth: MAX_JSON_DEPTH, values: MAX_JSON_VALUES };

/** JSON that is valid or not, but more than is read. The message can follow "the body" or "the answer". */
export class JsonLimitError extends Error {
  override readonly name = 'JsonLimitError';
}

/** The parsed JSON. Throws a {@link JsonLimitError} for too much of it, and a SyntaxError for what is no JSON or no UTF-8. */
export function parseJson(body: Uint8Array, limits: Partial<JsonLimits> = {}): unknown {
  expectLimits(body, limits);
  return parseCheckedJson(body);
}

/** The JSON of a body that {@link expectLimits} has passed. Throws a SyntaxError for what is no JSON or no UTF-8. */
export function parseCheckedJson(body: Uint8Array): unknown {
  return JSON.parse(decode(body));
}

/** As {@link parseJson}, for a text. */
export function parseJsonText(text: string, limits: Partial<JsonLimits> = {}): unknown {
  expectLimits(Buffer.from(text), limits);
  return JSON.parse(text);
}

/** Looks at bytes outside strings only; what is not JSON may get any answer. */
export function expectLimits(body: Uint8Array, limits: Partial<JsonLimits> = {}): void {
  const { depth: maxDepth, values: maxValues } = { ...DEFAULT_LIMITS, ...limits };
  let depth = 0;
  // Every value but the first of each list and object stands behind a comma, and these are behind their bracket; a name
  // stands before a colon.
  let values = 1;
  let inString = false;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i];
    if (inString) {
      if (byte === 0x5c) i += 1;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      values += 1;
      if (depth > maxDepth) throw new JsonLimitError(`nests deeper than ${maxDepth}`);
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
    else if (byte === 0x2c || byte === 0x3a) values += 1;
    if (values > maxValues) throw new JsonLimitError(`has more than ${maxValues} values`);
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function decode(body: Uint8Array): string {
  try {
    return UTF8.decode(body);
  } catch {
    throw new SyntaxError('not UTF-8');
  }
}

/**
 * The source text of a number that is a direct member of the outermost object: its last one of that name, as JSON.parse
 * has it. Undefined when there is none. The text must be JSON. Reads each character once.
 */
export function numberAsWritten(text: string, name: string): string | undefined {
  let depth = 0;
  let key: string | undefined;
  let found: string | undefined;
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string;
    if (char === '"') {
      const end = endOfString(text, i);
      // In the outermost object a string behind a bracket or comma is a key: what is no key is not followed by a colon.
      key = depth === 1 ? keyIn(text.slice(i, Math.min(end, i + longestKey(name))), end - i) : undefined;
      i = end - 1;
    } else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    else if (char === ',') key = undefined;
    else if (char === ':' && depth === 1 && key === name) {
      const value = /\s*([-+.0-9eE]+)?/y;
      value.lastIndex = i + 1;
      found = value.exec(text)?.[1];
    }
  }
  return found;
}

/** Each character may be written as an escape of six. */
function longestKey(name: string): number {
  return name.length * 6 + 2;
}

function keyIn(quoted: string, length: number): string | undefined {
  return quoted.length === length ? (JSON.parse(quoted) as string) : undefined;
}

/** The index behind the closing quote of the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === '"') return i + 1;
  }
  return text.length;
}

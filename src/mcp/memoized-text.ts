/**
 * The JSON text of payloads with frozen lists (src/services/memoized-lists.ts). What is frozen never changes, so its text is made
 * once and lives as long as it does: making it for each call was most of the work of reading a long list in the benchmark.
 */

/** The payload as JSON, and the same as it stands inside a JSON string, each in pieces. */
export interface JsonPieces {
  plain: Piece[];
  quoted: Piece[];
}

export type Piece = string | Buffer;

/** The bytes of a text; those of memoized texts are not copied. */
export function bytesOf(pieces: readonly Piece[]): Buffer[] {
  const bytes: Buffer[] = [];
  let text = '';
  for (const piece of pieces) {
    if (typeof piece === 'string') {
      text += piece;
      continue;
    }
    bytes.push(Buffer.from(text), piece);
    text = '';
  }
  return [...bytes, Buffer.from(text)];
}

type List = readonly unknown[];

/** Whether a field of the payload is a frozen list. */
export function hasFrozenList(payload: object): boolean {
  return Object.values(payload).some(isFrozenList);
}

function isFrozenList(value: unknown): value is List {
  return Array.isArray(value) && Object.isFrozen(value);
}

/** What `JSON.stringify` gives for a payload, with the texts of frozen lists and records memoized. */
export function memoizedJson(payload: object): JsonPieces {
  const pieces: JsonPieces = { plain: [], quoted: [] };
  const add = (plain: Piece, quoted: Piece) => {
    pieces.plain.push(plain);
    pieces.quoted.push(quoted);
  };
  add('{', '{');
  let before = '';
  for (const [name, value] of Object.entries(payload)) {
    if (value === undefined) continue;
    const field = `${before}${JSON.stringify(name)}:`;
    before = ',';
    if (isFrozenList(value)) {
      add(field, inString(field));
      const { plain, quoted } = listText(value);
      add(plain, quoted);
    } else {
      const text = field + JSON.stringify(value);
      add(text, inString(text));
    }
  }
  add('}', '}');
  return pieces;
}

interface Text<T> {
  plain: T;
  quoted: T;
}

const lists = new WeakMap<List, Text<Buffer>>();
const records = new WeakMap<object, Text<string>>();

function listText(list: List): Text<Buffer> {
  const known = lists.get(list);
  if (known !== undefined) return known;
  const texts = list.map(recordText);
  const text = {
    plain: Buffer.from(`[${texts.map(({ plain }) => plain).join(',')}]`),
    quoted: Buffer.from(`[${texts.map(({ quoted }) => quoted).join(',')}]`),
  };
  lists.set(list, text);
  return text;
}

function recordText(record: unknown): Text<string> {
  const isMemoized = typeof record === 'object' && record !== null && Object.isFrozen(record);
  const known = isMemoized ? records.get(record) : undefined;
  if (known !== undefined) return known;
  const plain = JSON.stringify(record);
  const text = { plain, quoted: inString(plain) };
  if (isMemoized) records.set(record, text);
  return text;
}

/** JSON text as it stands between the quotation marks of a JSON string. */
function inString(json: string): string {
  return JSON.stringify(json).slice(1, -1);
}

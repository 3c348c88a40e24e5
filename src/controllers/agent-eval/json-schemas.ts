/** JSON Schemas of evals: those of src/run/output-schema.ts, without what could keep the thread of the leading controller busy. */
import { OutputSchemaError, compactJson, outputCheckOf } from '../../run/output-schema.js';
import type { Compiled } from './patterns.js';

const MAX_SCHEMA_BYTES = 4 * 1024;
/** Parts of the schema times values of the message: each may be checked against each. Some tens of milliseconds at worst. */
const MAX_CHECKS = 50_000;
/** A pattern may read a text again and again, and a schema that refers to itself may check a value again and again. */
const COSTLY = ['pattern', '$ref'];
/** Their members are called as one likes. */
const MAPS = ['properties', '$defs', 'definitions'];

/** What does not fit of a text, as a sentence; undefined when it fits. */
export function compileJsonSchema(
  schema: Readonly<Record<string, unknown>>,
): Compiled<(text: string) => string | undefined> {
  const text = compactJson(schema);
  if (text === undefined) return { problem: 'it nests too deep' };
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_SCHEMA_BYTES) return { problem: `it has ${bytes} bytes; at most ${MAX_SCHEMA_BYTES} are possible` };
  const costly = costlyIn(schema);
  if (costly !== undefined) return { problem: `${costly} is not possible here` };
  try {
    const check = outputCheckOf(schema);
    const parts = marksIn(text);
    return {
      check: (message) => {
        if (parts * marksIn(message) > MAX_CHECKS) return 'it has too many values to be checked against this schema';
        const checked = check(message);
        return 'problem' in checked ? checked.problem : undefined;
      },
    };
  } catch (error) {
    if (!(error instanceof OutputSchemaError)) throw error;
    return { problem: error.message };
  }
}

/** What stands in front of a value in JSON: no fewer than there are values. */
function marksIn(text: string): number {
  return text.match(/[[{,]/g)?.length ?? 0;
}

function costlyIn(node: unknown): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined;
  for (const [key, value] of Object.entries(node)) {
    if (COSTLY.includes(key) && !Array.isArray(node)) return key;
    const below =
      MAPS.includes(key) && typeof value === 'object' && value !== null ? Object.values(value as object) : [value];
    const found = below.map(costlyIn).find((one) => one !== undefined);
    if (found !== undefined) return found;
  }
  return undefined;
}

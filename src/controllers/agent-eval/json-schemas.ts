/** JSON Schemas of evals: those of src/run/output-schema.ts, without what could keep the thread of the leading controller busy. */
import { OutputSchemaError, outputCheckOf } from '../../run/output-schema.js';
import type { Compiled } from './patterns.js';

const MAX_SCHEMA_BYTES = 4 * 1024;
/** A pattern may read a text again and again, and a schema that refers to itself may check a value again and again. */
const COSTLY = ['pattern', '$ref'];
/** Their members are called as one likes. */
const MAPS = ['properties', '$defs', 'definitions'];

/** What does not fit of a text, as a sentence; undefined when it fits. */
export function compileJsonSchema(
  schema: Readonly<Record<string, unknown>>,
): Compiled<(text: string) => string | undefined> {
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > MAX_SCHEMA_BYTES) return { problem: `it has ${bytes} bytes; at most ${MAX_SCHEMA_BYTES} are possible` };
  const costly = costlyIn(schema);
  if (costly !== undefined) return { problem: `${costly} is not possible here` };
  try {
    const check = outputCheckOf(schema);
    return {
      check: (text) => {
        const checked = check(text);
        return 'problem' in checked ? checked.problem : undefined;
      },
    };
  } catch (error) {
    if (!(error instanceof OutputSchemaError)) throw error;
    return { problem: error.message };
  }
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

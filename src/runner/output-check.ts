/**
 * The check of a run's last message, with a bound in time: a pattern of the schema may read a text again and again, and a schema
 * that refers to itself check a value again and again, while the run could neither be cancelled nor say that it lives.
 */
import { createContext, runInContext } from 'node:vm';
import { outputCheckOf } from '../run/output-schema.js';
import type { CheckedOutput, OutputCheck } from '../run/output-schema.js';

/** A thousand times what the largest of the usual ones takes. */
const MOST_MS = 5_000;

/** Throws an OutputSchemaError for a schema that cannot be used. */
export function boundedOutputCheck(schema: Readonly<Record<string, unknown>>, mostMs = MOST_MS): OutputCheck {
  const check = outputCheckOf(schema);
  return (text) => {
    // V8 ends what runs too long wherever it is, in the middle of an expression too.
    const context = createContext({ check: () => check(text) });
    try {
      return runInContext('check()', context, { timeout: mostMs }) as CheckedOutput;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      return { problem: 'checking it against the patterns and references of outputSchema takes too long' };
    }
  };
}

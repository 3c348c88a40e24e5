/**
 * Regular expressions of people, on the thread of the leading controller: RE2 reads a text once, whatever the expression, and
 * the size of its program bounds what one character costs.
 */
import { RE2JS } from 're2js';

/** Instructions of a compiled expression. */
const MAX_PROGRAM = 2_000;

/** A check of a text, or why there is none. */
export type Compiled<Check> = { problem: string; check?: undefined } | { problem?: undefined; check: Check };

/** Whether a text has a match. */
export function compilePattern(source: string): Compiled<(text: string) => boolean> {
  try {
    const pattern = RE2JS.compile(source);
    if (pattern.programSize() > MAX_PROGRAM) return { problem: 'the expression is too large: repeat less in it' };
    return { check: (text) => pattern.matcher(text).find() };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : 'it is no regular expression' };
  }
}

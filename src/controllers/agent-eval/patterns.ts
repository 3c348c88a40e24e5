/**
 * Regular expressions of people, on the thread of the leading controller: RE2 reads a text once, whatever the expression, and
 * the size of its program times that of the text bounds what a check costs.
 */
import { RE2JS } from 're2js';

/** Instructions of a compiled expression. */
const MAX_PROGRAM = 2_000;
/** Repeats with a number are compiled as often as the number says, before anybody knows the size of the program. */
const MAX_REPEATS = 10;
const MAX_REPEATED = 1_000;
/** Instructions times characters: some tens of milliseconds at worst. */
const MAX_STEPS = 1_000_000;

/** A check of a text, or why there is none. */
export type Compiled<Check> = { problem: string; check?: undefined } | { problem?: undefined; check: Check };

/** Whether a text has a match; undefined for a text that is too long for the expression. */
export type PatternCheck = (text: string) => boolean | undefined;

/** An expression of people as a check. */
export function compilePattern(source: string): Compiled<PatternCheck> {
  const tooLarge = { problem: 'the expression is too large: repeat less in it' };
  const repeats = [...source.matchAll(/\{(\d{1,9})(?:,(\d{0,9}))?\}/g)].map(([, least, most]) => Number(most || least));
  if (repeats.length > MAX_REPEATS || repeats.reduce((sum, one) => sum + one, 0) > MAX_REPEATED) return tooLarge;
  try {
    const pattern = RE2JS.compile(source);
    const size = pattern.programSize();
    if (size > MAX_PROGRAM) return tooLarge;
    return { check: (text) => (size * text.length > MAX_STEPS ? undefined : pattern.matcher(text).find()) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : 'it is no regular expression' };
  }
}

/** Arguments of a model against the schema of a tool: a number out of its bounds is moved to the bound, the rest is told in words. */
import type { z } from 'zod';
import { issuePath, joinIssues } from './issues.js';

const MAX_SHOWN_VALUE = 80;

/** `problem` is for the model; so are the notes, each about a number that was moved. */
export type FittedInput = { input: Record<string, unknown>; notes: string[] } | { problem: string };

/** The input as the tool gets it. Pure. */
export function fitInput(schema: z.ZodType, input: unknown): FittedInput {
  const checked = schema.safeParse(input);
  if (checked.success) return { input: checked.data as Record<string, unknown>, notes: [] };
  const moved = structuredClone(input);
  const notes = checked.error.issues.flatMap((issue) => moveToBound(moved, issue));
  const again = notes.length === 0 ? checked : schema.safeParse(moved);
  if (again.success) return { input: again.data as Record<string, unknown>, notes };
  return { problem: describeMisfit(again.error, moved) };
}

/** `count is "two", and must be a number; name is missing`, with as many faults as help. */
export function describeMisfit({ issues }: z.ZodError, input: unknown): string {
  return joinIssues(issues, (issue) => {
    const name = issue.path.length === 0 ? 'the input' : issuePath(issue);
    const given = valueAt(input, issue.path);
    if (given === undefined) return `${name} is missing`;
    return `${name} is ${shown(given)}, and must be ${allowed(issue)}`;
  });
}

type Issue = z.core.$ZodIssue;

function moveToBound(input: unknown, issue: Issue): string[] {
  if (issue.code !== 'too_big' && issue.code !== 'too_small') return [];
  const bound = issue.code === 'too_big' ? issue.maximum : issue.minimum;
  const key = issue.path.at(-1);
  const parent = valueAt(input, issue.path.slice(0, -1));
  if (key === undefined || typeof bound !== 'number' || issue.inclusive === false) return [];
  const given = valueAt(parent, [key]);
  if (typeof given !== 'number') return [];
  (parent as Record<PropertyKey, unknown>)[key] = bound;
  const word = issue.code === 'too_big' ? 'most' : 'least';
  return [`${issuePath(issue)} was ${given}; at ${word} ${bound} is allowed, so ${bound} was used`];
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<PropertyKey, unknown>)[key];
  }
  return at;
}

function shown(value: unknown): string {
  const json = JSON.stringify(value);
  return json.length <= MAX_SHOWN_VALUE ? json : `${json.slice(0, MAX_SHOWN_VALUE).toWellFormed()}…`;
}

function allowed(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return KINDS[issue.expected] ?? issue.expected;
    case 'too_big':
      return `at most ${issue.maximum}${unitOf(issue.origin)}`;
    case 'too_small':
      return `at least ${issue.minimum}${unitOf(issue.origin)}`;
    case 'invalid_value':
      return `one of ${issue.values.map((value) => shown(value)).join(', ')}`;
    case 'invalid_format':
      return issue.pattern === undefined ? `of the form ${issue.format}` : `of the form ${issue.pattern}`;
    default:
      return `another value (${issue.message})`;
  }
}

const KINDS: Partial<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

function unitOf(origin: string): string {
  if (origin === 'string') return ' characters long';
  return origin === 'array' ? ' entries long' : '';
}

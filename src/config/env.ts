/**
 * Settings of a process come from environment variables `BOXWRIGHT_…` and are read once, at start. A process with a wrong
 * setting does not start, and says everything that is wrong at once.
 *
 * A process describes its settings as a zod object: key `publicUrl` is variable `BOXWRIGHT_PUBLIC_URL`. Variables are
 * text, so a number is `z.coerce.number()` and a flag `z.stringbool()`. Every field has a description, which is shown
 * in errors and in the docs.
 */
import type { z } from 'zod';

const PREFIX = 'BOXWRIGHT_';

/** Kubernetes adds such variables for every Service of the namespace unless the pod sets enableServiceLinks: false. */
const SERVICE_LINK = /_SERVICE_(HOST|PORT)(_|$)|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$/;

/** All problems of the environment, one a line; never the values, which may be secrets. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly problems: readonly string[]) {
    super(`the environment is not valid:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
  }
}

/**
 * Reads the variables of one process. An empty value counts as not set. Throws a {@link ConfigError} that names every
 * wrong, missing and unknown `BOXWRIGHT_` variable and what is expected there.
 */
export function loadConfig<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  env: Readonly<Record<string, string | undefined>>,
): z.output<z.ZodObject<Shape>> {
  const keys = Object.keys(schema.shape);
  const known = new Map(keys.map((key) => [variableName(key), key]));
  const problems = unknownVariables(known, env);
  const input: Record<string, string> = {};
  for (const [variable, key] of known) {
    const value = env[variable];
    if (value !== undefined && value !== '') input[key] = value;
  }
  const parsed = schema.safeParse(input);
  for (const issue of parsed.error?.issues ?? []) problems.push(describeIssue(schema, issue, input));
  if (problems.length > 0 || parsed.data === undefined) throw new ConfigError(problems);
  return parsed.data;
}

/** `publicUrl` -> `BOXWRIGHT_PUBLIC_URL`. */
export function variableName(key: string): string {
  return PREFIX + key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

export interface ConfigVariable {
  variable: string;
  required: boolean;
  /** The default as text; absent when there is none. */
  default?: string;
  description: string;
}

/** The variables of a process, in the order of the schema. */
export function describeConfig(schema: z.ZodObject): ConfigVariable[] {
  return Object.entries(schema.shape).map(([key, field]) => {
    const unset = (field as z.ZodType).safeParse(undefined);
    return {
      variable: variableName(key),
      required: !unset.success,
      ...(unset.data === undefined ? {} : { default: textOf(unset.data) }),
      description: (field as z.ZodType).description ?? '',
    };
  });
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The variables as a Markdown table for the docs. */
export function renderConfigTable(schema: z.ZodObject): string {
  const rows = describeConfig(schema).map(
    ({ variable, required, default: value, description }) =>
      `| \`${variable}\` | ${required ? 'required' : value === undefined ? '' : `\`${value}\``} | ${cell(description)} |`,
  );
  return ['| Variable | Default | Meaning |', '| --- | --- | --- |', ...rows, ''].join('\n');
}

function cell(text: string): string {
  return text.replace(/\|/g, '\\|');
}

function unknownVariables(known: ReadonlyMap<string, string>, env: Readonly<Record<string, unknown>>): string[] {
  const unknown = Object.keys(env).filter((name) => name.startsWith(PREFIX) && !known.has(name));
  const list = [...known.keys()].join(', ');
  return unknown.sort().map((name) => {
    const hint = SERVICE_LINK.test(name)
      ? '; if Kubernetes added it for a Service, set enableServiceLinks: false on the pod'
      : '';
    return `${name}: unknown variable${hint}; known are ${list}`;
  });
}

function describeIssue(schema: z.ZodObject, issue: z.core.$ZodIssue, input: Record<string, string>): string {
  const [key] = issue.path;
  // A refinement of the whole object is about several variables: its message names them.
  if (typeof key !== 'string') return issue.message;
  const description = (schema.shape[key] as z.ZodType | undefined)?.description;
  const expected = description === undefined ? '' : ` (${description})`;
  const message = Object.hasOwn(input, key) ? issue.message : 'is required and not set';
  return `${variableName(key)}: ${message}${expected}`;
}

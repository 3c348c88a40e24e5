/**
 * Checks the arguments of a call and says in words which one is wrong and what was expected. Values are never quoted:
 * they may be secrets. Unknown arguments are ignored, null means "not given".
 */
import { z } from 'zod';
import { issuePath, joinIssues } from '../protocol/issues.js';
import { findOversized, withoutWrappers } from '../protocol/bounded-parse.js';
import { UserError } from '../api/user-error.js';

/** The arguments as the tool wants them; throws a {@link UserError} that names the wrong ones. */
export function checkArguments<S extends z.ZodObject>(schema: S, given: Record<string, unknown>): z.output<S> {
  const oversized = findOversized(schema, given);
  if (oversized !== undefined) throw new UserError(describe(oversized, schema, given));
  const args = withoutNulls(schema, given);
  const parsed = schema.safeParse(args);
  if (parsed.success) return parsed.data;
  throw new UserError(joinIssues(parsed.error.issues, (issue) => describe(issue, schema, args)));
}

/** Removes nulls of known objects, but not where null has a meaning; a free-form argument keeps its own. */
function withoutNulls(schema: z.ZodObject, given: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    // Setting it would change the prototype and with it every other argument.
    if (name === '__proto__') continue;
    const field = Object.hasOwn(schema.shape, name) ? (schema.shape[name] as z.ZodType) : undefined;
    if (value === null && !takesNull(field)) continue;
    const inner = unwrap(field);
    kept[name] = inner === undefined ? value : nested(inner, value);
  }
  return kept;
}

function nested(schema: z.ZodType, value: unknown): unknown {
  if (schema instanceof z.ZodObject && isObject(value)) return withoutNulls(schema, value);
  if (schema instanceof z.ZodArray && Array.isArray(value)) {
    return value.map((item) => nested(unwrap(schema.element as z.ZodType) ?? schema, item));
  }
  return value;
}

function takesNull(schema: z.ZodType | undefined): boolean {
  if (schema instanceof z.ZodNullable) return true;
  return isWrapper(schema) && takesNull(schema.unwrap() as z.ZodType);
}

function unwrap(schema: z.ZodType | undefined): z.ZodType | undefined {
  return schema === undefined ? undefined : withoutWrappers(schema);
}

function isWrapper(schema: z.ZodType | undefined): schema is z.ZodOptional | z.ZodDefault {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodDefault;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function describe(issue: z.core.$ZodIssue, schema: z.ZodObject, args: Record<string, unknown>): string {
  const name = nameOf(issue.path);
  const value = valueAt(args, issue.path);
  switch (issue.code) {
    case 'invalid_type':
      if (value === undefined) return `missing required argument: ${name} (${expectedType(issue.expected)})`;
      return `argument "${name}" must be ${aType(issue.expected)}, got ${aType(typeOf(value))}`;
    case 'invalid_value':
      if (value === undefined) return `missing required argument: ${name}`;
      return `argument "${name}" must be one of: ${issue.values.join(', ')}`;
    case 'too_small':
      return `argument "${name}" must ${bound(issue.origin, 'at least', Number(issue.minimum))}`;
    case 'too_big':
      return `argument "${name}" must ${bound(issue.origin, 'at most', Number(issue.maximum))}`;
    case 'unrecognized_keys':
      return `unknown key ${shownKeys(issue.keys)} in argument "${name}"; known are: ${knownKeys(schema, issue.path)}`;
    case 'invalid_union':
      if (value === undefined) return `missing required argument: ${name}`;
      return `argument "${name}" must be ${unionTypes(schema, issue.path)}, got ${aType(typeOf(value))}`;
    default:
      return `argument "${name}": ${issue.message}`;
  }
}

function nameOf(path: readonly PropertyKey[]): string {
  return issuePath({ path });
}

const MAX_SHOWN_KEYS = 10;

function shownKeys(keys: readonly string[]): string {
  const shown = keys.slice(0, MAX_SHOWN_KEYS).map((key) => `"${key.slice(0, 40)}"`);
  return `${shown.join(', ')}${keys.length > MAX_SHOWN_KEYS ? ' and more' : ''}`;
}

function valueAt(args: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (at, key) => (typeof at === 'object' && at !== null ? (at as Record<PropertyKey, unknown>)[key] : undefined),
    args,
  );
}

function knownKeys(schema: z.ZodObject, path: readonly PropertyKey[]): string {
  const inner = schemaAt(schema, path);
  return inner instanceof z.ZodObject ? Object.keys(inner.shape).join(', ') : '';
}

function unionTypes(schema: z.ZodObject, path: readonly PropertyKey[]): string {
  const inner = schemaAt(schema, path);
  const options = inner instanceof z.ZodUnion ? (inner.options as z.ZodType[]) : [];
  return options.map((option) => aType(option.type)).join(' or ');
}

function schemaAt(schema: z.ZodObject, path: readonly PropertyKey[]): z.ZodType | undefined {
  return path.reduce<z.ZodType | undefined>((at, key) => {
    if (at instanceof z.ZodArray) return unwrap(at.element as z.ZodType);
    return at instanceof z.ZodObject ? unwrap(at.shape[String(key)] as z.ZodType | undefined) : undefined;
  }, schema);
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'number' && !Number.isInteger(value) ? 'number with a fraction' : typeof value;
}

const TYPE_NAMES: Record<string, string> = { int: 'whole number', record: 'object' };

function expectedType(expected: string): string {
  return TYPE_NAMES[expected] ?? expected;
}

function aType(type: string): string {
  const name = expectedType(type);
  if (name === 'null') return name;
  return `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`;
}

/** `have at least 1 character`, `be at most 200`. */
function bound(origin: string, which: 'at least' | 'at most', limit: number): string {
  if (origin === 'string') return `have ${which} ${limit} character${limit === 1 ? '' : 's'}`;
  if (origin === 'record') return `have ${which} ${limit} entr${limit === 1 ? 'y' : 'ies'}`;
  if (origin === 'array') return `have ${which} ${limit} item${limit === 1 ? '' : 's'}`;
  return `be ${which} ${limit}`;
}

/**
 * Foreign values against their schemas with work that the faults in them cannot multiply. zod alone checks every entry of
 * a list before it says that the list is too long, and makes an issue for every fault: 100,000 entries that are all wrong
 * cost seconds.
 */
import { z } from 'zod';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Faults in a list of fewer entries may all be told. */
const FEW = 16;

/** As `schema.safeParse`, but only the first fault of a long list is found. */
export function parseBounded<S extends z.ZodType>(schema: S, value: unknown): z.ZodSafeParseResult<z.output<S>> {
  const issue = visit({ checksEntries: true }, schema, value, []);
  if (issue !== undefined) return { success: false, error: new z.ZodError([issue]) as z.ZodError<z.output<S>> };
  return schema.safeParse(value);
}

/** The first list or record with more entries than its schema allows; nothing else is checked. */
export function findOversized(schema: z.ZodType, value: unknown): Issue | undefined {
  return visit({ checksEntries: false }, schema, value, []);
}

/** The most entries or characters, or the largest number, that a schema takes; undefined without a maximum. */
export function maximumOf(schema: z.ZodType): number | undefined {
  const checks = schema._zod.def.checks ?? [];
  return checks.map(maximumIn).find((maximum) => maximum !== undefined);
}

/** What zod keeps of its checks, and of ours for records, for which it has none. */
interface KnownCheck {
  check: string;
  maximum?: number;
  length?: number;
  value?: number;
  params?: { maxEntries?: number };
}

function maximumIn(check: z.core.$ZodCheck): number | undefined {
  const def = check._zod.def as KnownCheck;
  if (def.check === 'max_length') return def.maximum;
  if (def.check === 'length_equals') return def.length;
  return def.check === 'less_than' ? def.value : def.params?.maxEntries;
}

/** A record of at most so many entries. Its JSON Schema is that of any record. */
export function boundedRecord<K extends z.core.$ZodRecordKey, V extends z.ZodType>(key: K, value: V, maximum: number) {
  return z.record(key, value).refine((record) => Object.keys(record).length <= maximum, {
    error: `must have at most ${maximum} entries`,
    params: { maxEntries: maximum } satisfies KnownCheck['params'],
  });
}

/** The schema under what only says that a value may be missing. */
export function withoutWrappers(schema: z.ZodType): z.ZodType {
  const isWrapper =
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault;
  return isWrapper ? withoutWrappers(schema.unwrap() as z.ZodType) : schema;
}

interface Visit {
  /** Whether each entry of a long list is checked by itself, up to the first that is wrong. */
  checksEntries: boolean;
}

function visit(how: Visit, schema: z.ZodType, value: unknown, path: Path): Issue | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const inner = withoutWrappers(schema);
  if (inner instanceof z.ZodUnion) return visitUnion(how, inner, value, path);
  if (Array.isArray(value)) return inner instanceof z.ZodArray ? visitList(how, inner, value, path) : undefined;
  if (inner instanceof z.ZodRecord) return visitRecord(how, inner, value, path);
  if (!(inner instanceof z.ZodObject)) return undefined;
  for (const [name, field] of Object.entries(inner.shape)) {
    if (!Object.hasOwn(value, name)) continue;
    const issue = visit(how, field, (value as Record<string, unknown>)[name], [...path, name]);
    if (issue !== undefined) return issue;
  }
  return undefined;
}

function visitList(how: Visit, schema: z.ZodArray, list: readonly unknown[], path: Path): Issue | undefined {
  const maximum = maximumOf(schema);
  if (maximum !== undefined && list.length > maximum) return tooBig('array', maximum, path);
  const element = schema.element as z.ZodType;
  const checksEach = how.checksEntries && list.length > FEW;
  for (const [index, entry] of list.entries()) {
    const at = [...path, index];
    const issue = visit(how, element, entry, at) ?? (checksEach ? firstIssue(element, entry, at) : undefined);
    if (issue !== undefined) return issue;
  }
  return undefined;
}

function visitRecord(how: Visit, schema: z.ZodRecord, record: object, path: Path): Issue | undefined {
  const maximum = maximumOf(schema);
  const entries = Object.entries(record);
  if (maximum !== undefined && entries.length > maximum) return tooBig('record', maximum, path);
  for (const [key, entry] of entries) {
    const issue = visit(how, schema.valueType as z.ZodType, entry, [...path, key]);
    if (issue !== undefined) return issue;
  }
  return undefined;
}

/** What every option says whose literals the value has. */
function visitUnion(how: Visit, union: z.ZodUnion, value: object, path: Path): Issue | undefined {
  const options = (union.options as z.ZodType[]).filter((option) => mayBe(withoutWrappers(option), value));
  const issues = options.map((option) => visit(how, option, value, path));
  return issues.every((issue) => issue !== undefined) ? issues[0] : undefined;
}

function mayBe(option: z.ZodType, value: object): boolean {
  if (Array.isArray(value)) return option instanceof z.ZodArray;
  if (!(option instanceof z.ZodObject)) return option instanceof z.ZodRecord;
  return Object.entries(option.shape as Record<string, z.ZodType>).every(
    ([name, field]) =>
      !(field instanceof z.ZodLiteral) || field.values.has((value as Record<string, z.core.util.Literal>)[name]),
  );
}

function firstIssue(schema: z.ZodType, value: unknown, path: Path): Issue | undefined {
  const issue = schema.safeParse(value).error?.issues[0];
  return issue === undefined ? undefined : { ...issue, path: [...path, ...issue.path] };
}

function tooBig(origin: 'array' | 'record', maximum: number, path: Path): Issue {
  return {
    code: 'too_big',
    origin,
    maximum,
    inclusive: true,
    path: [...path],
    message: `must have at most ${maximum} entries`,
  };
}

/**
 * The JSON Schema of an agent's last message. zod checks the values; here stands which schemas it checks as they are meant, so
 * that no keyword is passed over in silence: one that is not known is an error in front of the first run. Pure.
 */
import { z } from 'zod';
import { JsonLimitError, expectLimits, parseJsonText } from '../protocol/json-limits.js';
import { describeIssues } from '../protocol/issues.js';
import { faultOfReferences } from './schema-references.js';

/** As compact JSON. */
export const MAX_OUTPUT_SCHEMA_BYTES = 16 * 1024;
const MAX_DEPTH = 32;
/** Of the JSON: each schema stands in a map or a list of another one. */
const MAX_JSON_DEPTH = 2 * MAX_DEPTH + 2;

type Json = Readonly<Record<string, unknown>>;

/** What an agent's last message is: the JSON alone, or why it does not fit. */
export type CheckedOutput = { json: string } | { problem: string };

/** Checks one text. */
export type OutputCheck = (text: string) => CheckedOutput;

/** A schema that cannot be used, in a sentence for a person. */
export class OutputSchemaError extends Error {
  override readonly name = 'OutputSchemaError';
}

/** Undefined for what nests deeper than anybody writes it: no API server looks into a schema. */
export function compactJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** The schema as compact JSON, and why it cannot be that. Manifests hold whatever their writers like. */
export function outputSchemaText(schema: Json): { text: string } | { problem: string } {
  const text = compactJson(schema);
  if (text === undefined) return { problem: `it nests deeper than ${MAX_DEPTH}` };
  const json = Buffer.from(text);
  if (json.length > MAX_OUTPUT_SCHEMA_BYTES)
    return { problem: `it has ${json.length} bytes; at most ${MAX_OUTPUT_SCHEMA_BYTES} are possible` };
  try {
    expectLimits(json, { depth: MAX_JSON_DEPTH });
    return { text };
  } catch (error) {
    if (error instanceof JsonLimitError) return { problem: `it nests deeper than ${MAX_DEPTH}` };
    throw error;
  }
}

/** Throws an {@link OutputSchemaError}. */
export function outputCheckOf(schema: Json): OutputCheck {
  const compact = outputSchemaText(schema);
  if ('problem' in compact) throw new OutputSchemaError(compact.problem);
  const read = prepared(schema, '', 0);
  const wrong = faultOfReferences(read);
  if (wrong !== undefined) throw fault('', wrong);
  const fits = typeOf(read);
  return (text) => {
    const json = unfenced(text);
    try {
      const { error } = fits.safeParse(parseJsonText(json));
      return error === undefined ? { json } : { problem: describeIssues(error) };
    } catch (error) {
      const what = error instanceof JsonLimitError ? `the JSON ${error.message}` : 'it is not JSON alone';
      return { problem: what };
    }
  };
}

function typeOf(schema: Json): z.ZodType {
  try {
    return z.fromJSONSchema(schema);
  } catch (error) {
    throw new OutputSchemaError((error as Error).message.slice(0, 300));
  }
}

/** Models like to put JSON into a fence, whatever they were asked. */
function unfenced(text: string): string {
  const trimmed = text.trim();
  if (!trimmed.startsWith('```') || !trimmed.endsWith('```')) return trimmed;
  const begin = trimmed.indexOf('\n');
  return begin === -1 ? trimmed : trimmed.slice(begin + 1, -3).trim();
}

/** Keywords whose value is no schema, with the type that they are about. */
const PLAIN: Readonly<Record<string, string | undefined>> = {
  type: undefined,
  enum: undefined,
  const: undefined,
  required: 'object',
  minProperties: 'object',
  maxProperties: 'object',
  minItems: 'array',
  maxItems: 'array',
  uniqueItems: 'array',
  minLength: 'string',
  maxLength: 'string',
  pattern: 'string',
  format: 'string',
  minimum: 'number',
  maximum: 'number',
  exclusiveMinimum: 'number',
  exclusiveMaximum: 'number',
  multipleOf: 'number',
};
/** They check nothing. `default` must not fill in what the model left out. */
const NOTES = new Set(['$schema', '$id', '$comment', 'title', 'description', 'default', 'examples', 'deprecated']);
const MAPS = new Set(['properties', '$defs']);
const LISTS = new Set(['anyOf', 'oneOf', 'allOf']);
const SCHEMAS = new Set(['items', 'additionalProperties']);

/** The schema as zod reads it right: no notes, a type for each check, and a property for each that is required. */
function prepared(node: unknown, path: string, depth: number): Json {
  if (typeof node !== 'object' || node === null || Array.isArray(node)) throw fault(path, 'must be an object');
  if (depth > MAX_DEPTH) throw fault(path, `nests deeper than ${MAX_DEPTH}`);
  const out: Record<string, unknown> = {};
  for (const [written, value] of Object.entries(node)) {
    // Their name before 2020.
    const key = written === 'definitions' ? '$defs' : written;
    if (NOTES.has(key) || key.startsWith('x-')) continue;
    out[key] = valueOf(key, value, { path: `${path}/${key}`, depth });
  }
  return withRequired(withType(out), path);
}

function valueOf(key: string, value: unknown, { path, depth }: { path: string; depth: number }): unknown {
  const inner = (schema: unknown, name: string) => prepared(schema, `${path}/${name}`, depth + 1);
  if (MAPS.has(key)) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw fault(path, 'must be an object');
    return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, inner(schema, name)]));
  }
  if (LISTS.has(key)) {
    if (!Array.isArray(value) || value.length === 0) throw fault(path, 'must be a list of schemas');
    return value.map((schema, index) => inner(schema, String(index)));
  }
  if (SCHEMAS.has(key)) return typeof value === 'boolean' ? value : prepared(value, path, depth + 1);
  if (key === '$ref') {
    if (typeof value !== 'string') throw fault(path, 'must be a text');
    return value.replace('#/definitions/', '#/$defs/');
  }
  if (!Object.hasOwn(PLAIN, key)) throw fault(path, 'is not supported');
  const values = key === 'enum' ? value : [value];
  const isListed = key === 'type' || key === 'required';
  if (!Array.isArray(values)) throw fault(path, 'must be a list');
  if (!isListed && values.some((one) => typeof one === 'object' && one !== null))
    throw fault(path, 'can hold texts, numbers, true, false and null only');
  return value;
}

function withType(schema: Record<string, unknown>): Record<string, unknown> {
  if (['type', 'enum', 'const', '$ref'].some((key) => key in schema)) return schema;
  if ('properties' in schema || 'additionalProperties' in schema) return { ...schema, type: 'object' };
  if ('items' in schema) return { ...schema, type: 'array' };
  const type = Object.keys(schema).flatMap((key) => PLAIN[key] ?? [])[0];
  return type === undefined ? schema : { ...schema, type };
}

function withRequired(schema: Record<string, unknown>, path: string): Json {
  const { required, properties = {} } = schema;
  if (required === undefined) return schema;
  if (!Array.isArray(required) || !required.every((name) => typeof name === 'string'))
    throw fault(`${path}/required`, 'must be a list of names');
  const missing = required.filter((name) => !Object.hasOwn(properties as object, name));
  const any = { anyOf: ['object', 'array', 'string', 'number', 'boolean', 'null'].map((type) => ({ type })) };
  return {
    ...schema,
    properties: { ...(properties as object), ...Object.fromEntries(missing.map((name) => [name, any])) },
  };
}

function fault(path: string, what: string): OutputSchemaError {
  return new OutputSchemaError(`${path === '' ? 'it' : path.slice(0, 200)} ${what}`);
}

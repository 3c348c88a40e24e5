/**
 * A tool's zod schema as the JSON Schema that clients get. Real clients drop a tool, or the whole list, over small
 * things: always `properties` and `required`, one string `type` each, no `$ref`, no union at the top.
 */
import { z } from 'zod';
import { FREE_FORM } from '../api/define-resource.js';

export interface InputSchema {
  type: 'object';
  properties: Record<string, unknown>;
  required: readonly string[];
}

/** The JSON Schema of a tool's arguments. */
export function toInputSchema(schema: z.ZodObject): InputSchema {
  const json = z.toJSONSchema(schema, { target: 'draft-7', io: 'input', reused: 'inline' }) as Record<string, unknown>;
  const { properties, required } = tidy(json) as { properties?: Record<string, unknown>; required?: string[] };
  return { type: 'object', properties: properties ?? {}, required: required ?? [] };
}

/** Removes what carries no information: the dialect, limits that only mean "an exact integer", and "anything else is fine". */
function tidy(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(tidy);
  if (typeof node !== 'object' || node === null) return node;
  const plain = withoutNull(node as Record<string, unknown>);
  if (plain !== undefined) return tidy(plain);
  const kept = Object.entries(node).filter(([key, value]) => !saysNothing(key, value));
  return Object.fromEntries(kept.map(([key, value]) => [key, tidy(value)]));
}

/** "X or null" as X, since clients accept a single type only; the description says that null means the default. */
function withoutNull(node: Record<string, unknown>): Record<string, unknown> | undefined {
  const { anyOf, ...rest } = node;
  if (!Array.isArray(anyOf) || !anyOf.some(isNull)) return undefined;
  const [only, ...others] = anyOf.filter((option) => !isNull(option)) as Record<string, unknown>[];
  return only === undefined || others.length > 0 ? undefined : { ...only, ...rest };
}

function isNull(option: unknown): boolean {
  return typeof option === 'object' && option !== null && 'type' in option && option.type === 'null';
}

/** Checked at run time with a better sentence; in the list of all tools they would only cost every client its context. */
const UNSAID = [
  '$schema',
  FREE_FORM,
  'additionalProperties',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
];

function saysNothing(key: string, value: unknown): boolean {
  if (UNSAID.includes(key)) return typeof value !== 'object' || key === 'additionalProperties';
  return typeof value === 'number' && Math.abs(value) === Number.MAX_SAFE_INTEGER;
}

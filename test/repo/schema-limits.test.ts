/** What comes from outside is bounded: every string, list, record and number of every schema has a maximum. */
import { readdirSync } from 'node:fs';
import { z } from 'zod';
import { ALL_KINDS } from '../../src/api/v1alpha1/index.js';
import { anthropicMessages } from '../../src/gateway/providers/anthropic.js';
import { chatCompletions } from '../../src/gateway/providers/chat-completions.js';
import { googleGenerate } from '../../src/gateway/providers/google.js';
import { openaiResponses } from '../../src/gateway/providers/openai-responses.js';
import { ChatRequest } from '../../src/gateway/scripted/openai.js';
import { TOOLS } from '../../src/mcp/registry.js';
import { maximumOf, boundedRecord } from '../../src/protocol/bounded-parse.js';
import { AgentSnapshot } from '../../src/templates/snapshot.js';

const MODELS = { anthropicMessages, chatCompletions, googleGenerate, openaiResponses };

/** Bounded by the format alone. */
const FIXED_FORMATS = new Set(['safeint', 'int32', 'uint32']);

/**
 * Objects that hold what their writer likes, and what bounds them: in calls the limits of JSON, in manifests outputSchemaText of
 * src/run/output-schema.ts and src/projections/agent-eval.ts, before anybody goes through them.
 */
const FREE = new Set([
  'Agent.spec.outputSchema',
  'AgentEval.spec.cases[].assertions[].jsonSchema',
  'AgentSnapshot.spec.outputSchema',
  'create_agent.outputSchema',
  'update_agent.outputSchema',
  'update_template_agent.outputSchema',
  'test_trigger.body|1',
  // With a maximum by a refinement.
  'set_mcp_servers.servers[].headers',
  'set_mcp_servers.servers[].env',
]);

function isLoose(schema: z.ZodObject): boolean {
  const { catchall } = schema._zod.def;
  return catchall !== undefined && catchall._zod.def.type !== 'never';
}

/** The places of a schema that have no maximum. What is taken as it comes is bounded by src/protocol/json-limits.ts. */
function unbounded(schema: z.ZodType, path: string): string[] {
  const { def } = schema._zod;
  switch (def.type) {
    case 'string':
      return maximumOf(schema) === undefined ? [path] : [];
    case 'number':
      return maximumOf(schema) === undefined && !FIXED_FORMATS.has((def as { format?: string }).format ?? '')
        ? [path]
        : [];
    case 'array':
      return [
        ...(maximumOf(schema) === undefined ? [path] : []),
        ...unbounded((schema as z.ZodArray).element as z.ZodType, `${path}[]`),
      ];
    case 'record':
      return [
        ...(maximumOf(schema) === undefined ? [path] : []),
        ...unbounded((schema as z.ZodRecord).keyType as z.ZodType, `${path}{key}`),
        ...unbounded((schema as z.ZodRecord).valueType as z.ZodType, `${path}{}`),
      ];
    case 'object':
      return [
        ...(isLoose(schema as z.ZodObject) && !FREE.has(path) ? [`${path}: takes anything`] : []),
        ...Object.entries((schema as z.ZodObject).shape).flatMap(([name, field]) =>
          unbounded(field as z.ZodType, `${path}.${name}`),
        ),
      ];
    case 'union':
      return (schema as z.ZodUnion).options.flatMap((option, index) =>
        unbounded(option as z.ZodType, `${path}|${index}`),
      );
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
      return unbounded((schema as z.ZodOptional).unwrap() as z.ZodType, path);
    case 'boolean':
    case 'enum':
    case 'literal':
    case 'null':
    case 'undefined':
    case 'unknown':
      return [];
    default:
      return [`${path}: ${def.type} is not known here`];
  }
}

/** Schemas among the values of a module, also inside plain objects. */
function schemasIn(value: unknown, path: string): [string, z.ZodType][] {
  if (value instanceof z.ZodType) return [[path, value]];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => schemasIn(inner, `${path}.${name}`));
}

test.each(TOOLS.map((tool) => [tool.name, tool.input] as const))('arguments of %s', (name, input) => {
  expect(unbounded(input, name)).toEqual([]);
});

test.each(ALL_KINDS.map((kind) => [kind.kind, kind] as const))('manifest of %s', (name, { spec, status }) => {
  expect(unbounded(spec, `${name}.spec`)).toEqual([]);
  if (status !== undefined) expect(unbounded(status, `${name}.status`)).toEqual([]);
});

test.each(Object.entries(MODELS))('request of a model: %s', (name, { body }) => {
  expect(unbounded(body, name)).toEqual([]);
});

test.each([
  ['ChatRequest', ChatRequest],
  ['AgentSnapshot', AgentSnapshot],
] as const)('%s', (name, schema) => {
  expect(unbounded(schema, name)).toEqual([]);
});

const PROTOCOL = readdirSync('src/protocol').filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));

test.each(PROTOCOL)('what src/protocol/%s exports', async (file) => {
  const exported: unknown = await import(`../../src/protocol/${file.replace(/\.ts$/, '.js')}`);
  const schemas = schemasIn({ ...(exported as object) }, file);
  expect(schemas.flatMap(([path, schema]) => unbounded(schema, path))).toEqual([]);
});

test.each<[string, z.ZodType, string[]]>([
  ['a string', z.string().min(1), ['x']],
  ['a text of a form', z.base64(), ['x']],
  ['a number', z.number().min(0).optional(), ['x']],
  ['a list', z.array(z.boolean()).default([]), ['x']],
  ['an entry', z.array(z.string()).max(3), ['x[]']],
  ['a record', z.record(z.string().max(3), z.boolean()), ['x']],
  ['its keys and values', boundedRecord(z.string(), z.string(), 3), ['x{key}', 'x{}']],
  ['a field', z.object({ a: z.union([z.null(), z.string()]) }), ['x.a|1']],
  ['an object that takes anything', z.object({ a: z.looseObject({}) }), ['x.a: takes anything']],
  ['what the test does not know', z.map(z.null(), z.null()), ['x: map is not known here']],
  [
    'bounded ones',
    z.strictObject({ a: z.string().max(1), b: z.int(), c: z.number().max(2), d: z.string().length(3) }),
    [],
  ],
])('this test sees: %s', (_what, schema, places) => {
  expect(unbounded(schema, 'x')).toEqual(places);
});

import { z } from 'zod';
import type { ResourceDefinition } from '../api/define-resource.js';
import { ALL_KINDS } from '../api/v1alpha1/index.js';

interface FieldSchema {
  type?: string;
  description?: string;
  enum?: unknown[];
  default?: unknown;
  properties?: Record<string, FieldSchema>;
  items?: FieldSchema;
  required?: string[];
}

/** docs/reference/resources.md: every kind with its fields, from the same schemas as the CRDs. */
export function resourcesDoc(): string {
  return [
    '<!-- Generated from src/api by `make generate`. Do not edit. -->',
    '# Resources',
    '',
    'All kinds are in the group `boxwright.dev`, version `v1alpha1`. `!` marks a required field.',
    '',
    ...ALL_KINDS.flatMap(kindSection),
  ].join('\n');
}

function kindSection(definition: ResourceDefinition): string[] {
  const names = [definition.plural, ...definition.shortNames].join(', ');
  return [
    `## ${definition.kind}`,
    '',
    definition.description,
    '',
    `${definition.namespaced ? 'Namespaced' : 'Cluster-scoped'}; \`kubectl get ${names}\`.`,
    '',
    '| Field | Type | Meaning |',
    '| --- | --- | --- |',
    ...rows('spec', definition.spec),
    ...(definition.status === undefined ? [] : rows('status', definition.status)),
    '',
  ];
}

function rows(root: string, schema: z.ZodType): string[] {
  return fieldRows(
    root,
    z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', reused: 'inline' }) as FieldSchema,
  );
}

function fieldRows(path: string, schema: FieldSchema): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const required = schema.required?.includes(name) === true && field.default === undefined ? '!' : '';
    const here = `${path}.${name}`;
    const nested = field.type === 'array' ? fieldRows(`${here}[]`, field.items ?? {}) : fieldRows(here, field);
    return [`| \`${here}\`${required} | ${typeText(field)} | ${cell(field.description ?? '')} |`, ...nested];
  });
}

function typeText(field: FieldSchema): string {
  const values =
    field.enum === undefined ? (field.type ?? '') : field.enum.map((value) => `\`${String(value)}\``).join(' or ');
  const list = field.type === 'array' ? `list of ${field.items?.enum?.join(', ') ?? field.items?.type ?? ''}` : values;
  return field.default === undefined || typeof field.default === 'object'
    ? list
    : `${list}, default \`${JSON.stringify(field.default)}\``;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

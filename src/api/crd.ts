/**
 * zod -> CustomResourceDefinition. zod's OpenAPI 3.0 output is almost the CRD dialect; the pass below refuses what is
 * not structural, so that a schema which Kubernetes would silently prune never ships.
 */
import { z } from 'zod';
import { FREE_FORM, GROUP, VERSION } from './define-resource.js';
import type { ResourceDefinition } from './define-resource.js';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Schema = { [key: string]: Json };

/** Keywords that a structural schema cannot hold, or that zod only emits for constructs we must not use. */
const FORBIDDEN = [
  '$ref',
  '$defs',
  'definitions',
  'anyOf',
  'oneOf',
  'allOf',
  'not',
  'const',
  'propertyNames',
  'additionalItems',
  'nullable',
];

/** Builds the CRD object of one kind. Throws when its schema cannot be expressed as a structural schema. */
export function toCustomResourceDefinition(definition: ResourceDefinition): Record<string, Json> {
  const properties: Schema = {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    spec: describedBy(convert(definition.spec, `${definition.kind}.spec`), `Desired state of the ${definition.kind}.`),
  };
  if (definition.status !== undefined) {
    const status = describedBy(
      convert(definition.status, `${definition.kind}.status`),
      `Observed state of the ${definition.kind}; written by the control plane.`,
    );
    if (definition.statusDefault !== undefined) status['default'] = definition.statusDefault as Json;
    properties['status'] = status;
  }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${definition.plural}.${GROUP}`, labels: { 'app.kubernetes.io/part-of': 'boxwright' } },
    spec: {
      group: GROUP,
      scope: definition.namespaced ? 'Namespaced' : 'Cluster',
      names: {
        kind: definition.kind,
        listKind: `${definition.kind}List`,
        plural: definition.plural,
        singular: definition.singular,
        shortNames: [...definition.shortNames],
        categories: definition.inCategory ? ['boxwright'] : [],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          ...(definition.status === undefined ? {} : { subresources: { status: {} } }),
          additionalPrinterColumns: definition.columns.map((column) => ({ ...column })) as unknown as Json,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: definition.description,
              required: ['spec'],
              properties,
              'x-kubernetes-validations': definition.rules.map((rule) => ({ ...rule })) as unknown as Json,
            },
          },
        },
      ],
    },
  };
}

function describedBy(schema: Schema, text: string): Schema {
  return { ...schema, description: text };
}

function convert(schema: z.ZodType, path: string): Schema {
  const raw = z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', reused: 'inline' }) as Schema;
  return clean(raw, path);
}

/** Rewrites one schema node and its children; `path` names the place in errors. */
function clean(node: Schema, path: string): Schema {
  for (const keyword of FORBIDDEN) {
    if (keyword in node) throw new Error(`${path}: ${keyword} is not allowed in a CRD schema`);
  }
  const out: Schema = {};
  for (const [key, value] of Object.entries(node)) {
    if (key === '$schema' || key === 'id') continue;
    if (node[FREE_FORM] === true && (key === 'properties' || key === 'additionalProperties')) continue;
    if (key === 'properties')
      out[key] = mapValues(value as Schema, (child, name) => clean(child as Schema, `${path}.${name}`));
    else if (key === 'items') out[key] = clean(value as Schema, `${path}[]`);
    else if (key === 'additionalProperties' && typeof value === 'object')
      out[key] = clean(value as Schema, `${path}.*`);
    else out[key] = value;
  }
  requireBounds(out, path);
  return out;
}

/** Every string has a maximum or a closed set, every list a maximum: CEL cost and etcd size depend on them. */
function requireBounds(node: Schema, path: string): void {
  if (node['type'] === 'string' && node['maxLength'] === undefined && node['enum'] === undefined) {
    throw new Error(`${path}: a string needs a maximum length`);
  }
  if (node['type'] === 'array' && node['maxItems'] === undefined)
    throw new Error(`${path}: a list needs a maximum number of items`);
  if (node['type'] === undefined) throw new Error(`${path}: a schema needs a type`);
}

function mapValues(object: Schema, change: (value: Json, key: string) => Json): Schema {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]));
}

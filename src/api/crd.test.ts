import { z } from 'zod';
import { toCustomResourceDefinition } from './crd.js';
import { defineResource } from './define-resource.js';
import { ALL_KINDS } from './v1alpha1/index.js';

interface Schema {
  type?: string;
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
}

/** Paths of the fields without a description, except those of Kubernetes itself. */
function undescribed(schema: Schema, path: string): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const here = `${path}.${name}`;
    if (['.apiVersion', '.kind', '.metadata'].includes(here)) return [];
    return [...(field.description === undefined ? [here] : []), ...undescribed(field.items ?? field, here)];
  });
}

function schemaOf(crd: Record<string, unknown>): Schema {
  const spec = crd['spec'] as { versions: { schema: { openAPIV3Schema: Schema } }[] };
  const [version] = spec.versions;
  if (version === undefined) throw new Error('no version');
  return version.schema.openAPIV3Schema;
}

function kindWith(spec: z.ZodType) {
  return defineResource({
    kind: 'Probe',
    plural: 'probes',
    namespaced: true,
    description: 'Probe.',
    spec,
    columns: [],
  });
}

describe('custom resource definitions', () => {
  test.each(ALL_KINDS.map((definition) => [definition.kind, definition] as const))(
    'every field of %s has a description',
    (_kind, definition) => {
      expect(undescribed(schemaOf(toCustomResourceDefinition(definition)), '')).toEqual([]);
    },
  );

  test('kinds, plurals and short names are unique', () => {
    const names = ALL_KINDS.flatMap(({ kind, plural, shortNames }) => [kind.toLowerCase(), plural, ...shortNames]);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  test.each([
    ['a string without a maximum', z.object({ a: z.string() }), 'Probe.spec.a: a string needs a maximum length'],
    ['a list without a maximum', z.object({ a: z.array(z.string().max(1)) }), 'Probe.spec.a: a list needs a maximum'],
    ['a union', z.object({ a: z.union([z.string().max(1), z.int()]) }), 'Probe.spec.a: anyOf is not allowed'],
    ['a nullable field', z.object({ a: z.string().max(1).nullable() }), 'Probe.spec.a: nullable is not allowed'],
    ['anything at all', z.object({ a: z.unknown() }), 'Probe.spec.a: a schema needs a type'],
  ])('%s is refused, with its place', (_sentence, spec, message) => {
    expect(() => toCustomResourceDefinition(kindWith(spec))).toThrow(message);
  });
});

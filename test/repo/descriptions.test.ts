/** `kubectl explain` says something about every field: a description is more than the name of its field in other words. */
import { toCustomResourceDefinition } from '../../src/api/crd.js';
import { ALL_KINDS } from '../../src/api/v1alpha1/index.js';

interface Schema {
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
}
interface Crd {
  spec: { versions: { schema: { openAPIV3Schema: Schema }; additionalPrinterColumns: Column[] }[] };
}
interface Column {
  name: string;
  description: string;
}

const FEWEST_WORDS = { field: 4, column: 3 };

function wordsOf(text: string): number {
  return text.split(/\s+/).filter((word) => word !== '').length;
}

/** Path and description of every field below `spec` and `status`. */
function fieldsOf(path: string, schema: Schema): [string, string][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const here = `${path}.${name}`;
    return [[here, field.description ?? ''], ...fieldsOf(here, field), ...fieldsOf(`${here}[]`, field.items ?? {})];
  });
}

describe.each(ALL_KINDS.map((definition) => [definition.kind, definition] as const))('%s', (kind, definition) => {
  const [version] = (toCustomResourceDefinition(definition) as unknown as Crd).spec.versions;

  test('describes each field in some words of its own', () => {
    const { spec = {}, status = {} } = version?.schema.openAPIV3Schema.properties ?? {};
    const fields = [...fieldsOf(`${kind}.spec`, spec), ...fieldsOf(`${kind}.status`, status)];
    expect(fields.length).toBeGreaterThan(0);
    const poor = fields.filter(([, text]) => wordsOf(text) < FEWEST_WORDS.field || /^Its \w+\.$/.test(text));
    expect(poor).toEqual([]);
  });

  test('describes each column of kubectl get', () => {
    const columns = (version?.additionalPrinterColumns ?? []).filter(({ name }) => name !== 'Age');
    expect(columns.filter(({ description }) => wordsOf(description) < FEWEST_WORDS.column)).toEqual([]);
  });
});

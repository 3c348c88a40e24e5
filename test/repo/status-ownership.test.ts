/** docs/architecture.md says who writes each field of a status that several parts write: none is missing, and none is made up. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { ALL_KINDS } from '../../src/api/v1alpha1/index.js';

const page = readFileSync('docs/architecture.md', 'utf8');
const section = /^## Status ownership$([^]*?)^## /m.exec(page)?.[1] ?? '';

/** The part of the section about a kind: below its name in bold, or its rows in the last table. */
function partOf(kind: string): string {
  const own = new RegExp(`^\\*\\*${kind}\\*\\*$([^]*?)(?=^\\*\\*)`, 'm').exec(section)?.[1];
  return own ?? (section.match(new RegExp(`^\\| ${kind} .*$`, 'gm')) ?? []).join('\n');
}

/** Field names in backticks in the column of fields; of `budget.granted` the first part. */
function fieldsIn(part: string): Set<string> {
  const cells = part.split('\n').map((row) => row.split('|').slice(1, -2).join('|'));
  const names = cells.flatMap((cell) => [...cell.matchAll(/`([a-z]\w*)(?:\.\w+)*`/g)].map(([, name = '']) => name));
  return new Set(names.filter((name) => name !== 'spec'));
}

const kinds = ALL_KINDS.filter(({ status }) => status !== undefined).map(
  (definition) => [definition.kind, definition] as const,
);

test.each(kinds)('%s', (kind, { status }) => {
  const part = partOf(kind);
  expect(part).not.toBe('');
  if (/\| all +\|/.test(part)) return;
  const schema = z.toJSONSchema(status ?? z.object({}), { target: 'openapi-3.0', io: 'input' });
  const fields = Object.keys(schema.properties ?? {}).filter((name) => name !== 'conditions');
  expect([...fieldsIn(part)].sort()).toEqual(fields.sort());
});

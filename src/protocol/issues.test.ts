import { z } from 'zod';
import { describeIssues } from './issues.js';

const Schema = z.object({ list: z.array(z.string()) });

function faultsOf(schema: z.ZodType, value: unknown): string {
  const { error } = schema.safeParse(value);
  return error === undefined ? '' : describeIssues(error);
}

test('names each fault', () => {
  expect(faultsOf(Schema, { list: ['a', 1] })).toBe('list.1: Invalid input: expected string, received number');
});

test('of many it names ten', () => {
  const said = faultsOf(Schema, { list: Array<number>(500).fill(1) });
  expect(said).toContain('list.9:');
  expect(said).not.toContain('list.10:');
  expect(said).toMatch(/; and 490 more$/);
});

test('names of the sender are cut', () => {
  const name = 'n'.repeat(1_000_000);
  expect(faultsOf(z.record(z.string(), z.string()), { [name]: 1 }).length).toBeLessThan(500);
  expect(faultsOf(z.strictObject({}), { [name]: 1 }).length).toBeLessThan(500);
});

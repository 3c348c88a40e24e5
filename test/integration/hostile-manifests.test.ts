/**
 * Manifests of somebody with the role edit: what is beyond the size of a field is refused by the API server, whose message
 * names it; what no API server looks into spoils no process that reads it.
 */
import { z } from 'zod';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { AgentEvals } from '../../src/api/v1alpha1/agent-eval.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { ALL_KINDS } from '../../src/api/v1alpha1/index.js';
import { KubeApiError } from '../../src/kube/errors.js';
import { maximumOf, withoutWrappers } from '../../src/protocol/bounded-parse.js';
import { Installation } from '../builders/installation.js';

const NAMESPACE = 'bw-lab';
/** Below what a request to the API server may have. */
const MOST_BYTES = 1_400_000;

interface Oversized {
  /** As the API server writes it. */
  field: string;
  spec: unknown;
}

/** For each string, list and map of a schema a spec in which it has one more than it may have, and nothing else is set. */
function oversizedOf(schema: z.ZodType, field: string, within: (value: unknown) => unknown): Oversized[] {
  const plain = withoutWrappers(schema);
  const maximum = maximumOf(plain);
  const tooMuch = (value: unknown): Oversized[] => [{ field, spec: within(value) }];
  if (plain instanceof z.ZodObject) {
    return Object.entries(plain.shape).flatMap(([name, inner]) =>
      oversizedOf(inner as z.ZodType, `${field}.${name}`, (value) => within({ [name]: value })),
    );
  }
  if (maximum === undefined || maximum > MOST_BYTES / 3) return [];
  if (plain instanceof z.ZodArray) {
    const element = plain.element as z.ZodType;
    const inner = oversizedOf(element, `${field}[0]`, (value) => within([value]));
    return [...tooMuch(Array.from({ length: maximum + 1 }, () => null)), ...inner];
  }
  if (plain instanceof z.ZodRecord) {
    const names = Array.from({ length: maximum + 1 }, (_, index) => [`n${index}`, 'x']);
    return tooMuch(Object.fromEntries(names));
  }
  return plain instanceof z.ZodString ? tooMuch('x'.repeat(maximum + 1)) : [];
}

const OVERSIZED = ALL_KINDS.flatMap((kind) =>
  oversizedOf(kind.spec, 'spec', (value) => value).map(({ field, spec }) => [kind.kind, field, kind, spec] as const),
);

function nested(depth: number): Record<string, unknown> {
  let schema: Record<string, unknown> = {};
  for (let i = 0; i < depth; i++) schema = { items: schema };
  return schema;
}

const HOSTILE_SCHEMAS: [string, Record<string, unknown>, RegExp | undefined][] = [
  ['deep', nested(4_000), /nests deeper|bytes/],
  ['large', { title: 'x'.repeat(1_000_000) }, /^it has \d+ bytes/],
  ['wide', { enum: Array.from({ length: 300_000 }, () => 1) }, /^it has \d+ bytes/],
  // These are small, and the run says what is wrong with them.
  ['cyclic', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }, undefined],
  ['remote', { $ref: 'http://169.254.169.254/latest' }, undefined],
  ['catastrophic', { type: 'string', pattern: '^(a+)+$' }, undefined],
];

let installation: Installation;

beforeAll(async () => {
  installation = await Installation.start();
  await installation.createBox({ name: 'lab', agents: ['ada'] });
}, 1_200_000);

afterAll(async () => {
  await installation.stop();
});

function create(type: ResourceType, kind: string, name: string, spec: unknown): Promise<KubeObject> {
  const metadata = type.namespaced ? { name, namespace: NAMESPACE } : { name };
  return installation.server.api.create(type, {
    apiVersion: 'boxwright.dev/v1alpha1',
    kind,
    metadata,
    spec,
  } as KubeObject);
}

test('there are fields of every kind', () => {
  expect(new Set(OVERSIZED.map(([kind]) => kind))).toEqual(new Set(ALL_KINDS.map(({ kind }) => kind)));
  expect(OVERSIZED.length).toBeGreaterThan(150);
});

test.each(OVERSIZED)('%s: more than %s may have is refused by its name', async (kind, field, type, spec) => {
  const error = await create(type, kind, 'oversized', spec).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(KubeApiError);
  expect((error as KubeApiError).status).toBe(422);
  const { causes = [] } = (error as KubeApiError).details ?? {};
  expect(causes.filter((cause) => cause.field === field).map(({ reason }) => reason)).toContainEqual(
    expect.stringMatching(/^FieldValueToo(Long|Many)$/),
  );
});

test.each(HOSTILE_SCHEMAS)('a %s outputSchema spoils no tool and no process', async (name, outputSchema, problem) => {
  await create(Agents, 'Agent', name, { name, handle: `lab-${name}`, outputSchema });
  await installation.waitFor(Agents, { namespace: NAMESPACE, name }, ({ status }) => status?.active === true);
  const shown = await installation.tool<Record<string, unknown>>('get_agent', { agentId: `lab.${name}` });
  expect(shown['outputSchema']).toEqual(
    problem === undefined ? outputSchema : { problem: expect.stringMatching(problem) },
  );
  const { agents } = await installation.tool<{ agents: unknown[] }>('list_agents', {});
  expect(agents.length).toBeGreaterThan(1);
  installation.expectRunning();
  expect(installation.errors).toEqual([]);
});

test.each(HOSTILE_SCHEMAS)('an eval with a %s jsonSchema is refused with a reason', async (name, jsonSchema) => {
  const cases = [{ name: 'one', message: 'go', assertions: [{ jsonSchema }] }];
  await create(AgentEvals, 'AgentEval', name, { agent: 'ada', cases });
  const { status } = await installation.waitFor(AgentEvals, { namespace: NAMESPACE, name }, (object) =>
    (object.status?.conditions ?? []).some(({ type }) => type === 'Ready'),
  );
  expect(status?.conditions).toContainEqual(
    expect.objectContaining({ type: 'Ready', status: 'False', reason: 'InvalidEval' }),
  );
  installation.expectRunning();
  expect(installation.errors).toEqual([]);
});

test.each([
  ['half a second of compiling', 'a{1000}'.repeat(73)],
  ['repeats within repeats', '(((a{6}){6}){6}){4}'.repeat(20)],
])('an eval with %s is refused with a reason', async (what, matches) => {
  const name = what.replaceAll(' ', '-');
  const cases = Array.from({ length: 50 }, (_, index) => ({
    name: `case-${index}`,
    message: 'go',
    assertions: Array.from({ length: 8 }, () => ({ matches })),
  }));
  await create(AgentEvals, 'AgentEval', name, { agent: 'ada', cases });
  const { status } = await installation.waitFor(AgentEvals, { namespace: NAMESPACE, name }, (object) =>
    (object.status?.conditions ?? []).some(({ type }) => type === 'Ready'),
  );
  expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', reason: 'InvalidEval' }));
});

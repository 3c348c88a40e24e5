import { API_VERSION } from '../api/define-resource.js';
import { AgentEvalSpec } from '../api/v1alpha1/agent-eval.js';
import type { AgentEval } from '../api/v1alpha1/agent-eval.js';
import { projectControllerEval } from './agent-eval.js';

function withSchema(jsonSchema: Record<string, unknown>): AgentEval {
  const cases = [{ name: 'one', message: 'go', assertions: [{ jsonSchema }] }];
  const spec = { ...AgentEvalSpec.parse({ agent: 'ada', cases: [{ name: 'one', message: 'go' }] }), cases };
  return { apiVersion: API_VERSION, kind: 'AgentEval', metadata: { name: 'x' }, spec };
}

function nested(depth: number): Record<string, unknown> {
  let schema: Record<string, unknown> = {};
  for (let i = 0; i < depth; i++) schema = { items: schema };
  return schema;
}

test('an eval is kept whole', () => {
  const object = withSchema({ type: 'object', properties: { a: nested(20) } });
  expect(projectControllerEval(object)).toEqual(object);
});

test.each([
  ['nests deep', nested(500), 'nests deeper than 128'],
  ['nests without end', nested(9_900), 'nests'],
  ['is large', { title: 'x'.repeat(300_000) }, 'bytes of JSON, and may have 262144'],
  ['has many values', { enum: Array.from({ length: 120_000 }, () => 1) }, 'has more than 100000 values'],
])('one whose schema %s is kept without its cases, and says why', (_what, schema, why) => {
  const { spec, unusable } = projectControllerEval(withSchema(schema));
  expect(unusable).toContain(why);
  expect(spec.cases).toEqual([]);
  expect(() => structuredClone(spec)).not.toThrow();
});

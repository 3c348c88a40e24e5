/** Projections of AgentEvals. */
import { AgentEvals, MAX_EVAL_SPEC_BYTES } from '../api/v1alpha1/agent-eval.js';
import type { AgentEval } from '../api/v1alpha1/agent-eval.js';
import type { InformerOptions } from '../kube/types.js';
import { JsonLimitError, expectLimits } from '../protocol/json-limits.js';
import { compactJson } from '../run/output-schema.js';
import { CONTROLLER_CHILD_INDEXES } from './agent-child.js';
import { withoutManagedFields } from './meta.js';

/** Twice what a schema may nest, and what is around it. */
const MAX_DEPTH = 128;

/** Whole: the cases are what is run, and the results what is gone on from. */
export interface ControllerEval extends AgentEval {
  /** Why it is not run. Its cases are left out then: schemas in them may be as large and as deep as their writer liked. */
  unusable?: string;
}

export function projectControllerEval(object: AgentEval): ControllerEval {
  const projected = withoutManagedFields(object);
  const unusable = faultOf(object.spec);
  return unusable === undefined ? projected : { ...projected, spec: { ...projected.spec, cases: [] }, unusable };
}

function faultOf(spec: AgentEval['spec']): string | undefined {
  const text = compactJson(spec);
  const tooDeep = 'spec nests too deep: look at the jsonSchema of its assertions';
  if (text === undefined) return tooDeep;
  const json = Buffer.from(text);
  if (json.length > MAX_EVAL_SPEC_BYTES)
    return `spec has ${json.length} bytes of JSON, and may have ${MAX_EVAL_SPEC_BYTES}: make two evals of it`;
  try {
    expectLimits(json, { depth: MAX_DEPTH });
    return undefined;
  } catch (error) {
    if (error instanceof JsonLimitError) return `spec ${error.message}: look at the jsonSchema of its assertions`;
    throw error;
  }
}

export const controllerEvalInformer: InformerOptions<AgentEval, ControllerEval> = {
  type: AgentEvals,
  project: projectControllerEval,
  indexes: CONTROLLER_CHILD_INDEXES,
};

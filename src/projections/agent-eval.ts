/** Projections of AgentEvals. */
import { AgentEvals } from '../api/v1alpha1/agent-eval.js';
import type { AgentEval } from '../api/v1alpha1/agent-eval.js';
import type { InformerOptions } from '../kube/types.js';
import { CONTROLLER_CHILD_INDEXES } from './agent-child.js';
import { withoutManagedFields } from './meta.js';

/** Whole: the cases are what is run, and the results what is gone on from. */
export const controllerEvalInformer: InformerOptions<AgentEval, AgentEval> = {
  type: AgentEvals,
  project: withoutManagedFields,
  indexes: CONTROLLER_CHILD_INDEXES,
};

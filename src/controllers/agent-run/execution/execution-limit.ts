/** How long a run may work. */
import type { AgentRun } from '../../../api/v1alpha1/agent-run.js';
import type { Box } from '../../../api/v1alpha1/box.js';

/** In seconds: the limit of the Box, or a lower one of the run. */
export function executionSecondsOf(run: Pick<AgentRun, 'spec'>, box: Pick<Box, 'spec'>): number {
  const ofBox = box.spec.bounds.executionSeconds;
  return Math.min(ofBox, run.spec.limits?.executionSeconds ?? ofBox);
}

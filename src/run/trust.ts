/**
 * What a run from outside may do that outlives it: the setting of its Box. Pure.
 * See docs/architecture.md#trust.
 */
import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import type { Box } from '../api/v1alpha1/box.js';
import { AGENT_TOOLS, type AgentToolName } from '../protocol/gateway-tools.js';

type Asking = Pick<AgentRun, 'status'>;
type Rules = Pick<Box['spec'], 'untrusted'>;

/** Whether the run came from outside. */
export function isUntrusted({ status }: Pick<AgentRun, 'status'>): boolean {
  return status?.untrusted === true;
}

/** Whether the run does not have the tool, whatever its agent allows. */
export function refuses({ untrusted }: Rules, run: Asking, name: AgentToolName): boolean {
  if (!isUntrusted(run)) return false;
  const { family } = AGENT_TOOLS[name];
  if (family === 'memory') return untrusted.memory === 'refuse' && name !== 'memory_search';
  if (family === 'agents') return untrusted.callAgents === 'refuse';
  return family === 'self' && untrusted.selfImprovement === 'refuse';
}

/** Whether what the run changes about its agent waits for a person. */
export function proposes(run: Asking, { untrusted }: Rules): boolean {
  return isUntrusted(run) && untrusted.selfImprovement === 'propose';
}

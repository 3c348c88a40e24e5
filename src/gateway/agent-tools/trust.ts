/** What a run from outside may do that outlives it: the setting of its Box (DESIGN 4, Trust of a run). Pure. */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { AgentToolName } from '../../protocol/agent-tools.js';
import type { BoxView } from '../views.js';
import { isUntrusted } from './tool-context.js';

const SELF: readonly AgentToolName[] = ['edit_soul', 'install_skill', 'install_mcp'];

type Asking = Pick<AgentRun, 'status'>;
type Rules = Pick<BoxView, 'untrusted'>;

/** Tools that the run does not have, whatever its agent allows. */
export function refusedTools(run: Asking, { untrusted }: Rules): ReadonlySet<AgentToolName> {
  if (!isUntrusted(run)) return new Set();
  return new Set<AgentToolName>([
    ...(untrusted.memory === 'refuse' ? (['memory_save', 'memory_delete'] as const) : []),
    ...(untrusted.selfImprovement === 'refuse' ? SELF : []),
    ...(untrusted.callAgents === 'refuse' ? (['list_agents', 'call_agent'] as const) : []),
  ]);
}

/** Whether what the run changes about its agent waits for a person. */
export function proposes(run: Asking, { untrusted }: Rules): boolean {
  return isUntrusted(run) && untrusted.selfImprovement === 'propose';
}

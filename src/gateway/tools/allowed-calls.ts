/** Whether a run may make a call now: the agent's policy, and an approval that is used up by it. */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { needsApproval, type ApprovableTool } from '../../protocol/approvals.js';
import type { RunStore } from '../runs/run-store.js';
import { policyOf, useApproval } from './approvals.js';
import type { GatewayAgent } from '../../projections/agent.js';
import type { GatewayBox } from '../../projections/box.js';

export interface AskedCall {
  run: AgentRun;
  agent: GatewayAgent;
  box: GatewayBox;
  tool: ApprovableTool;
  input: unknown;
  /** Number of the call in its run; undefined for one that is never repeated. */
  call?: number;
}

/** Why a call that is not allowed is refused. */
export function needsPerson(tool: string): string {
  return `the call of ${tool} needs the approval of a person, and this run has none for it`;
}

/** Uses the approval of the run up if the call needs one: single use, bound to tool and arguments. */
export async function isAllowed(store: Pick<RunStore, 'update'>, asked: AskedCall): Promise<boolean> {
  const { run, agent, box, tool, input, call } = asked;
  if (!needsApproval(tool, policyOf(run, agent, box))) return true;
  let isKnown = false;
  const ref = { namespace: run.metadata.namespace ?? '', name: run.metadata.name };
  const { isWritten } = await store.update(ref, (current) => {
    const used = useApproval(current, { tool: tool.name, input, call });
    isKnown = used !== undefined && used === current.status?.approvals;
    return used === undefined || isKnown ? undefined : { type: 'approval-used', approvals: used };
  });
  return isKnown || isWritten;
}

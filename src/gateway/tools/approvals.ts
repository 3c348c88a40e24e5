/** Approvals as the control plane keeps them: in the status of runs, which only it writes. Pure. */
import { createHash } from 'node:crypto';
import type { AgentRun, RunApprovals } from '../../api/v1alpha1/agent-run.js';
import type { RunInput } from '../runs/run-inputs.js';
import { proposes } from '../../run/trust.js';
import type { GatewayAgent } from '../../projections/agent.js';
import type { GatewayBox } from '../../projections/box.js';

/** What the run may not do unasked; what one from outside changes about its agent is a proposal where the Box says so. */
export function policyOf(
  run: Pick<AgentRun, 'status'>,
  agent: GatewayAgent,
  box: Pick<GatewayBox, 'untrusted'>,
): { required: string[]; always: string[] } {
  const proposals = proposes(run, box) ? ['self'] : [];
  const required = [...new Set([...(agent.spec.approvals ?? []), ...proposals])];
  return { required, always: [...(run.status?.approvals?.always ?? [])] };
}

/** `approvals` of a run at its claim: what earlier runs of the session brought, and what its own message decided. */
export function approvalsOf({
  approvedBefore,
  resume,
}: Pick<RunInput, 'approvedBefore' | 'resume'>): Pick<NonNullable<AgentRun['status']>, 'approvals'> {
  const { approved, always } = resume ?? {};
  const tools = [...new Set([...approvedBefore, ...(always === undefined ? [] : [always])])].slice(0, MAX_ALWAYS);
  if (tools.length === 0 && approved === undefined) return {};
  return {
    approvals: {
      ...(tools.length === 0 ? {} : { always: tools }),
      ...(approved === undefined
        ? {}
        : { call: { callId: approved.callId, tool: approved.tool, sha256: digestOf(JSON.parse(approved.input)) } }),
    },
  };
}

const MAX_ALWAYS = 64;

/**
 * The approvals after a call used its own; the same object when it did so before, and undefined when there is none for
 * this tool and these arguments.
 */
export function useApproval(
  { status }: Pick<AgentRun, 'status'>,
  { tool, input, call }: { tool: string; input: unknown; call: number | undefined },
): RunApprovals | undefined {
  const { approvals } = status ?? {};
  const approved = approvals?.call;
  if (approved === undefined || approved.tool !== tool || approved.sha256 !== digestOf(input)) return undefined;
  if (approved.usedBy !== undefined) return approved.usedBy === call ? approvals : undefined;
  return { ...approvals, call: { ...approved, usedBy: call ?? UNNUMBERED } };
}

/** A call without a number cannot be told from a second one, so none uses the approval again. */
const UNNUMBERED = 1;

/** Order of keys counts: the arguments come back as they were written. */
function digestOf(input: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(input) ?? '')
    .digest('hex');
}

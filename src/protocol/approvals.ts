/** Which calls wait for a person: the agent's `approvals` against a tool. Pure; runner and gateway ask the same question. */

export interface ApprovalPolicy {
  /** Names of tools or families. */
  required: readonly string[];
  /** Tools that a person approved for the rest of the session. */
  always: readonly string[];
}

/** What a person answers; any other text denies and is passed on (reference tools.md 2). */
export const APPROVAL_CHOICES = ['approve', 'approve always', 'deny'] as const;

/** Whether a call of the tool needs an approval. A question never does: it is one. */
export function needsApproval(tool: { name: string; family: string }, { required, always }: ApprovalPolicy): boolean {
  if (tool.family === 'interact' || always.includes(tool.name)) return false;
  return required.includes(tool.name) || required.includes(tool.family);
}

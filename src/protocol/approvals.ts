/** Which calls wait for a person: the agent's `approvals` against a tool. Pure; runner and gateway ask the same question. */

export interface ApprovalPolicy {
  /** Names of tools, families or MCP servers. */
  required: readonly string[];
  /** Tools that a person approved for the rest of the session. */
  always: readonly string[];
}

/** What a person answers; any other text denies and is passed on. */
export const APPROVAL_CHOICES = ['approve', 'approve always', 'deny'] as const;

/** What a policy may name of a tool. */
export interface ApprovableTool {
  name: string;
  family: string;
  /** The MCP server that it is of. */
  server?: string | undefined;
}

/** Whether a call of the tool needs an approval. A question never does: it is one. */
export function needsApproval({ name, family, server }: ApprovableTool, { required, always }: ApprovalPolicy): boolean {
  if (family === 'interact' || always.includes(name)) return false;
  return required.includes(name) || required.includes(family) || (server !== undefined && required.includes(server));
}

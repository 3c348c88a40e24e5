/** Tools that need an approval: a call of one ends the run, and is executed in the next one if a person says so. */
import { APPROVAL_CHOICES, needsApproval, type ApprovalPolicy } from '../protocol/approvals.js';
import type { EngineTool, ToolResult } from './engine.js';
import { failed, MAX_STORED_INPUT_BYTES } from './results.js';
import { cutUtf8 } from '../runtime/text.js';

const MAX_SHOWN_BYTES = 1024;

/** The tool, or one that asks instead of doing it. Nobody can approve what cannot be kept whole. */
export function gated(tool: EngineTool, policy: ApprovalPolicy | undefined): EngineTool {
  const asked = tool.isFollowUp === true ? { ...tool, family: '' } : tool;
  if (policy === undefined || !needsApproval(asked, policy)) return tool;
  return {
    ...tool,
    isParallel: false,
    description: `${tool.description} A person must approve the call first: the run ends with it and goes on when it is decided.`,
    execute: (input) => Promise.resolve(ask(tool.name, input)),
  };
}

function ask(tool: string, input: Record<string, unknown>): ToolResult {
  const json = JSON.stringify(input);
  if (Buffer.byteLength(json) > MAX_STORED_INPUT_BYTES) {
    return failed(
      `The arguments are larger than ${MAX_STORED_INPUT_BYTES} bytes, too large to be approved: do it in smaller steps.`,
    );
  }
  const text = `May I use ${tool}? ${cutUtf8(json, MAX_SHOWN_BYTES)}`;
  return { isError: false, result: {}, pause: { kind: 'approval', text, choices: APPROVAL_CHOICES } };
}

/** Tools that need an approval: a call of one ends the run, and is executed in the next one if a person says so. */
import { APPROVAL_CHOICES, needsApproval, type ApprovalPolicy } from '../protocol/approvals.js';
import type { EngineTool, ToolResult } from './engine.js';
import type { Surroundings } from '../protocol/surroundings.js';
import { TOOL_DEFINITIONS } from '../protocol/tools-socket.js';
import { failed, MAX_STORED_INPUT_BYTES } from './results.js';
import { cutUtf8 } from '../runtime/text.js';

const MAX_SHOWN_BYTES = 1024;

const EMPTY_WORKSPACE =
  'The call is made in a new pod, whose workspace is empty: files that were written before are gone by then.';

/**
 * The tool, or one that asks instead of doing it. Nobody can approve what cannot be kept whole, and whoever approves a call of a
 * tool of the pod knows if it will miss the files that it may need.
 */
export function gated(
  tool: EngineTool,
  policy: ApprovalPolicy | undefined,
  { filesStay }: Partial<Pick<Surroundings, 'filesStay'>> = {},
): EngineTool {
  const asked = tool.isFollowUp === true ? { ...tool, family: '' } : tool;
  if (policy === undefined || !needsApproval(asked, policy)) return tool;
  const loss = filesStay === false && Object.hasOwn(TOOL_DEFINITIONS, tool.name) ? ` ${EMPTY_WORKSPACE}` : '';
  return {
    ...tool,
    isParallel: false,
    description: `${tool.description} A person must approve the call first: the run ends with it and goes on when it is decided.${loss}`,
    execute: (input) => Promise.resolve(ask(tool.name, input, loss)),
  };
}

function ask(tool: string, input: Record<string, unknown>, loss: string): ToolResult {
  const json = JSON.stringify(input);
  if (Buffer.byteLength(json) > MAX_STORED_INPUT_BYTES) {
    return failed(
      `The arguments are larger than ${MAX_STORED_INPUT_BYTES} bytes, too large to be approved: do it in smaller steps.`,
    );
  }
  const text = `May I use ${tool}? ${cutUtf8(json, MAX_SHOWN_BYTES)}${loss === '' ? '' : `\n${loss.trim()}`}`;
  return { isError: false, result: {}, pause: { kind: 'approval', text, choices: APPROVAL_CHOICES } };
}

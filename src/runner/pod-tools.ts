/** The tools of the run pod as the engine sees them: those of the capability families in the other container, and ask_user. */
import { RUNNER_TOOLS, TOOL_DEFINITIONS, TOOL_NAMES } from '../protocol/tools-socket.js';
import type { ToolName } from '../protocol/tools-socket.js';
import { askUser } from './ask-user.js';
import type { EngineTool } from './engine.js';
import type { ToolsClient } from './tools-client.js';
import { withText } from './tool-text.js';
import { offers } from './tools-offer.js';
import type { OfferedTools } from './tools-offer.js';

export interface PodToolsOptions {
  client: ToolsClient;
  /** What the image of `tools` has; the rest is not offered to the model. */
  offered: OfferedTools;
  /** Of the Box; undefined when that is not known. */
  egress: string | undefined;
}

/** These change nothing, and none needs what another one leaves behind, as a shell or the page of the browser. */
const READING: readonly ToolName[] = ['read', 'list', 'grep', 'glob', 'fetch'];

/** What these do is nothing where no network is. */
const NETWORK_FAMILIES: readonly string[] = ['web', 'browser'];

/** They read and end what a call of `shell` began. */
const FOLLOW_UPS: readonly ToolName[] = ['shell_output', 'shell_stop'];

/** `families` is the agent's `tools` (spec 2): families are on by default, so only `false` turns one off. */
export function podTools(
  families: Readonly<Record<string, boolean>>,
  { client, offered, egress }: PodToolsOptions,
): EngineTool[] {
  const isOn = (name: ToolName) => {
    const { family } = TOOL_DEFINITIONS[name];
    const isReachable = egress !== 'none' || !NETWORK_FAMILIES.includes(family);
    return !RUNNER_TOOLS.includes(name) && isReachable && families[family] !== false && offers(offered, name) !== false;
  };
  const own: EngineTool[] = TOOL_NAMES.filter(isOn).map((name) => ({
    name,
    family: TOOL_DEFINITIONS[name].family,
    description: TOOL_DEFINITIONS[name].description,
    input: TOOL_DEFINITIONS[name].input,
    ...(FOLLOW_UPS.includes(name) ? { isFollowUp: true } : {}),
    isParallel: READING.includes(name),
    execute: async (input, signal) => withText(await client.call({ tool: name, input }, signal)),
  }));
  return [...own, askUser];
}

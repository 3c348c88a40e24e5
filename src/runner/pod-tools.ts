/** The tools of the run pod as the engine sees them: those of the capability families in the other container, and ask_user. */
import { TOOL_DEFINITIONS, TOOL_NAMES } from '../protocol/tools-socket.js';
import { askUser } from './ask-user.js';
import type { EngineTool } from './engine.js';
import type { ToolsClient } from './tools-client.js';

export interface PodToolsOptions {
  client: ToolsClient;
  /** Whether the image has a browser; without one its tools are not offered. */
  hasBrowser: boolean;
}

/** `families` is the agent's `tools` (spec 2): families are on by default, so only `false` turns one off. */
export function podTools(
  families: Readonly<Record<string, boolean>>,
  { client, hasBrowser }: PodToolsOptions,
): EngineTool[] {
  const isOn = (family: string) => families[family] !== false && (family !== 'browser' || hasBrowser);
  const own: EngineTool[] = TOOL_NAMES.filter((name) => isOn(TOOL_DEFINITIONS[name].family)).map((name) => ({
    name,
    family: TOOL_DEFINITIONS[name].family,
    description: TOOL_DEFINITIONS[name].description,
    input: TOOL_DEFINITIONS[name].input,
    execute: (input, signal) => client.call({ tool: name, input }, signal),
  }));
  return [...own, askUser];
}

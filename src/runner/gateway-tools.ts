/** The tools of an agent that the gateway executes (src/protocol/gateway-tools.ts), as the engine sees them. */
import { GATEWAY_TOOLS, isGatewayTool, isParallelTool } from '../protocol/gateway-tools.js';
import type { GatewayToolName } from '../protocol/gateway-tools.js';
import type { ClaimAnswer, ToolAnswer } from '../protocol/run.js';
import { sleep } from '../runtime/clock.js';
import type { Clock } from '../runtime/clock.js';
import type { EngineTool } from './engine.js';
import { readToPublish } from './publish-file.js';
import { bounded, failed } from './results.js';
import type { RunGateway } from './run-gateway.js';
import { layFiles } from './skill-files.js';
import type { ReadSkill } from './skill-files.js';
import { MAX_MODEL_RESULT_BYTES } from './tools-client.js';
import type { ToolsClient } from './tools-client.js';

/** How long a call is tried while no gateway answers. */
const CALL_MS = 120_000;
const AGAIN_MS = 500;

export interface GatewayToolsDeps {
  gateway: Pick<RunGateway, 'tool'>;
  clock: Clock;
  /** Where files of skills are laid; absent where no tool could reach them. */
  skillFiles?: ToolsClient | undefined;
  /** Reads files that are published; absent where the image of the tools cannot. */
  publishing?: ToolsClient | undefined;
}

/** Those that the claim names and this runner knows: either side may be older. Calls are numbered over all of them. */
export function gatewayTools(abilities: ClaimAnswer['abilities'], deps: GatewayToolsDeps): EngineTool[] {
  let calls = 0;
  const ask = (tool: GatewayToolName, input: Record<string, unknown>, signal: AbortSignal, content?: string) => {
    calls += 1;
    return answerOf({ call: calls, tool, input, content }, deps, signal);
  };
  const { skillFiles: tools, publishing } = deps;
  const isThere = (name: GatewayToolName) => name !== 'publish_file' || publishing !== undefined;
  return (abilities?.tools ?? [])
    .filter(isGatewayTool)
    .filter(isThere)
    .map((name) => ({
      name,
      family: GATEWAY_TOOLS[name].family,
      description: GATEWAY_TOOLS[name].description,
      input: GATEWAY_TOOLS[name].input,
      isParallel: abilities?.parallel === true && isParallelTool(name),
      execute: async (input, signal) => {
        try {
          const file = name === 'publish_file' ? await fileOf(input, publishing, signal) : undefined;
          if (file !== undefined && 'failure' in file) return file.failure;
          const answer = await ask(name, input, signal, file?.content);
          const read: ReadSkill = (page) => ask('read_skill', page, signal);
          const isOpened = name === 'read_skill' && input['offset'] === undefined && tools !== undefined;
          return bounded(isOpened ? await layFiles(answer, { read, tools, signal }) : answer, MAX_MODEL_RESULT_BYTES);
        } catch (error) {
          signal.throwIfAborted();
          const reason = error instanceof Error ? error.message : 'no answer';
          return failed(`The control plane did not execute the call: ${reason}`);
        }
      },
    }));
}

/** The file that the input names; only offered where there are tools to read it. */
function fileOf({ path }: Record<string, unknown>, tools: ToolsClient | undefined, signal: AbortSignal) {
  return tools === undefined ? undefined : readToPublish(path, { tools, signal });
}

/** The gateway holds a call for some seconds; what takes longer is asked for again until the run itself is stopped. */
async function answerOf(
  request: Parameters<RunGateway['tool']>[0],
  { gateway, clock }: GatewayToolsDeps,
  signal: AbortSignal,
): Promise<ToolAnswer> {
  for (;;) {
    const answer = await gateway.tool(request, signal, clock.monotonic() + CALL_MS);
    if (answer.again !== true) return answer;
    await sleep(clock, AGAIN_MS, signal);
    signal.throwIfAborted();
  }
}

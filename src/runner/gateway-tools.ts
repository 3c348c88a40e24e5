/** The tools of an agent that the gateway executes (src/protocol/gateway-tools.ts), as the engine sees them. */
import { GATEWAY_TOOLS, isGatewayTool, isParallelTool } from '../protocol/gateway-tools.js';
import type { GatewayToolName } from '../protocol/gateway-tools.js';
import type { ClaimAnswer, ToolAnswer } from '../protocol/run.js';
import { sleep } from '../runtime/clock.js';
import type { Clock } from '../runtime/clock.js';
import type { EngineTool } from './engine.js';
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
}

/** Those that the claim names and this runner knows: either side may be older. Calls are numbered over all of them. */
export function gatewayTools(abilities: ClaimAnswer['abilities'], deps: GatewayToolsDeps): EngineTool[] {
  let calls = 0;
  const ask = (tool: GatewayToolName, input: Record<string, unknown>, signal: AbortSignal) => {
    calls += 1;
    return answerOf({ call: calls, tool, input }, deps, signal);
  };
  const tools = deps.skillFiles;
  return (abilities?.tools ?? []).filter(isGatewayTool).map((name) => ({
    name,
    family: GATEWAY_TOOLS[name].family,
    description: GATEWAY_TOOLS[name].description,
    input: GATEWAY_TOOLS[name].input,
    isParallel: abilities?.parallel === true && isParallelTool(name),
    execute: async (input, signal) => {
      try {
        const answer = await ask(name, input, signal);
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

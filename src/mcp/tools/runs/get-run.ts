import { z } from 'zod';
import { getRun } from '../../../services/runs/runs.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument, runIdArgument, waitSecondsArgument } from '../common-arguments.js';

export const getRunTool = defineTool({
  name: 'get_run',
  title: 'Get run',
  description:
    'Returns one run in full with input and output. waitSeconds waits for the end instead of polling; includeToolCalls adds every tool call (long).',
  effect: 'read',
  input: z.object({
    agentId: agentIdArgument,
    runId: runIdArgument,
    includeToolCalls: z.boolean().default(false).describe('Adds toolCalls.'),
    waitSeconds: waitSecondsArgument.default(0).describe('Seconds to wait for the end.'),
  }),
  handler: ({ agentId, runId, includeToolCalls, waitSeconds }, { caller, services, gone }) =>
    getRun(services.runs, caller, agentId, { runId, includeToolCalls, waitMs: waitSeconds * 1000, gone }),
});

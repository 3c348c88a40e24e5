import { z } from 'zod';
import { getRun } from '../../../services/runs.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument, runIdArgument, waitSecondsArgument } from '../shared-arguments.js';

export const getRunTool = defineTool({
  name: 'get_run',
  title: 'Get run',
  description:
    'Returns one run in full with input and output. Pass waitSeconds to wait for the end in one call instead of polling, and includeToolCalls for every tool call with input and result (long).',
  effect: 'read',
  input: z.object({
    agentId: agentIdArgument,
    runId: runIdArgument,
    includeToolCalls: z.boolean().default(false).describe('Adds toolCalls.'),
    waitSeconds: waitSecondsArgument.default(0).describe('How long to wait for the end of the run.'),
  }),
  handler: ({ agentId, runId, includeToolCalls, waitSeconds }, { caller, services, gone }) =>
    getRun(services.runs, caller, agentId, { runId, includeToolCalls, waitMs: waitSeconds * 1000, gone }),
});

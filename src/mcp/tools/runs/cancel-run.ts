import { z } from 'zod';
import { cancelRun } from '../../../services/runs/runs.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument, runIdArgument } from '../common-arguments.js';

export const cancelRunTool = defineTool({
  name: 'cancel_run',
  title: 'Cancel run',
  description:
    'Stops a run that is working or waiting and answers with its status after at most 10 seconds. A run that has ended keeps its status; that is no error.',
  effect: 'destructive',
  idempotent: true,
  input: z.object({ agentId: agentIdArgument, runId: runIdArgument }),
  handler: ({ agentId, runId }, { caller, services, gone }) =>
    cancelRun(services.runs, caller, agentId, { runId, gone }),
});

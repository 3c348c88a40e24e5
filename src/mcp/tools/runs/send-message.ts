import { z } from 'zod';
import { sendMessage } from '../../../services/runs/runs.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument, idArgument, textArgument, waitSecondsArgument } from '../common-arguments.js';

export const sendMessageTool = defineTool({
  name: 'send_message',
  title: 'Send message',
  description:
    'Sends a message to an agent and waits for the run with its output. Many clients stop after 60 seconds: pass waitSeconds 45. If this call times out, do not resend: call list_runs; still running: get_run.',
  effect: 'run',
  input: z.object({
    agentId: agentIdArgument,
    message: textArgument.min(1).describe('What to tell the agent, at most 128 KiB.'),
    sessionId: idArgument.optional().describe('Continues this conversation.'),
    steer: z.boolean().default(false).describe('Reach the run at work in sessionId before its next step.'),
    waitSeconds: waitSecondsArgument.default(120).describe('Seconds to wait for the end.'),
  }),
  handler: ({ agentId, message, sessionId, steer, waitSeconds }, { caller, services, gone }) =>
    sendMessage(services.runs, caller, agentId, { message, sessionId, steer, waitMs: waitSeconds * 1000, gone }),
});

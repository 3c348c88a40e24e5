import { z } from 'zod';
import { rotateTriggerToken } from '../../../services/triggers/triggers.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument, slugArgument } from '../common-arguments.js';

export const rotateTriggerTokenTool = defineTool({
  name: 'rotate_trigger_token',
  title: 'Rotate trigger URL',
  description:
    'Gives a trigger a new secret URL; the previous URL stops working at once. Use it when a URL has leaked.',
  effect: 'destructive',
  input: z.object({ agentId: agentIdArgument, slug: slugArgument }),
  handler: ({ agentId, slug }, { caller, services }) => rotateTriggerToken(services.triggers, caller, agentId, slug),
});

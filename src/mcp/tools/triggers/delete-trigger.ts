import { z } from 'zod';
import { deleteTrigger } from '../../../services/triggers/triggers.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument, slugArgument } from '../common-arguments.js';

export const deleteTriggerTool = defineTool({
  name: 'delete_trigger',
  title: 'Delete trigger',
  description:
    'Deletes a trigger; its URL dies at once and cannot be had back. To pause it use upsert_trigger with enabled false; for a leaked URL rotate_trigger_token.',
  effect: 'destructive',
  confirm: true,
  input: z.object({ agentId: agentIdArgument, slug: slugArgument }),
  handler: ({ agentId, slug }, { caller, services }) => deleteTrigger(services.triggers, caller, agentId, slug),
});

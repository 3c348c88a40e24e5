import { z } from 'zod';
import { detachConnector } from '../../../services/connectors.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../shared-arguments.js';
import { connectorSlugArgument } from './connector-arguments.js';

export const detachConnectorTool = defineTool({
  name: 'detach_connector',
  title: 'Detach connector',
  description:
    'Takes a connector away from an agent: its next runs do not have the tools of that service. The credential in the Secret stays.',
  effect: 'destructive',
  confirm: true,
  input: z.object({ agentId: agentIdArgument, slug: connectorSlugArgument }),
  handler: ({ agentId, slug }, { caller, services }) => detachConnector(services.agents, caller, agentId, slug),
});

import { z } from 'zod';
import { detachConnector } from '../../../services/connectors/connectors.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';
import { connectorSlugArgument } from './connector-arguments.js';

export const detachConnectorTool = defineTool({
  name: 'detach_connector',
  title: 'Detach connector',
  description: 'Takes a connector from an agent: its next runs lack the tools of that service. The credential stays.',
  effect: 'destructive',
  confirm: true,
  input: z.object({ agentId: agentIdArgument, slug: connectorSlugArgument }),
  handler: ({ agentId, slug }, { caller, services }) => detachConnector(services.agents, caller, agentId, slug),
});

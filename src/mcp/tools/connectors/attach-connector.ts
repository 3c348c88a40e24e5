import { z } from 'zod';
import { attachConnector } from '../../../services/connectors/connectors.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';
import { connectorSlugArgument } from './connector-arguments.js';

export const attachConnectorTool = defineTool({
  name: 'attach_connector',
  title: 'Attach connector',
  description:
    'Connects an agent to a service of the catalog. nextStep is the command with which a person gives a missing credential; never ask for the credential itself. Servers outside the catalog: set_mcp_servers.',
  effect: 'write',
  idempotent: true,
  input: z.object({ agentId: agentIdArgument, slug: connectorSlugArgument }),
  handler: ({ agentId, slug }, { caller, services }) => attachConnector(services.agents, caller, agentId, slug),
});

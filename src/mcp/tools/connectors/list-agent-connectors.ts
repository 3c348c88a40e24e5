import { z } from 'zod';
import { listAgentConnectors } from '../../../services/connectors/connectors.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';

export const listAgentConnectorsTool = defineTool({
  name: 'list_agent_connectors',
  title: 'List connectors of an agent',
  description:
    'Lists the connectors of one agent with status (active, needs_auth, needs_config) and missing credentials. The catalog is in search_connectors.',
  effect: 'read',
  input: z.object({ agentId: agentIdArgument }),
  handler: ({ agentId }, { caller, services }) => listAgentConnectors(services.scope, caller, agentId),
});

import { z } from 'zod';
import { Provider } from '../../../api/v1alpha1/common.js';
import { listModels } from '../../../services/models/models.js';
import { defineTool } from '../../define-tool.js';
import { spaceIdArgument } from '../common-arguments.js';

export const listModelsTool = defineTool({
  name: 'list_models',
  title: 'List models',
  description:
    'Lists providers and models for agents of a Box with prices, context window and availability. Ask it before create_agent or update_agent set a model.',
  effect: 'read',
  input: z.object({
    spaceId: spaceIdArgument,
    provider: Provider.optional().describe('Only models of this provider.'),
  }),
  handler: (input, { caller, services }) => listModels(services.models, caller, input),
});

import { z } from 'zod';
import { installTemplate } from '../../../services/templates/install.js';
import { defineTool } from '../../define-tool.js';
import { spaceIdArgument } from '../common-arguments.js';
import { templateGate, templateIdArgument } from './template-arguments.js';
export const installTemplateTool = defineTool({
  name: 'install_template',
  title: 'Install template',
  description:
    'Creates all agents of a template in a Box, or none. Taken handles get a number, schedules are off, triggers get new URLs. Guided setups start: get_run with setupRunId.',
  effect: 'run',
  gate: templateGate,
  input: z.object({
    templateId: templateIdArgument,
    spaceId: spaceIdArgument,
    version: z.int().min(0).optional().describe('Latest published by default; 0 = own draft.'),
  }),
  handler: (input, { caller, services }) => installTemplate(services.templates, caller, input),
});

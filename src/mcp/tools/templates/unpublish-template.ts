import { z } from 'zod';
import { unpublishTemplate } from '../../../services/templates/publish.js';
import { defineTool } from '../../define-tool.js';
import { templateGate, templateIdArgument } from './template-arguments.js';
export const unpublishTemplateTool = defineTool({
  name: 'unpublish_template',
  title: 'Unpublish template',
  description: 'Hides a published template from other workspaces; versions and installed agents stay.',
  effect: 'write',
  idempotent: true,
  gate: templateGate,
  input: z.object({ templateId: templateIdArgument }),
  handler: ({ templateId }, { caller, services }) => unpublishTemplate(services.templates, caller, templateId),
});

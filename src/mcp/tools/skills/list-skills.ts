import { z } from 'zod';
import { listSkills } from '../../../services/skills/skills.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';

export const listSkillsTool = defineTool({
  name: 'list_skills',
  title: 'List skills',
  description:
    'Lists the skills of an agent with description and file names, without their text. Read one with get_skill, its files with read_skill_file.',
  effect: 'read',
  input: z.object({ agentId: agentIdArgument }),
  handler: ({ agentId }, { caller, services }) => listSkills(services.scope, caller, agentId),
});

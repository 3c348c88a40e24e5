import { z } from 'zod';
import { getSkill } from '../../../services/skills/skills.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';
import { skillSlugArgument } from './skill-arguments.js';

export const getSkillTool = defineTool({
  name: 'get_skill',
  title: 'Get skill',
  description:
    'Returns one skill with its full instructions (body, the text of SKILL.md) and the list of its files. Contents of files: read_skill_file.',
  effect: 'read',
  input: z.object({ agentId: agentIdArgument, slug: skillSlugArgument }),
  handler: ({ agentId, slug }, { caller, services }) => getSkill(services.scope, caller, agentId, slug),
});

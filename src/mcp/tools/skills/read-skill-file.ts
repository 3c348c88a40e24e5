import { z } from 'zod';
import { readSkillFile } from '../../../services/skills/skills.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument, textArgument } from '../common-arguments.js';
import { skillSlugArgument } from './skill-arguments.js';

export const readSkillFileTool = defineTool({
  name: 'read_skill_file',
  title: 'Read skill file',
  description:
    'Returns one file of a skill, 100,000 characters a page: call again with offset = nextOffset until it is null. The instructions are in get_skill.',
  effect: 'read',
  input: z.object({
    agentId: agentIdArgument,
    slug: skillSlugArgument,
    path: textArgument.min(1).describe('Path of the file, as get_skill lists it.'),
    offset: z.int().min(0).default(0).describe('Character to begin at.'),
  }),
  handler: ({ agentId, ...file }, { caller, services }) => readSkillFile(services.scope, caller, agentId, file),
});

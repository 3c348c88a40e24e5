import { z } from 'zod';
import { AgentSkillSpec } from '../../../api/v1alpha1/agent-skill.js';
import { upsertSkill } from '../../../services/skills/skills.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument, idArgument, textArgument } from '../common-arguments.js';

const file = z.object({
  path: textArgument.min(1).describe('For example scripts/check.sh.'),
  content: textArgument.describe('At most 256 KiB.'),
  encoding: z.enum(['utf8', 'base64']).default('utf8').describe('base64 for files that are not text.'),
});

export const upsertSkillTool = defineTool({
  name: 'upsert_skill',
  title: 'Create or update skill',
  description:
    'Gives an agent a skill in the Agent Skills format (omit slug; needs name, description and body) or changes one (pass slug). What is not passed stays; files are added or replaced by path.',
  effect: 'write',
  input: z.object({
    agentId: agentIdArgument,
    slug: idArgument.optional().describe('Omit to create.'),
    name: AgentSkillSpec.shape.name.optional().describe('To create; the slug comes from it.'),
    description: AgentSkillSpec.shape.description.optional().describe('To create: what it is for and when to use it.'),
    body: textArgument.min(1).optional().describe('To create: the instructions in markdown, no front matter.'),
    files: z.array(file).max(100).optional().describe('Files to add or replace; 1 MiB and 100 files a skill.'),
    removeFiles: z.array(textArgument.min(1)).max(100).optional().describe('Paths of files to remove.'),
  }),
  handler: ({ agentId, ...input }, { caller, services }) => upsertSkill(services.skills, caller, agentId, input),
});

import { z } from 'zod';
import { deleteSkill } from '../../../services/skills/skills.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';
import { skillSlugArgument } from './skill-arguments.js';

export const deleteSkillTool = defineTool({
  name: 'delete_skill',
  title: 'Delete skill',
  description:
    'Deletes a skill of an agent with all its files; this cannot be undone. To remove single files use upsert_skill with removeFiles.',
  effect: 'destructive',
  confirm: true,
  input: z.object({ agentId: agentIdArgument, slug: skillSlugArgument }),
  handler: ({ agentId, slug }, { caller, services }) => deleteSkill(services.skills, caller, agentId, slug),
});

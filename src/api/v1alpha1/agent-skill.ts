import { z } from 'zod';
import { AGE_COLUMN, childOfAgentName, defineResource, immutableSpecField } from '../define-resource.js';
import type { Resource } from '../meta.js';
import { Timestamp } from './common.js';

/** Limits of a skill: bytes of one file, of all files with the body, and number of files. */
export const MAX_SKILL_FILE_BYTES = 256 * 1024;
export const MAX_SKILL_BYTES = 1024 * 1024;
export const MAX_SKILL_FILES = 100;
/** Skills of one page of a list: with their files up to 30 MB. */
export const SKILL_PAGE_SIZE = 20;

export const AgentSkillSpec = z.object({
  agent: z.string().min(1).max(36).describe('The Agent of this namespace that has the skill. Immutable.'),
  name: z.string().min(1).max(128).describe('Display name. The name inside SKILL.md is the slug.'),
  description: z.string().min(1).max(1024).describe('What the skill is for and when to use it; agents choose by it.'),
  body: z.string().max(MAX_SKILL_FILE_BYTES).describe('The instructions: SKILL.md without its front matter.'),
  files: z
    .array(
      z.object({
        path: z.string().min(1).max(256).describe('Path inside the skill, for example scripts/check.sh.'),
        bytes: z.int().min(0).max(MAX_SKILL_FILE_BYTES).describe('Size of the file in bytes.'),
        encoding: z.enum(['utf8', 'base64']).describe('utf8 for text, base64 for anything else.'),
      }),
    )
    .max(MAX_SKILL_FILES)
    .default([])
    .describe('The files beside SKILL.md, in the order in which they stand in `archive`.'),
  archive: z
    .string()
    .max(1_450_000)
    .optional()
    .describe('The contents of all files one after the other, gzip, base64. Absent when there are none.'),
  updatedAt: Timestamp.optional().describe('When a tool last changed the skill; creation when absent.'),
});

/** A skill of an agent in the Agent Skills format: SKILL.md and files. Replaced as a whole, so never half written. */
export const AgentSkills = defineResource({
  kind: 'AgentSkill',
  plural: 'agentskills',
  shortNames: ['ask'],
  namespaced: true,
  description: 'A skill of an agent in the Agent Skills format: instructions and files.',
  spec: AgentSkillSpec,
  columns: [
    { name: 'Agent', jsonPath: '.spec.agent', type: 'string', description: 'The agent that has it.' },
    { name: 'Description', jsonPath: '.spec.description', type: 'string', description: 'What the skill is for.' },
    AGE_COLUMN,
  ],
  rules: [childOfAgentName('AgentSkill'), immutableSpecField('agent')],
});
export type AgentSkill = Resource<z.output<typeof AgentSkillSpec>, unknown>;

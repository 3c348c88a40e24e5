/** Arguments that several tools take. */
import { z } from 'zod';

export const agentIdArgument = z.string().min(1).describe('Agent id, from list_agents.');
export const runIdArgument = z.string().min(1).describe('Run id, from list_runs, send_message or a trigger call.');
export const slugArgument = z.string().min(1).describe('Slug of the trigger, from list_triggers.');
export const waitSecondsArgument = z.number().min(0).max(600);
export const spaceIdArgument = z
  .string()
  .min(1)
  .optional()
  .describe('Box, from list_spaces; optional when there is only one.');

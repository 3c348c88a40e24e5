/** Arguments that several tools take. */
import { z } from 'zod';

export const agentIdArgument = z.string().min(1).describe('From list_agents.');
export const runIdArgument = z.string().min(1).describe('From list_runs or send_message.');
export const slugArgument = z.string().min(1).describe('From list_triggers.');
export const waitSecondsArgument = z.number().min(0).max(600);
export const spaceIdArgument = z.string().min(1).optional().describe('From list_spaces; optional with a single Box.');

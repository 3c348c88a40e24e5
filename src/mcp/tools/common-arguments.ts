/** Arguments that several tools take. */
import { z } from 'zod';

/** An id or a slug, up to the longest that an object of ours can have; an unknown one is not found. */
export const idArgument = z.string().min(1).max(512);
/** A text whose maximum counts bytes: the use-case checks it. */
export const textArgument = z.string().max(1024 * 1024);

export const agentIdArgument = idArgument.describe('From list_agents.');
export const runIdArgument = idArgument.describe('From list_runs or send_message.');
export const slugArgument = idArgument.describe('From list_triggers.');
export const waitSecondsArgument = z.number().min(0).max(600);
export const spaceIdArgument = idArgument.optional().describe('From list_spaces; optional with a single Box.');

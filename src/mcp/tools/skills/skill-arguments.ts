/** Arguments that several skill tools take. */
import { z } from 'zod';

export const skillSlugArgument = z.string().min(1).describe('Slug of the skill, from list_skills.');

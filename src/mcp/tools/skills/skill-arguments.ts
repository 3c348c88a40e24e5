/** Arguments that several skill tools take. */
import { z } from 'zod';

export const skillSlugArgument = z.string().min(1).describe('From list_skills.');

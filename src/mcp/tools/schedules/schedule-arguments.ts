/** Arguments that several schedule tools take. */
import { z } from 'zod';

export const scheduleSlugArgument = z.string().min(1).describe('From list_schedules.');

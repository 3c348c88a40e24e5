/** Arguments that several schedule tools take. */
import { z } from 'zod';

export const scheduleSlugArgument = z.string().min(1).describe('Slug of the schedule, from list_schedules.');

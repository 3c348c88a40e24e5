/** Arguments that several schedule tools take. */
import { idArgument } from '../common-arguments.js';

export const scheduleSlugArgument = idArgument.describe('From list_schedules.');

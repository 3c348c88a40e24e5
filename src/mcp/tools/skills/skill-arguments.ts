/** Arguments that several skill tools take. */
import { idArgument } from '../common-arguments.js';

export const skillSlugArgument = idArgument.describe('From list_skills.');

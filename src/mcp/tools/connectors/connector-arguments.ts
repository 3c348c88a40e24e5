/** Arguments of the connector tools. */
import { z } from 'zod';

export const connectorSlugArgument = z.string().min(1).max(63).describe('From search_connectors.');

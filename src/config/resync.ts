/** Setting of every process that caches the cluster. */
import { z } from 'zod';

/** `BOXWRIGHT_RESYNC_SECONDS`: in case an event was lost on the way. It costs no request. */
export const resyncSeconds = z.coerce
  .number()
  .int()
  .min(1)
  .max(86_400)
  .default(600)
  .describe('How often this process looks again at all objects that it caches.');

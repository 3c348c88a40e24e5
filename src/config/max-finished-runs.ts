/** A setting of all processes that start runs for others. */
import { z } from 'zod';

export const maxFinishedRuns = z.coerce
  .number()
  .int()
  .min(1)
  .default(50_000)
  .describe('Finished runs that retention leaves in the cluster; a fifth above it calls are turned away.');

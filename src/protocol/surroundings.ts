/** What the Job of a run tells its runner of the pod around it: for the model, and for which tools can work. Nothing is decided by it. */
import { z } from 'zod';

export const Surroundings = z.object({
  /** `spec.egress.mode` of the Box. */
  egress: z.string().max(32),
  /** Whether later runs of the agent find its files. */
  filesStay: z.boolean(),
  /** What budgets left when the Job was made; absent without one. */
  budgetLeft: z.object({ tokens: z.int().min(0).optional(), usd: z.string().max(24).optional() }).optional(),
});
export type Surroundings = z.output<typeof Surroundings>;

/** As a variable of the environment. */
export function renderSurroundings(surroundings: Surroundings): string {
  return JSON.stringify(surroundings);
}

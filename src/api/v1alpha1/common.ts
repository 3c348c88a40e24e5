/** Schema pieces that several kinds share. Every string and list is bounded: CEL cost and etcd size depend on it. */
import { z } from 'zod';

/** RFC 3339 time in UTC. A plain string on purpose: other writers of Kubernetes times use other precisions. */
export const Timestamp = z.string().max(40);

export const Provider = z.enum(['boxwright', 'anthropic', 'openai', 'google', 'mistral', 'xai', 'deepseek']);
export type Provider = z.output<typeof Provider>;

/** metav1.Condition (type, status, reason, message, observedGeneration, lastTransitionTime). */
export const Condition = z
  .object({
    type: z.string().max(64).describe('What the condition is about, in PascalCase.'),
    status: z.enum(['True', 'False', 'Unknown']).describe('Whether the condition holds.'),
    reason: z.string().max(64).describe('Why, as one PascalCase word; docs/reasons.md lists them.'),
    message: z.string().max(1024).describe('Why, as a sentence for a person.'),
    lastTransitionTime: Timestamp.describe('When status last changed.'),
    observedGeneration: z.int().min(0).optional().describe('The generation of the spec that this is about.'),
  })
  .describe('One observation about the object.');
export type Condition = z.output<typeof Condition>;

export const Conditions = z.array(Condition).max(16).optional().describe('The latest observations of the controllers.');

/** Sums over finished runs that were removed from the cluster. Live runs are added on read, so no run counts twice. */
export const FoldedTotals = z
  .object({
    runs: z.int().min(0).describe('Runs.'),
    inputTokens: z.int().min(0).describe('Input tokens.'),
    outputTokens: z.int().min(0).describe('Output tokens.'),
    costMicroUsd: z.int().min(0).describe('Known cost in millionths of a US dollar.'),
    lastRunAt: Timestamp.optional().describe('When the newest of these runs was accepted.'),
  })
  .optional()
  .describe('Sums over runs that are no longer in the cluster.');
export type FoldedTotals = NonNullable<z.output<typeof FoldedTotals>>;

/** UIDs of runs that are added to `folded` but may still be visible in the cluster. */
export const Folding = z
  .array(z.string().max(64))
  .max(4096)
  .optional()
  .describe('UIDs of runs already in `folded` whose removal is not confirmed yet.');

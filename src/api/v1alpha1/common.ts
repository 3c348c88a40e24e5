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

/** Limits of what runs may use together. */
export const Budgets = z
  .array(
    z
      .object({
        per: z
          .enum(['run', 'day', 'month'])
          .describe('What the limit is for; days and months are those of UTC, and a run counts where it was admitted.'),
        usd: z
          .string()
          .max(24)
          .regex(/^\d{1,9}(\.\d{1,6})?$/)
          .optional()
          .describe('US dollars, for example "25.00"; models without a known price are refused then.'),
        tokens: z.int().min(0).max(1_000_000_000_000).optional().describe('Input and output tokens.'),
      })
      .describe('One limit of money or tokens for one period.'),
  )
  .max(3)
  .optional()
  .describe('Limits of money and tokens, at most one for each period; a run that meets one ends with BudgetExhausted.');
export type Budgets = NonNullable<z.output<typeof Budgets>>;

/** CEL rules for `spec.budget`. */
export const BUDGET_RULES = [
  {
    rule: `!has(self.spec.budget) || self.spec.budget.all(b, has(b.usd) || has(b.tokens))`,
    message: 'each entry of spec.budget needs usd, tokens or both',
    fieldPath: '.spec.budget',
  },
  {
    rule: `!has(self.spec.budget) || self.spec.budget.all(b, self.spec.budget.exists_one(c, c.per == b.per))`,
    message: 'spec.budget has two entries for the same period',
    fieldPath: '.spec.budget',
  },
] as const;

/** Sums over finished runs that were removed from the cluster. Live runs are added on read, so no run counts twice. */
export const FoldedTotals = z
  .object({
    runs: z.int().min(0).describe('Number of these runs.'),
    inputTokens: z.int().min(0).describe('Sum of their input tokens.'),
    outputTokens: z.int().min(0).describe('Sum of their output tokens.'),
    costMicroUsd: z.int().min(0).describe('Known cost in millionths of a US dollar.'),
    costKnown: z
      .boolean()
      .optional()
      .describe('True when the cost of at least one of these runs is known, which may be 0.'),
    lastRunAt: Timestamp.optional().describe('When the newest of these runs was accepted.'),
    periods: z
      .array(
        z
          .object({
            period: z.string().max(10).describe('A day (2026-11-21) or a month (2026-11) of UTC.'),
            tokens: z.int().min(0).describe('Input and output tokens.'),
            costMicroUsd: z.int().min(0).describe('Known cost in millionths of a US dollar.'),
          })
          .describe('The sums of one period.'),
      )
      .max(8)
      .optional()
      .describe('Sums of the latest days and months, for budgets.'),
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

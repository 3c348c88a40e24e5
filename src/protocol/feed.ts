/**
 * What the gateway pod that serves a run tells API pods of it while it works, beyond what is stored:
 *
 *   GET /internal/v1/runs/{namespace}/{run}/feed?after=SEQ  ->  FeedAnswer
 *
 * Every call carries `Authorization: Bearer <token of the API pod for this audience>`. Status codes: 200; 401 another token;
 * 404 this pod does not serve the run; 503 it stops. Whoever gets no answer shows what is stored.
 * See docs/architecture.md#what-a-working-run-does-now.
 */
import { z } from 'zod';
import { RunEvent } from './run.js';
import { Name, listOf } from './sizes.js';

/** Path of the feed of one run. */
export function feedPath(namespace: string, run: string): string {
  return `/internal/v1/runs/${namespace}/${run}/feed`;
}

export const FeedAnswer = z.object({
  /** Of the AgentRun: a name may be used again. */
  uid: Name,
  /** As the gateway counted until now. */
  usage: z.object({ steps: z.int(), inputTokens: z.int(), outputTokens: z.int(), totalTokens: z.int() }),
  /** Events after `after` that are not stored, in order. */
  events: listOf(RunEvent),
  /** True when some of them had to make room. */
  incomplete: z.boolean(),
});
export type FeedAnswer = z.output<typeof FeedAnswer>;

/**
 * What the gateway pod that serves a run tells API pods of it while it works, beyond what is stored:
 *
 *   GET /internal/v1/runs/{namespace}/{run}/feed?after=SEQ  ->  FeedAnswer
 *
 * With `Accept: text/event-stream` the answer is a stream: each event has the JSON of a FeedMessage, and those that have a
 * sequence have it as their id. It begins with `run`; it ends with `end` when this pod serves the run no more, and without
 * when the follower was too slow or the pod stops: then it may ask again for what comes after the last id.
 *
 * Every call carries `Authorization: Bearer <token of the API pod for this audience>`. Status codes: 200; 401 another token;
 * 404 this pod does not serve the run; 503 it stops. Whoever gets no answer shows what is stored.
 * See docs/architecture.md#what-a-working-run-does-now.
 */
import { z } from 'zod';
import { RunEvent } from './run.js';
import { Name, Text, listOf } from './sizes.js';

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

/** One event of the stream. */
export const FeedMessage = z.discriminatedUnion('type', [
  /** `uid` and `incomplete` of a {@link FeedAnswer}. */
  z.object({ type: z.literal('run'), uid: Name, incomplete: z.boolean() }),
  z.object({ type: z.literal('event'), event: RunEvent }),
  z.object({ type: z.literal('usage'), usage: FeedAnswer.shape.usage }),
  /** More of what the model writes, at this place of it; 0 begins another answer. It is stored only as an event, when it is whole. */
  z.object({ type: z.literal('text'), from: z.int().min(0), text: Text }),
  z.object({ type: z.literal('end') }),
]);
export type FeedMessage = z.output<typeof FeedMessage>;

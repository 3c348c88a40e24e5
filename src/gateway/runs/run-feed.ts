/** What a run that this pod serves does now, for API pods: at once, or for as long as they follow it. */
import type { ObjectRef } from '../../kube/types.js';
import type { FeedAnswer } from '../../protocol/feed.js';
import type { Clock } from '../../runtime/clock.js';
import { GatewayError, tryAgain } from '../errors.js';
import type { AnswerSink } from '../models/answer-sink.js';
import { FeedStream } from './feed-stream.js';
import type { ServedRun, ServedRuns } from './served-runs.js';

/** Of all runs of this pod. */
const MAX_FOLLOWERS = 256;

export interface RunFeedOptions {
  served: Pick<ServedRuns, 'get'>;
  clock: Clock;
  /** True while the process stops: followers go to another pod. */
  isDraining: () => boolean;
}

export class RunFeed {
  readonly #options: RunFeedOptions;
  #followers = 0;

  constructor(options: RunFeedOptions) {
    this.#options = options;
  }

  /** What is not stored of the events after this sequence. Throws 404 for a run that this pod does not serve. */
  read(run: ObjectRef, after: number): FeedAnswer {
    const served = this.#servedOf(run);
    return { uid: served.uid, usage: usageOf(served), ...served.live.after(after) };
  }

  /**
   * Writes what is not stored of the events after this sequence and everything that happens then, until the run ends here or
   * the follower is gone. Rejects with 404 as {@link read}, or with 503 when too many follow.
   */
  async follow(run: ObjectRef, after: number, sink: AnswerSink, gone: AbortSignal): Promise<void> {
    const served = this.#servedOf(run);
    if (this.#followers >= MAX_FOLLOWERS) throw tryAgain('too many follow runs of this gateway pod');
    this.#followers += 1;
    try {
      const { clock, isDraining } = this.#options;
      await new FeedStream({ served, usage: () => usageOf(served), clock, isDraining, sink, gone }).run(after);
    } finally {
      this.#followers -= 1;
    }
  }

  #servedOf(run: ObjectRef): ServedRun {
    const served = this.#options.served.get(run);
    if (served === undefined) throw new GatewayError(404, 'this pod does not serve the run', { type: 'RunNotFound' });
    return served;
  }
}

function usageOf({ usage: { steps, inputTokens, outputTokens, totalTokens } }: ServedRun): FeedAnswer['usage'] {
  return { steps, inputTokens, outputTokens, totalTokens };
}

/** What a run that this pod serves does now, for API pods. */
import type { ObjectRef } from '../../kube/types.js';
import type { FeedAnswer } from '../../protocol/feed.js';
import { GatewayError } from '../errors.js';
import type { ServedRuns } from './served-runs.js';

export class RunFeed {
  readonly #served: Pick<ServedRuns, 'get'>;

  constructor(served: Pick<ServedRuns, 'get'>) {
    this.#served = served;
  }

  /** What is not stored of the events after this sequence. Throws 404 for a run that this pod does not serve. */
  read(run: ObjectRef, after: number): FeedAnswer {
    const served = this.#served.get(run);
    if (served === undefined) throw new GatewayError(404, 'this pod does not serve the run', { type: 'RunNotFound' });
    const { steps, inputTokens, outputTokens, totalTokens } = served.usage;
    return {
      uid: served.uid,
      usage: { steps, inputTokens, outputTokens, totalTokens },
      ...served.live.after(after),
    };
  }
}

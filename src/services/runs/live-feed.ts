/** What a working run does now, beyond what is stored: its gateway pod knows. */
import { isTerminal } from '../../run/status.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { FeedAnswer } from '../../protocol/feed.js';

export interface LiveFeeds {
  /**
   * What the gateway pod at this address knows of the run; undefined when it has no answer, or not soon enough: then what is
   * stored is shown. Never rejects.
   */
  read(run: LiveRunRef): Promise<FeedAnswer | undefined>;
}

/** A run, and the gateway pod that serves it. */
export interface LiveRunRef {
  namespace: string;
  name: string;
  /** host:port */
  gatewayAddress: string;
}

/**
 * What this run does now; undefined for one that does not work. To be asked before the transcript is read: what is stored in
 * between is then in both, and in neither otherwise.
 */
export async function liveOf(feeds: LiveFeeds, run: AgentRun): Promise<FeedAnswer | undefined> {
  const { namespace = '', name, uid } = run.metadata;
  const gatewayAddress = run.status?.claim?.gatewayAddress;
  if (gatewayAddress === undefined || isTerminal(run)) return undefined;
  const answer = await feeds.read({ namespace, name, gatewayAddress });
  return answer?.uid === uid ? answer : undefined;
}

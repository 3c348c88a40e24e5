/**
 * A fire of a trigger, from the call as received to the run. The trigger URL and the tool test_trigger both come through
 * here, so that a test shows exactly what a real call produces.
 */
import type { AgentRef } from '../../api/names.js';
import { MAX_MESSAGE_BYTES } from '../../api/v1alpha1/agent-run.js';
import type { Clock } from '../../runtime/clock.js';
import { exceededBacklog } from './backlog-budget.js';
import type { BacklogReader, BacklogScope } from './backlog-budget.js';
import { withTimeout } from '../../runtime/with-timeout.js';
import { ACKNOWLEDGE_MS, StartRunError } from './start-run.js';
import type { StartRunRequest, StartedRun } from './start-run.js';
import { MAX_SHOWN_BYTES, renderPayloadBlock } from './payload-block.js';

/** What a fire needs to know of a trigger. */
export interface FireableTrigger {
  agent: AgentRef;
  agentUid: string;
  slug: string;
  /** UID of the AgentTrigger: fires are counted by it. */
  uid: string;
  /** The instruction that stands before the payload. */
  body: string;
}

/** The call as received. */
export interface FireRequest {
  trigger: FireableTrigger;
  method: string;
  /** The Content-Type header. */
  contentType: string | undefined;
  body: Buffer;
  /** Query string of the URL without the question mark. */
  query: string;
  /** Milliseconds since the epoch. */
  receivedAt: number;
  /** Who is behind the call, for spec.actor: `trigger`, or the prefix of the API key that called test_trigger. */
  actor: string;
  /** Name of the run, when the caller's delivery id stands for one: if it is there already, it is the answer. */
  runName?: string | undefined;
}

export interface FireDeps {
  /** {@link startRun} of the services with its dependencies bound. */
  startRun(request: StartRunRequest, signal: AbortSignal): Promise<StartedRun>;
  /** {@link findStartedRun} of the services with its dependencies bound. */
  findStartedRun(request: StartRunRequest & { name: string }): Promise<StartedRun | undefined>;
  backlog: BacklogReader;
  clock: Clock;
}

/** Why a call was turned away. Callers of the URL see one 404 for all of them; metrics and logs tell them apart. */
export type TurnAwayCause = `backlog_${BacklogScope}` | 'refused' | 'no_answer' | 'message_too_large';

export type FireOutcome = ({ fired: true } & StartedRun) | { fired: false; cause: TurnAwayCause; error?: unknown };

/**
 * Starts the run of one call: `fired` means that the AgentRun is in etcd. The API server gets 15 seconds (spec 8). Each
 * call opens a session of its own (spec 4.3.5). A repeated delivery gets the run that it has, also while the backlog is
 * full: that costs one read. Rejects only for an error in our own code.
 */
export async function fireTrigger(request: FireRequest, deps: FireDeps): Promise<FireOutcome> {
  const scope = exceededBacklog(deps.backlog, request.trigger.agent);
  if (scope !== undefined) {
    const earlier = await earlierRun(request, deps);
    return earlier === undefined ? { fired: false, cause: `backlog_${scope}` } : { fired: true, ...earlier };
  }
  const run = triggeredRun(request);
  try {
    return { fired: true, ...(await withTimeout(deps.clock, ACKNOWLEDGE_MS, (signal) => deps.startRun(run, signal))) };
  } catch (error) {
    if (!(error instanceof StartRunError)) throw error;
    return { fired: false, cause: TURNED_AWAY[error.kind], error };
  }
}

async function earlierRun(request: FireRequest, deps: FireDeps): Promise<StartedRun | undefined> {
  const run = triggeredRun(request);
  return run.name === undefined ? undefined : await deps.findStartedRun({ ...run, name: run.name });
}

const TURNED_AWAY: Record<StartRunError['kind'], TurnAwayCause> = {
  'too-large': 'message_too_large',
  refused: 'refused',
  unconfirmed: 'no_answer',
};

/** The run of a call (pure): the trigger's body, then the block with the payload (spec 4.3.3). */
export function triggeredRun(request: FireRequest): StartRunRequest {
  const { agent, agentUid, slug, uid } = request.trigger;
  return {
    agent,
    ...(request.runName === undefined ? {} : { name: request.runName }),
    agentUid,
    message: triggerMessage(request),
    trigger: { origin: 'trigger', name: slug, uid },
    sessionTitle: `trigger: ${slug}`,
    actor: request.actor,
  };
}

/** Room for the tags of the block: a slug, a method, a media type and a time are bounded. */
const TAGS_BYTES = 1024;

function triggerMessage(request: FireRequest): string {
  const { slug, body } = request.trigger;
  // A body near its own maximum leaves less than 64 KB of the message to the payload.
  const room = MAX_MESSAGE_BYTES - Buffer.byteLength(body) - TAGS_BYTES;
  const shown = Math.max(0, Math.min(MAX_SHOWN_BYTES, room));
  return `${body}\n\n${renderPayloadBlock({ ...request, slug }, shown)}`;
}

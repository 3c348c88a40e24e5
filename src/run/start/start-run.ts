/**
 * A run starts in exactly one way, whoever asks: one create of an AgentRun whose name is chosen before the call, so that
 * a repeated create is harmless and an unclear answer can be checked by one read.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { ANNOTATION_REQUESTED_BY, FINALIZER_ROLL_UP, LABEL_AGENT, LABEL_EVAL } from '../../api/labels.js';
import { API_VERSION } from '../../api/define-resource.js';
import { acceptedAt, boxNamespace } from '../../api/names.js';
import type { AgentRef } from '../../api/names.js';
import { newRunName } from '../../api/ulid.js';
import { AgentEvals } from '../../api/v1alpha1/agent-eval.js';
import { AgentRuns, MAX_INLINE_MESSAGE_BYTES, MAX_MESSAGE_BYTES } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { KubeApiError, isAlreadyExists } from '../../kube/errors.js';
import { controllerReference } from '../../kube/owner-references.js';
import type { KubeApi } from '../../kube/types.js';
import { sleep } from '../../runtime/clock.js';
import type { Clock } from '../../runtime/clock.js';
import { withTimeout } from '../../runtime/with-timeout.js';
import type { CreateEnd, ReserveRun } from './own-runs.js';
import { sessionTitleOf } from '../session/title.js';
import { storedInputBytes } from '../message.js';
import { sessionIdOf } from '../session/key.js';

/** How long a caller waits for the acknowledgement of a run (spec 8). */
export const ACKNOWLEDGE_MS = 15_000;
/** One attempt of the create; a connection that hangs is given up and the same name is tried again. */
const ATTEMPT_MS = 5_000;
/** The one read after an unclear end. */
const READ_BACK_MS = 2_000;
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 1_000;

export interface StartRunRequest {
  /** The Box and the Agent's object name. */
  agent: AgentRef;
  /**
   * Name of the run, for a start that may be repeated by anybody: a run of that name with the same trigger or parent UID is the
   * one that is wanted. A new name when absent.
   */
  name?: string;
  /** UID of the Agent as the caller saw it: a run for a deleted namesake is refused by the controller. */
  agentUid: string;
  /** The whole message; at most 128 KiB in UTF-8. */
  message: string;
  trigger: NonNullable<AgentRun['spec']['trigger']>;
  /** The session that the run continues; a new one when absent. */
  sessionId?: string;
  /** Title of the session that the run opens. */
  sessionTitle?: string;
  /** The message is for the run of the session that works, if there is one by then. */
  steer?: boolean;
  /** A model instead of the agent's. */
  model?: AgentRun['spec']['model'];
  /** Limits below those of Box and Agent. */
  limits?: AgentRun['spec']['limits'];
  /** The run that this one takes further; then `name` is that of the retry. */
  retryOf?: NonNullable<AgentRun['spec']['retryOf']>;
  /** What answers in the place of a model. */
  recording?: AgentRun['spec']['recording'];
  /** Prefix of an API key, `trigger`, `schedule`, `eval` or `run:<name>`. */
  actor: string;
  /** The run whose agent called this one; then `name` is that of the call. */
  parent?: NonNullable<AgentRun['spec']['parent']>;
}

export interface StartedRun {
  runId: string;
  sessionId: string;
  /** For the write barrier. */
  resourceVersion: string;
  /** Whether an earlier start of the same name had made the run already. */
  existed: boolean;
}

export interface StartRunDeps {
  api: Pick<KubeApi, 'create' | 'get'>;
  clock: Clock;
  /** Acceptance of the newest known run of a session; undefined for a new session. */
  lastOfSession(namespace: string, sessionId: string): string | undefined;
  /** Counts the run in the backlog budget before the cache shows it, in a process that decides by that budget. */
  reserve?: ReserveRun | undefined;
}

/**
 * Why no run was started. `too-large`: the message is above 128 KiB. `refused`: the API server refused the run for good
 * (namespace gone or terminating, admission, quota). `unconfirmed`: no clear answer in the caller's time and the run is
 * not there.
 */
export class StartRunError extends Error {
  override readonly name = 'StartRunError';
  /** Whether an attempt without a clear answer may have stored the run, or may still do so. */
  readonly mayBeStored: boolean;
  constructor(
    readonly kind: 'too-large' | 'refused' | 'unconfirmed',
    message: string,
    { mayBeStored = false, ...options }: { cause?: unknown; mayBeStored?: boolean } = {},
  ) {
    super(message, options);
    this.mayBeStored = mayBeStored;
  }
}

/** The name that was asked for is that of another run. */
export class RunNameTakenError extends StartRunError {
  constructor(options?: { cause?: unknown }) {
    super('refused', 'another run has the name', options);
  }
}

/**
 * Creates the AgentRun and resolves when it is in etcd. Retries connection errors, timeouts and 429/5xx answers with the
 * same name until `signal` fires (callers give it {@link ACKNOWLEDGE_MS}), then reads the name once. Rejects with a
 * {@link StartRunError} and nothing else.
 */
export async function startRun(deps: StartRunDeps, request: StartRunRequest, signal: AbortSignal): Promise<StartedRun> {
  const run = buildRun(deps, request);
  const isSame = request.name === undefined ? isSameRun : isOfSameOrigin;
  const place = deps.reserve?.({
    ...request.agent,
    namespace: run.metadata.namespace ?? '',
    name: run.metadata.name,
    inputBytes: storedInputBytes(run),
  });
  let end: CreateEnd = 'unclear';
  try {
    const started = await createWithRetry(deps, { run, isSame }, signal);
    end = 'stored';
    return started;
  } catch (error) {
    if (error instanceof StartRunError && !error.mayBeStored) end = 'absent';
    throw error;
  } finally {
    place?.settle(end);
  }
}

/**
 * The run that an earlier start of `request.name` made; undefined when there is none, or no answer in 2 s. One read. For callers
 * that may not create a further run.
 */
export async function findStartedRun(
  deps: Pick<StartRunDeps, 'api' | 'clock'>,
  request: StartRunRequest & { name: string },
): Promise<StartedRun | undefined> {
  const found = await readName(deps, { namespace: boxNamespace(request.agent.box), name: request.name });
  return found === undefined || !isOfSameOrigin(found, { spec: request }) ? undefined : startedRun(found, true);
}

function startedRun(run: AgentRun, existed: boolean): StartedRun {
  return {
    runId: run.metadata.name,
    sessionId: sessionIdOf(run),
    resourceVersion: run.metadata.resourceVersion ?? '',
    existed,
  };
}

/** The object that is created: everything about the run is decided here. */
function buildRun(deps: StartRunDeps, request: StartRunRequest): AgentRun {
  const { agent } = request;
  const namespace = boxNamespace(agent.box);
  const last = request.sessionId === undefined ? undefined : deps.lastOfSession(namespace, request.sessionId);
  const now = deps.clock.now();
  // Runs of a session are ordered by createdAt, also when two replicas' clocks differ.
  const createdAtMs = last === undefined ? now : Math.max(now, Date.parse(last) + 1);
  return {
    apiVersion: API_VERSION,
    kind: AgentRuns.kind,
    metadata: {
      namespace,
      name: request.name ?? newRunName(agent.agent, now),
      labels: { [LABEL_AGENT]: agent.agent, ...evalLabel(request.trigger) },
      annotations: { [ANNOTATION_REQUESTED_BY]: request.actor },
      finalizers: [FINALIZER_ROLL_UP],
      ...evalOwner(request.trigger),
    },
    spec: {
      agent: agent.agent,
      agentUid: request.agentUid,
      ...messageFields(request.message),
      trigger: request.trigger,
      ...(request.sessionId === undefined ? {} : { sessionId: request.sessionId }),
      ...(request.sessionTitle === undefined ? {} : { sessionTitle: sessionTitleOf(request.sessionTitle) }),
      createdAt: new Date(createdAtMs).toISOString(),
      actor: request.actor,
      ...(request.parent === undefined ? {} : { parent: request.parent }),
      ...(request.limits === undefined ? {} : { limits: request.limits }),
      ...(request.retryOf === undefined ? {} : { retryOf: request.retryOf }),
      ...(request.steer === true ? { steer: true } : {}),
      ...(request.model === undefined ? {} : { model: request.model }),
      ...(request.recording === undefined ? {} : { recording: request.recording }),
    },
  };
}

/** So that the runs of an AgentEval can be listed. */
function evalLabel({ origin, name }: StartRunRequest['trigger']): Record<string, string> {
  return origin === 'eval' && name !== undefined ? { [LABEL_EVAL]: name } : {};
}

/** The runs of an AgentEval go with it; their finalizer holds each until it is counted. */
function evalOwner({ origin, name, uid }: StartRunRequest['trigger']): Pick<AgentRun['metadata'], 'ownerReferences'> {
  if (origin !== 'eval' || name === undefined || uid === undefined) return {};
  return { ownerReferences: [controllerReference(AgentEvals, { metadata: { name, uid } })] };
}

/** Short messages stand in the object as they are; longer ones are compressed, since etcd rewrites them at every status write. */
function messageFields(message: string): Pick<AgentRun['spec'], 'message' | 'input'> {
  const bytes = Buffer.from(message);
  if (bytes.length > MAX_MESSAGE_BYTES) {
    throw new StartRunError(
      'too-large',
      `the message has ${bytes.length} bytes; at most ${MAX_MESSAGE_BYTES} (128 KiB) are possible`,
    );
  }
  if (bytes.length <= MAX_INLINE_MESSAGE_BYTES) return { message };
  return {
    input: {
      encoding: 'gzip',
      bytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
      data: gzipSync(bytes).toString('base64'),
    },
  };
}

interface WantedRun {
  run: AgentRun;
  /** Whether an object of that name is the run that is wanted. */
  isSame: (found: AgentRun, wanted: AgentRun) => boolean;
}

async function createWithRetry(deps: StartRunDeps, wanted: WantedRun, signal: AbortSignal): Promise<StartedRun> {
  let delay = FIRST_RETRY_MS;
  let failure: unknown;
  let mayBeStored = false;
  while (!signal.aborted) {
    try {
      const create = (attempt: AbortSignal) => deps.api.create(AgentRuns, wanted.run, { signal: attempt });
      return startedRun(await withTimeout(deps.clock, ATTEMPT_MS, create, signal), false);
    } catch (error) {
      if (isAlreadyExists(error)) {
        const found = await readBack(deps, wanted, { cause: error, mayBeStored: true });
        // After an unclear attempt the run may be our own.
        return startedRun(found, failure === undefined || !isSameRun(found, wanted.run));
      }
      if (isRefusal(error)) {
        throw new StartRunError('refused', 'the Kubernetes API refused the run', { cause: error, mayBeStored });
      }
      failure = error;
      mayBeStored ||= !(error instanceof KubeApiError && error.status === 429);
    }
    await sleep(deps.clock, delay, signal);
    delay = Math.min(delay * 2, MAX_RETRY_MS);
  }
  const found = await readBack(deps, wanted, { cause: failure, mayBeStored });
  return startedRun(found, !isSameRun(found, wanted.run));
}

/** Whether the run is there after an unclear answer. An object of that name with other content is not ours. */
async function readBack(
  deps: StartRunDeps,
  { run, isSame }: WantedRun,
  failure: { cause: unknown; mayBeStored: boolean },
): Promise<AgentRun> {
  const found = await readName(deps, { namespace: run.metadata.namespace ?? '', name: run.metadata.name });
  if (found !== undefined && isSame(found, run)) return found;
  if (found !== undefined && isSame === isOfSameOrigin) {
    throw new RunNameTakenError({ cause: failure.cause });
  }
  throw new StartRunError('unconfirmed', 'the Kubernetes API did not accept the run in time', failure);
}

async function readName(
  { api, clock }: Pick<StartRunDeps, 'api' | 'clock'>,
  ref: { namespace: string; name: string },
): Promise<AgentRun | undefined> {
  return await withTimeout(clock, READ_BACK_MS, (signal) => api.get(AgentRuns, ref, { signal })).catch(() => undefined);
}

function isSameRun(found: AgentRun, wanted: AgentRun): boolean {
  return (
    found.spec.agentUid === wanted.spec.agentUid &&
    found.spec.actor === wanted.spec.actor &&
    found.spec.message === wanted.spec.message &&
    found.spec.input?.sha256 === wanted.spec.input?.sha256 &&
    acceptedAt(found) === acceptedAt(wanted)
  );
}

/** Two who start the same tick differ in time and actor; what they agree on is the schedule. Calls agree on the caller. */
function isOfSameOrigin(
  found: AgentRun,
  wanted: { spec: Pick<AgentRun['spec'], 'parent' | 'trigger' | 'retryOf'> },
): boolean {
  if (wanted.spec.retryOf !== undefined) return found.spec.retryOf?.uid === wanted.spec.retryOf.uid;
  if (wanted.spec.parent !== undefined) return found.spec.parent?.uid === wanted.spec.parent.uid;
  return found.spec.trigger?.uid !== undefined && found.spec.trigger.uid === wanted.spec.trigger?.uid;
}

/** Answers that another attempt would not change: every 4xx but 408 and 429. */
function isRefusal(error: unknown): boolean {
  return error instanceof KubeApiError && error.status < 500 && error.status !== 408 && error.status !== 429;
}

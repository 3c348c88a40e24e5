/**
 * Projections of AgentRuns: there may be 50,000 finished ones, so every process drops the texts that it does not show.
 */
import { API_VERSION } from '../api/define-resource.js';
import { ANNOTATION_STARTED_UID } from '../api/labels.js';
import { findCondition, isTrue } from '../api/conditions.js';
import { acceptedAt, boxOfNamespace, callersOf } from '../api/names.js';
import { isoTime } from '../api/time.js';
import { AgentRuns, MAX_INLINE_MESSAGE_BYTES } from '../api/v1alpha1/agent-run.js';
import type { AgentRun, RunFile, RunPending, RunPhase, RunUsage } from '../api/v1alpha1/agent-run.js';
import type { InformerOptions } from '../kube/types.js';
import { storedInputBytes } from '../run/message.js';
import { sessionIdOf, sessionKey, sessionKeyOf } from '../run/session/key.js';
import { sessionTitleOf } from '../run/session/title.js';
import { agentUidOf, isClaimed, isTerminal } from '../run/status.js';
import { messageCount } from '../transcript/said.js';
import { BY_AGENT, BY_NAMESPACE, agentValues, namespaceValues, agentKey } from './indexes.js';
import { identityOf, slimMeta } from './meta.js';
import type { Identity } from './meta.js';
import { isReleased } from '../run/usage/totals.js';

/** Runs that have not ended, by `<namespace>/<agent>`. */
export const LIVE_BY_AGENT = 'live-agent';
/** Runs that have not ended, by namespace. */
export const LIVE_BY_NAMESPACE = 'live-namespace';
/** Runs that have not ended, by the UID of the run whose agent called them. */
export const LIVE_BY_PARENT = 'live-parent';
/** Runs that ended with a question, by `<namespace>/<agent>`. */
export const ASKING_BY_AGENT = 'asking-agent';
/** Runs that wait in the queue, by the name of their Box. */
export const QUEUED_BY_BOX = 'queued-box';
/** Runs by `<namespace>/<sessionId>`. */
export const BY_SESSION = 'session';
/** Runs by UID of their trigger. */
export const BY_TRIGGER_UID = 'trigger-uid';
/** Runs by the UID of the run whose agent called them. */
export const BY_PARENT = 'parent';
/** Runs by the UID of each run above them. */
export const BY_CALLER = 'caller';
/** Runs by their UID. */
export const BY_UID = 'uid';

/** For the tools: what lists and sessions show without a request. */
export interface ApiRun extends Identity {
  namespace: string;
  box: string;
  agent: string;
  /** UID of the Agent that the run is for; undefined before the controller has seen a manifest's run. */
  agentUid: string | undefined;
  sessionId: string;
  /** What the session is called if this run opened it; undefined when its message is stored compressed only. */
  title: string | undefined;
  /** Acceptance, ISO 8601. */
  createdAt: string;
  origin: string;
  triggerName: string | undefined;
  /** Whose count it adds to; undefined also for a run that is in the sums and that only others hold. */
  triggerUid: string | undefined;
  phase: RunPhase;
  terminal: boolean;
  /** It is being deleted. */
  leaving: boolean;
  /** Why the run waits; undefined when it does not wait in the queue. */
  queuedReason: string | undefined;
  reason: string | undefined;
  message: string | undefined;
  provider: string | undefined;
  model: string | undefined;
  usage: RunUsage | undefined;
  finishedAt: string | undefined;
  /** Whether a pod took it. */
  claimed: boolean;
  /** What the run asked for at its end. */
  pending: RunPending | undefined;
  /** What it published; undefined when that is nothing. */
  files: readonly RunFile[] | undefined;
  /** Stored size of the message, for the backlog budget. */
  inputBytes: number;
  /** How many messages get_session shows of it; undefined while it works, and when only its transcript can tell. */
  messages: number | undefined;
}

export function projectApiRun(run: AgentRun): ApiRun {
  const namespace = run.metadata.namespace ?? '';
  const status = run.status;
  const queued = isTrue(status?.conditions, 'Queued') ? findCondition(status?.conditions, 'Queued') : undefined;
  return {
    ...identityOf(run.metadata),
    namespace,
    box: boxOfNamespace(namespace) ?? '',
    agent: run.spec.agent,
    agentUid: agentUidOf(run),
    sessionId: sessionIdOf(run),
    title: run.spec.sessionTitle ?? (run.spec.message === undefined ? undefined : sessionTitleOf(run.spec.message)),
    createdAt: isoTime(acceptedAt(run)),
    origin: run.spec.trigger?.origin ?? 'api',
    triggerName: run.spec.trigger?.name,
    triggerUid: isReleased(run) ? undefined : run.spec.trigger?.uid,
    phase: status?.phase ?? 'running',
    terminal: isTerminal(run),
    leaving: run.metadata.deletionTimestamp !== undefined,
    queuedReason: isTerminal(run) ? undefined : queued?.reason,
    reason: status?.reason,
    message: status?.message,
    provider: status?.provider,
    model: status?.model,
    usage: status?.usage,
    finishedAt: status?.finishedAt,
    claimed: isClaimed(run),
    pending: status?.pending,
    files: status?.files,
    inputBytes: storedInputBytes(run),
    messages: messageCount(run),
  };
}

/** The head of a run that is in the archive only: without its texts, which were counted when it was stored. */
export function projectArchivedRun(head: AgentRun): ApiRun {
  return { ...projectApiRun(head), messages: head.status?.transcript?.messages };
}

export const apiRunInformer: InformerOptions<AgentRun, ApiRun> = {
  type: AgentRuns,
  project: projectApiRun,
  indexes: {
    [BY_AGENT]: (run) => [agentKey(run.namespace, run.agent)],
    [LIVE_BY_AGENT]: (run) => (run.terminal ? [] : [agentKey(run.namespace, run.agent)]),
    [ASKING_BY_AGENT]: (run) => (run.pending === undefined ? [] : [agentKey(run.namespace, run.agent)]),
    [BY_SESSION]: (run) => [sessionKey(run.namespace, run.sessionId)],
    [BY_TRIGGER_UID]: (run) => (run.triggerUid === undefined ? [] : [run.triggerUid]),
    [QUEUED_BY_BOX]: (run) => (run.queuedReason === undefined ? [] : [run.box]),
  },
};

/** An AgentRun without its texts: they are never in the cache of the controller. */
export type ControllerRun = Omit<AgentRun, 'spec' | 'status'> & {
  spec: Omit<AgentRun['spec'], 'message' | 'input' | 'sessionTitle'>;
  status?: Omit<NonNullable<AgentRun['status']>, 'output' | 'pending'>;
  /** Stored size of `spec.input.data`; absent without data. */
  inputDataBytes?: number;
  /** Size of a `spec.message` that is longer than our own services write one; only manifests have such. */
  messageBytes?: number;
  /** Stored size of message and input of a run that has not ended. */
  liveInputBytes?: number;
  /** The run ended with a question or an approval that is still to be answered. */
  waitsForAnswer?: boolean;
};

export function projectControllerRun(run: AgentRun): ControllerRun {
  const { message = '', input, sessionTitle: _title, ...spec } = run.spec;
  const { finalizers } = run.metadata;
  const startedUid = run.metadata.annotations?.[ANNOTATION_STARTED_UID];
  const isCopy = startedUid !== undefined && startedUid !== run.metadata.uid;
  const metadata = {
    ...slimMeta(run.metadata),
    ...(finalizers === undefined ? {} : { finalizers }),
    // Of a copy alone, which is rare: a cache holds many runs.
    ...(isCopy ? { annotations: { [ANNOTATION_STARTED_UID]: startedUid } } : {}),
  };
  const projected: ControllerRun = { apiVersion: run.apiVersion, kind: run.kind, metadata, spec };
  if (input?.data !== undefined) projected.inputDataBytes = input.data.length;
  const messageBytes = Buffer.byteLength(message);
  if (messageBytes > MAX_INLINE_MESSAGE_BYTES) projected.messageBytes = messageBytes;
  if (!isTerminal(run)) projected.liveInputBytes = storedInputBytes(run);
  if (run.status === undefined) return projected;
  const { output: _output, pending, conditions, ...status } = run.status;
  if (pending !== undefined) projected.waitsForAnswer = true;
  // Conditions of an ended run are never written again by the controller.
  const live = conditions === undefined || isTerminal(run) ? {} : { conditions };
  return { ...projected, status: { ...status, ...live } };
}

const unlessEnded = (run: ControllerRun, values: readonly string[]): readonly string[] =>
  isTerminal(run) ? [] : values;

export const controllerRunInformer: InformerOptions<AgentRun, ControllerRun> = {
  type: AgentRuns,
  project: projectControllerRun,
  indexes: {
    [BY_NAMESPACE]: namespaceValues,
    [BY_AGENT]: agentValues,
    [LIVE_BY_AGENT]: (run) => unlessEnded(run, agentValues(run)),
    [LIVE_BY_NAMESPACE]: (run) => unlessEnded(run, namespaceValues(run)),
    [LIVE_BY_PARENT]: (run) => unlessEnded(run, parentValues(run)),
    [BY_CALLER]: (run) => callersOf(run).map(({ uid }) => uid),
    [BY_UID]: (run) => [run.metadata.uid ?? ''],
    [BY_SESSION]: (run) => [sessionKeyOf(run)],
    [BY_TRIGGER_UID]: (run) => (run.spec.trigger?.uid === undefined ? [] : [run.spec.trigger.uid]),
  },
};

/** An AgentRun as the gateway caches it, and the size of what it leaves out. */
export type GatewayRun = AgentRun & {
  /** Stored size of message and input of a run that has not ended: it counts in the backlog budget. */
  liveInputBytes?: number;
};

/** A run without its compressed input; of a finished one only what histories and late calls need. */
export function projectGatewayRun(run: AgentRun): GatewayRun {
  // Items of a list may come without kind; a status write needs it.
  const base = { apiVersion: API_VERSION, kind: AgentRuns.kind, metadata: slimMeta(run.metadata) };
  if (!isTerminal(run)) {
    const { input, ...spec } = run.spec;
    const slim =
      input === undefined ? undefined : { encoding: input.encoding, bytes: input.bytes, sha256: input.sha256 };
    return {
      ...base,
      liveInputBytes: storedInputBytes(run),
      spec: slim === undefined ? spec : { ...spec, input: slim },
      ...(run.status === undefined ? {} : { status: run.status }),
    };
  }
  const { agent, sessionId, parent } = run.spec;
  const { phase, reason, claim, transcript, usageFinal, pending, untrusted, approvals, ...status } = run.status ?? {
    phase: 'running' as const,
  };
  return {
    ...base,
    spec: {
      agent,
      ...(sessionId === undefined ? {} : { sessionId }),
      ...(parent === undefined ? {} : { parent }),
    },
    status: {
      phase,
      ...(reason === undefined ? {} : { reason }),
      ...(claim === undefined ? {} : { claim }),
      ...(transcript === undefined ? {} : { transcript }),
      ...(usageFinal === undefined ? {} : { usageFinal }),
      ...(pending === undefined ? {} : { pending }),
      ...(untrusted === undefined ? {} : { untrusted }),
      ...(approvals === undefined ? {} : { approvals }),
      ...('sessionId' in status ? { sessionId: status.sessionId } : {}),
    },
  };
}

export const gatewayRunInformer: InformerOptions<AgentRun, GatewayRun> = {
  type: AgentRuns,
  project: projectGatewayRun,
  indexes: { [BY_SESSION]: (run) => [sessionKeyOf(run)], [BY_PARENT]: parentValues },
};

function parentValues({ spec }: Pick<ControllerRun, 'spec'>): readonly string[] {
  return spec.parent === undefined ? [] : [spec.parent.uid];
}

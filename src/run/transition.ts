/**
 * The life of a run: what each thing that happens makes of its status, as one pure function. The first outcome wins: after it
 * usage may grow until it is closed, the transcript may advance or go, and nothing else changes. Conditions are the truth;
 * phase, reason and message are derived from them. Who may write which field: status-writer.ts.
 * See docs/architecture.md#run-states.
 */
import { findCondition, isTrue, setCondition, type ConditionInput } from '../api/conditions.js';
import { acceptedAt } from '../api/names.js';
import type {
  AgentRun,
  OpenCall,
  RunApprovals,
  RunBudget,
  RunFile,
  RunPending,
  RunUsage,
} from '../api/v1alpha1/agent-run.js';
import { MAX_STATUS_OUTPUT_BYTES } from '../api/v1alpha1/agent-run.js';
import type { Condition } from '../api/v1alpha1/common.js';
import { phaseOf, type FoundOutcome } from './outcome.js';
import type { QueueReason } from './reasons.js';
import { formatDuration, isClaimed, isTerminal, type RunStatus } from './status.js';
import { usageWithOpenCall } from './usage/open-call.js';
import { NO_USAGE } from './usage/usage.js';
import { cutUtf8 } from '../runtime/text.js';

type Claim = NonNullable<RunStatus['claim']>;
type Transcript = NonNullable<RunStatus['transcript']>;

/** What the gateway that owns a run knows of it, under the fencing token of its ownership. */
export interface Work {
  fencingToken: number;
  usage: RunUsage;
  /** A model call that is not answered yet. */
  openCall?: OpenCall | undefined;
  /** The model call waits to be tried again: why, and since when it is made, RFC 3339. */
  waiting?: { message: string; since: string } | undefined;
  /** What people should know of it; absent when that is nothing. */
  warnings?: readonly string[] | undefined;
  /** Absent when nothing was stored since the ownership began. */
  transcript?: Transcript | undefined;
}

/** What may happen to the status of a run. `now` is RFC 3339. */
export type StatusEvent =
  /** It waits: why. */
  | { type: 'queued'; reason: QueueReason; message: string; now: string }
  /** It waits no longer; its pod is starting. */
  | { type: 'admitted'; now: string }
  /** The agent of a run that was made by hand, and the session that it goes on with. */
  | { type: 'agent-found'; agentUid: string; sessionId?: string | undefined }
  /** A pod claims it, by way of a gateway that from now on owns it. */
  | { type: 'claimed'; claim: Claim; facts: ClaimFacts; now: string }
  /** Another gateway takes it over from one that is lost. */
  | { type: 'taken-over'; from: string; by: Pick<Claim, 'gatewayPod' | 'gatewayUid' | 'gatewayAddress'> }
  | { type: 'progressed'; work: Work }
  /** The run that called its agent waits for it from now on. */
  | { type: 'awaited' }
  /** A person approved one call, and it was made. */
  | { type: 'approval-used'; approvals: RunApprovals }
  /** It published files, or is about to: all of them. */
  | { type: 'published'; fencingToken: number; files: readonly RunFile[] }
  /** The gateway wants a larger grant, gives back what was not used; the controller answers. */
  | { type: 'budget-asked'; work: Work; wanted: RunBudget['granted'] }
  | { type: 'budget-returned'; work: Work; granted: RunBudget['granted'] }
  | { type: 'budget-granted'; budget: RunBudget }
  /** It works, and is to stop. */
  | { type: 'cancelling'; now: string }
  /** It ends. `work` of the gateway that owns it is the last word on usage; without it nobody knows yet. */
  | { type: 'finished'; by: 'gateway' | 'run controller'; outcome: FoundOutcome; end?: GatewayEnd; now: string }
  /** The last word on usage, after the end: of the gateway that owns it, or of nobody, when it is lost. */
  | { type: 'usage-closed'; work?: Work }
  /** What an ended run stored is gone from the cluster: its files, and its chunks if it had any. */
  | { type: 'stored-gone'; transcript?: Transcript | undefined }
  /** Another run takes it further. */
  | { type: 'retried'; by: string }
  /** It was deleted and stays, because the archive does not have it. */
  | { type: 'not-archived'; message: string; now: string };

/** What a claim settles for good. */
export type ClaimFacts = Pick<
  RunStatus,
  'provider' | 'model' | 'untrusted' | 'structured' | 'approvals' | 'budget' | 'warnings'
>;

/** What the gateway that owns a run adds to its outcome. */
export interface GatewayEnd {
  work: Work;
  /** What the session waits for now. */
  pending?: RunPending | undefined;
  /** Whether the runner said that no call of a tool was under way. */
  atRest?: boolean | undefined;
}

/** The status after the event; undefined when the event changes nothing, or comes too late. */
export function transition(run: AgentRun, event: StatusEvent): RunStatus | undefined {
  return isTerminal(run) ? afterItsEnd(run, event) : beforeItsEnd(run, event);
}

function beforeItsEnd(run: AgentRun, event: StatusEvent): RunStatus | undefined {
  switch (event.type) {
    case 'queued':
      return queued(run, event);
    case 'admitted':
      return isTrue(run.status?.conditions, 'Queued') ? withCondition(run, ADMITTED, event.now) : undefined;
    case 'agent-found':
      return found(run, event);
    case 'claimed':
      return claimed(run, event);
    case 'taken-over':
      return takenOver(run, event);
    case 'progressed':
      return withWork(run, event.work);
    case 'awaited':
      return run.status?.awaited === true ? undefined : { ...statusOf(run), awaited: true };
    case 'published':
      return published(run, event);
    case 'approval-used':
      return { ...statusOf(run), approvals: event.approvals };
    case 'budget-asked':
    case 'budget-returned':
      return withBudget(run, event);
    case 'budget-granted':
      return run.status?.budget === undefined ? undefined : { ...run.status, budget: event.budget };
    case 'cancelling':
      return isClaimed(run) ? withCondition(run, CANCELLING, event.now) : undefined;
    case 'finished':
      return finished(run, event);
    case 'usage-closed':
    case 'stored-gone':
    case 'retried':
    case 'not-archived':
      return undefined;
  }
}

/** The outcome stands: no event that comes before the end is heard. */
function afterItsEnd(run: AgentRun, event: StatusEvent): RunStatus | undefined {
  switch (event.type) {
    case 'usage-closed':
      return usageClosed(run, event.work);
    case 'stored-gone':
      return storedGone(run, event);
    case 'retried':
      return { ...statusOf(run), retriedBy: event.by };
    case 'not-archived': {
      const conditions = setCondition(run.status?.conditions, { ...NOT_ARCHIVED, message: event.message }, event.now);
      return { ...statusOf(run), conditions };
    }
    default:
      return undefined;
  }
}

const ADMITTED: ConditionInput = { type: 'Queued', status: 'False', reason: 'Admitted', message: '' };
const STARTED: ConditionInput = { type: 'Started', status: 'True', reason: 'Claimed', message: '' };
const WAITING = { type: 'Started', status: 'True', reason: 'WaitingForModel' } as const;
const CANCELLING: ConditionInput = { type: 'Cancelling', status: 'True', reason: 'CancelRequested', message: '' };
const NOT_ARCHIVED = { type: 'Archived', status: 'False', reason: 'ArchiveUnavailable' } as const;

/** A new run shows this phase before anything was written. */
function statusOf({ status }: AgentRun): RunStatus {
  return status ?? { phase: 'running' };
}

/** Undefined when the condition says so already. */
function withCondition(run: AgentRun, input: ConditionInput, now: string): RunStatus | undefined {
  const known = findCondition(run.status?.conditions, input.type);
  const isSame = known?.status === input.status && known.reason === input.reason && known.message === input.message;
  return isSame ? undefined : withConditions(run, setCondition(run.status?.conditions, input, now));
}

function withConditions(run: AgentRun, conditions: Condition[]): RunStatus {
  return { ...statusOf(run), conditions, ...derive(conditions) };
}

/** Derives phase, reason and message from the conditions. */
function derive(conditions: readonly Condition[]): Pick<RunStatus, 'phase' | 'reason' | 'message'> {
  const ended = findCondition(conditions, 'Finished');
  if (ended?.status === 'True') return { phase: phaseOf(ended.reason), reason: ended.reason, message: ended.message };
  const started = findCondition(conditions, 'Started');
  if (started?.status === 'True') {
    const reason = started.reason === WAITING.reason ? WAITING.reason : 'Working';
    return { phase: 'running', reason, message: started.message };
  }
  const waits = findCondition(conditions, 'Queued');
  if (waits?.status === 'True') return { phase: 'running', reason: waits.reason, message: waits.message };
  return { phase: 'running', reason: 'Starting', message: '' };
}

type EventOf<T extends StatusEvent['type']> = Extract<StatusEvent, { type: T }>;

/** What is known of the run by now stays. */
function found(run: AgentRun, { agentUid, sessionId }: EventOf<'agent-found'>): RunStatus | undefined {
  const known = statusOf(run);
  if (known.agentUid !== undefined && (sessionId === undefined || known.sessionId !== undefined)) return undefined;
  return { ...known, agentUid: known.agentUid ?? agentUid, ...(sessionId === undefined ? {} : { sessionId }) };
}

/** A run that a pod has claimed never waits again: something may have been executed. */
function queued(run: AgentRun, { reason, message, now }: EventOf<'queued'>): RunStatus | undefined {
  return isClaimed(run) ? undefined : withCondition(run, { type: 'Queued', status: 'True', reason, message }, now);
}

/** The first pod keeps it. */
function claimed(run: AgentRun, { claim, facts, now }: EventOf<'claimed'>): RunStatus | undefined {
  if (isClaimed(run)) return undefined;
  const { conditions } = run.status ?? {};
  const admitted = isTrue(conditions, 'Queued') ? setCondition(conditions, ADMITTED, now) : conditions;
  return { ...withConditions(run, setCondition(admitted, STARTED, now)), claim, ...facts };
}

/** When somebody else was faster, the ownership that stands now is judged anew by whoever asks next. */
function takenOver(run: AgentRun, { from, by }: EventOf<'taken-over'>): RunStatus | undefined {
  const { claim } = run.status ?? {};
  if (claim === undefined || claim.gatewayUid !== from) return undefined;
  return { ...statusOf(run), claim: { ...claim, ...by, epoch: claim.epoch + 1 } };
}

/** What an owner knows counts only as long as it is the owner. A call in flight stands in the status until it is counted. */
function withWork(run: AgentRun, work: Work): RunStatus | undefined {
  const { fencingToken, usage, openCall, waiting, warnings = [], transcript } = work;
  if (run.status?.claim?.epoch !== fencingToken) return undefined;
  const { openCall: _counted, ...rest } = withWaiting(run, waiting) ?? run.status;
  return {
    ...rest,
    usage,
    ...(openCall === undefined ? {} : { openCall }),
    ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
    ...(transcript === undefined ? {} : { transcript }),
  };
}

/** Whether it works or waits for its model; undefined when the status says so already. */
function withWaiting(run: AgentRun, waiting: Work['waiting']): RunStatus | undefined {
  const waited = findCondition(run.status?.conditions, 'Started')?.reason === WAITING.reason;
  if (waiting !== undefined) return withCondition(run, { ...WAITING, message: waiting.message }, waiting.since);
  return waited ? withCondition(run, STARTED, run.status?.claim?.at ?? '') : undefined;
}

/** Of its owner alone: a former one may still be storing a file. */
function published(run: AgentRun, { fencingToken, files }: EventOf<'published'>): RunStatus | undefined {
  if (run.status?.claim?.epoch !== fencingToken) return undefined;
  return { ...run.status, files: [...files], ...(files.length === 0 ? {} : { fileCount: files.length }) };
}

function storedGone(run: AgentRun, { transcript }: EventOf<'stored-gone'>): RunStatus {
  const { files: _files, fileCount: _count, ...status } = statusOf(run);
  return { ...status, ...(transcript === undefined ? {} : { transcript }) };
}

/** A return makes earlier grants void, and a wish waits for a new answer. */
function withBudget(run: AgentRun, event: EventOf<'budget-asked' | 'budget-returned'>): RunStatus | undefined {
  const budget = run.status?.budget;
  const worked = withWork(run, event.work);
  if (budget === undefined || worked === undefined) return undefined;
  if (event.type === 'budget-returned') {
    const { at, returned = 0 } = budget;
    return { ...worked, budget: { at, granted: event.granted, returned: returned + 1 } };
  }
  const { answered: _earlier, ...rest } = budget;
  return { ...worked, budget: { ...rest, wanted: event.wanted } };
}

function finished(run: AgentRun, { by, outcome, end, now }: EventOf<'finished'>): RunStatus | undefined {
  const { reason, message } = outcome;
  const conditions = setCondition(run.status?.conditions, { type: 'Finished', status: 'True', reason, message }, now);
  const duration = formatDuration(Date.parse(now) - Date.parse(acceptedAt(run)));
  const ended = { ...withConditions(run, conditions), finishedAt: now, duration, ...outputOf(outcome) };
  if (end !== undefined) {
    const closed = withLastWork({ ...run, status: ended }, end.work);
    if (closed === undefined) return undefined;
    return {
      ...closed,
      ...(end.pending === undefined ? {} : { pending: end.pending }),
      ...(end.atRest === true && closed.phase === 'error' ? { atRest: true } : {}),
    };
  }
  if (isClaimed(run)) return ended;
  // Nobody can have used anything without a claim; the gateway, which counts, says it in numbers.
  return { ...ended, ...(by === 'gateway' ? { usage: NO_USAGE } : {}), usageFinal: true };
}

/** Undefined when usage is closed already, or when `work` is of a former owner. */
function usageClosed(run: AgentRun, work: Work | undefined): RunStatus | undefined {
  if (run.status === undefined || run.status.usageFinal === true) return undefined;
  if (work !== undefined) return withLastWork(run, work);
  // A call that nobody counted is charged in full.
  const { openCall: _charged, ...status } = run.status;
  const usage = usageWithOpenCall(run.status);
  return { ...status, ...(usage === undefined ? {} : { usage }), usageFinal: true };
}

/** A transcript that is gone does not come back. */
function withLastWork(run: AgentRun, { openCall, transcript, ...work }: Work): RunStatus | undefined {
  const { state } = run.status?.transcript ?? {};
  const isGone = state === 'expired' || state === 'archived';
  const usage = usageWithOpenCall({ usage: work.usage, openCall });
  const worked = withWork(run, {
    ...work,
    ...(usage === undefined ? {} : { usage }),
    ...(isGone ? {} : { transcript }),
  });
  return worked === undefined ? undefined : { ...worked, usageFinal: true };
}

/** The last message of the agent; the transcript holds all of a long one. */
function outputOf({ output, outputTruncated }: FoundOutcome): Pick<RunStatus, 'output' | 'outputTruncated'> {
  if (output === undefined) return {};
  const kept = cutUtf8(output, MAX_STATUS_OUTPUT_BYTES);
  if (kept !== output) return { output: kept, outputTruncated: true };
  return { output, ...(outputTruncated === undefined ? {} : { outputTruncated }) };
}

/** Runs as the tools start, show and cancel them (spec 2, 4.2.7, 4.2.8). */
import { gunzipSync } from 'node:zlib';
import { ANNOTATION_REQUESTED_BY } from '../../api/labels.js';
import { parseMicroUsd } from '../../run/usage/money.js';
import { QUEUE_REASONS, RUN_REASONS } from '../../run/reasons.js';
import type { AgentRef } from '../../api/names.js';
import { AgentRuns, MAX_MESSAGE_BYTES } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { orUndefined } from '../../kube/errors.js';
import type { FeedAnswer } from '../../protocol/feed.js';
import { warningsIn, withWarnings } from '../../run/warnings.js';
import { parseJsonText } from '../../protocol/json-limits.js';
import type { RunEvent } from '../../protocol/run.js';
import type { Clock } from '../../runtime/clock.js';
import { readTranscript } from '../../transcript/chunk-store.js';
import {
  ARCHIVE_AWAY_NOTE,
  findArchived,
  isSessionArchived,
  readArchive,
  readArchivedTranscript,
  withArchived,
} from './archived-runs.js';
import { backlogError } from '../../run/start/backlog-budget.js';
import type { BacklogScope } from '../../run/start/backlog-budget.js';
import { memoizedLists } from '../memoized-lists.js';
import type { Caller } from '../keys/key-check.js';
import { findAgent, idOf } from '../scope.js';
import type { ScopeDeps } from '../scope.js';
import { ACKNOWLEDGE_MS } from '../../run/start/start-run.js';
import type { StartRunRequest, StartedRun } from '../../run/start/start-run.js';
import { withTimeout } from '../../runtime/with-timeout.js';
import { liveOf } from './live-feed.js';
import type { LiveFeeds } from './live-feed.js';
import { pendingOfRun } from './pending.js';
import type { PendingRecord } from './pending.js';
import { UserError } from '../../api/user-error.js';
import { waitForRun } from './wait-for-run.js';
import type { RunWaiter } from './wait-for-run.js';
import type { WriteBarrier } from '../write-barrier.js';
import { isoTime } from '../../api/time.js';
import { QUEUED_BY_BOX, projectApiRun } from '../../projections/agent-run.js';
import type { ApiRun } from '../../projections/agent-run.js';
import type { ApiAgent } from '../../projections/agent.js';
import { BY_AGENT } from '../../projections/indexes.js';
import { kubeCall, readsWithin, DNS_LABEL } from '../kube-call.js';
import { sessionRuns, byAcceptance, RUN_NOT_FOUND, isShown, findRun } from './find-run.js';
import { compare } from '../../runtime/compare.js';

/** How long cancel_run waits for the end of the run. */
export const CANCEL_WAIT_MS = 10_000;

/** What a tool needs to start a run. */
export interface StartDeps {
  clock: Clock;
  /** The scope whose backlog budget a further run of the agent would exceed. */
  backlogExceeded(agent: AgentRef): BacklogScope | undefined;
  /** {@link startRun} with its dependencies bound. */
  startRun(request: StartRunRequest, signal: AbortSignal): Promise<StartedRun>;
}

export interface RunDeps extends ScopeDeps, StartDeps {
  barrier: WriteBarrier;
  waiter: RunWaiter;
  feeds: LiveFeeds;
}

/** The Run record of spec 2, without output. */
export interface RunRecord {
  runId: string;
  status: string;
  sessionId: string;
  provider: string | null;
  model: string | null;
  trigger: string;
  steps: number;
  inputTokens: number;
  outputTokens: number;
  totalTokens: number;
  costUsd: number | null;
  startedAt: string;
  finishedAt: string | null;
  error: string | null;
}

function record(agent: ApiAgent, run: ApiRun): RunRecord {
  const { usage } = run;
  return {
    runId: run.name,
    status: run.phase,
    sessionId: run.sessionId,
    // Before the claim the run has none of its own: it will be that of the agent.
    provider: run.provider ?? agent.provider,
    model: run.model ?? agent.model ?? null,
    trigger: run.triggerName === undefined ? run.origin : `${run.origin}:${run.triggerName}`,
    steps: usage?.steps ?? 0,
    inputTokens: usage?.inputTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    totalTokens: usage?.totalTokens ?? 0,
    costUsd: run.terminal ? costOf(usage?.costUsd) : null,
    startedAt: run.createdAt,
    finishedAt: run.finishedAt === undefined ? null : isoTime(run.finishedAt),
    error: run.phase === 'error' ? errorOf(run) : null,
  };
}

/** US dollars; null when the price is not known, never 0 for "unknown". */
function costOf(text: string | undefined): number | null {
  const micro = parseMicroUsd(text);
  return micro === undefined ? null : micro / 1_000_000;
}

/** Reason and what happened, so that docs/reasons.md can be looked up. */
function errorOf(run: ApiRun): string {
  const reason = run.reason ?? 'Unknown';
  const text = run.message || causeOf(reason);
  return text === '' ? reason : `${reason}: ${text}`;
}

function causeOf(reason: string): string {
  const known: Record<string, { cause: string }> = { ...RUN_REASONS, ...QUEUE_REASONS };
  return known[reason]?.cause ?? '';
}

/** The result of list_runs, newest first. No request to the cluster; one to the archive if there is one. */
export async function listRuns(deps: ScopeDeps, caller: Caller, id: string, limit: number) {
  const agent = await findAgent(deps, caller, id);
  const key = `${agent.namespace}/${agent.name}`;
  const live = () => deps.caches.AgentRun.byIndex(BY_AGENT, key).filter((run) => isShown(deps, agent, run));
  const latest = (runs: ApiRun[]) =>
    runs
      .sort((a, b) => byAcceptance(b, a))
      .slice(0, limit)
      .map((run) => record(agent, run));
  if (deps.archive === undefined) {
    const make = () => latest(live());
    // Only what the cache alone gives is memoized: not for an agent that was read live or has changed since it was read.
    const isCached = deps.caches.Agent.get(key) === agent;
    return { runs: isCached ? runLists(deps.caches, `${agent.uid} ${limit}`, make) : make() };
  }
  const { runs, incomplete } = await withArchived(deps, agent, live(), (archive, scope, signal) =>
    archive.list(scope, limit, signal),
  );
  return { runs: latest(runs), ...(incomplete ? { note: ARCHIVE_AWAY_NOTE } : {}) };
}

const runLists = memoizedLists<RunRecord>(['Agent', 'AgentRun']);

export interface GetRunOptions {
  runId: string;
  includeToolCalls: boolean;
  waitMs: number;
  /** The client is gone. */
  gone: AbortSignal;
}

/**
 * The result of get_run. One GET, the chunks of the transcript for tool calls or an output above 8 KiB, and one question to the
 * gateway pod of a run that works.
 */
export async function getRun(deps: RunDeps, caller: Caller, id: string, options: GetRunOptions) {
  const agent = await findAgent(deps, caller, id);
  if (options.waitMs > 0) {
    const run = await findRun(deps, agent, options.runId);
    const wait = { namespace: agent.namespace, name: options.runId, ms: options.waitMs, signal: options.gone };
    if (run?.terminal === false) await waitForRun(deps.waiter, wait);
  }
  const run = await readRun(deps, agent, options.runId);
  const projected = projectApiRun(run);
  const live = await liveOf(deps.feeds, run);
  const details = await readDetails(deps, { agent, run, live, includeToolCalls: options.includeToolCalls });
  return {
    ...record(agent, projected),
    ...live?.usage,
    output: details.output,
    ...parsedOutput(run, details.output),
    pending: await pendingOf(deps, agent, projected),
    input: inputOf(run),
    // Of the input tokens: what the provider read from its prompt cache, and what it put there.
    cacheReadTokens: run.status?.usage?.cacheReadTokens ?? 0,
    cacheWriteTokens: run.status?.usage?.cacheWriteTokens ?? 0,
    transcript: details.transcript,
    files: deps.fileLinks.of({ box: agent.box, run: run.metadata.name }, run.status?.files),
    reason: projected.reason ?? null,
    ...(run.spec.retryOf === undefined ? {} : { retryOf: run.spec.retryOf.name }),
    ...(run.status?.retriedBy === undefined ? {} : { retriedBy: run.status.retriedBy }),
    warnings: withWarnings(run.status?.warnings ?? [], warningsIn(live?.events ?? [])),
    ...(options.includeToolCalls ? { toolCalls: details.toolCalls } : {}),
    ...queueNote(deps, projected),
  };
}

/** A question goes with its run, unless the archive keeps both; there a later run may have answered it. */
async function pendingOf(deps: RunDeps, agent: ApiAgent, run: ApiRun): Promise<PendingRecord | null> {
  if (run.pending === undefined || (run.deleting && deps.archive === undefined)) return null;
  const pending = pendingOfRun(deps.caches, run);
  if (pending === null || deps.caches.AgentRun.get(`${run.namespace}/${run.name}`)?.uid === run.uid) return pending;
  const query = { sessionIds: [run.sessionId], exceptUids: [] };
  const { found } = await readArchive(deps, agent, (archive, scope, signal) => archive.partsOf(scope, query, signal));
  const [session] = found;
  return session?.last === undefined || session.last.metadata.uid === run.uid ? pending : null;
}

/** From the cluster, else from the archive. */
async function readRun(deps: ScopeDeps, agent: ApiAgent, runId: string): Promise<AgentRun> {
  if (!DNS_LABEL.test(runId)) throw new UserError(RUN_NOT_FOUND);
  const ref = { namespace: agent.namespace, name: runId };
  const live = await kubeCall(deps, (signal) => orUndefined(deps.api.get(AgentRuns, ref, { signal })));
  if (live !== undefined && isShown(deps, agent, projectApiRun(live))) return await withStoredInput(deps, agent, live);
  const archived = await findArchived(deps, agent, { name: runId });
  if (archived === undefined) throw new UserError(RUN_NOT_FOUND);
  return archived;
}

/** Retention may have moved input and transcript to the archive while the run itself is still in the cluster. */
async function withStoredInput(deps: ScopeDeps, agent: ApiAgent, run: AgentRun): Promise<AgentRun> {
  if (run.status?.transcript?.state !== 'archived' || inputOf(run) !== null) return run;
  const stored = await findArchived(deps, agent, { uid: run.metadata.uid ?? '' });
  return stored === undefined ? run : { ...run, spec: stored.spec };
}

/**
 * What happened in a run, in order: what is stored, and what its gateway pod knows beyond. One GET, the chunks of the transcript
 * and one question to the gateway pod of a run that works.
 */
export async function getRunEvents(deps: RunDeps, caller: Caller, id: string, runId: string) {
  const agent = await findAgent(deps, caller, id);
  const run = await readRun(deps, agent, runId);
  const live = await liveOf(deps.feeds, run);
  const transcript =
    run.status?.transcript?.state === 'archived'
      ? await readArchivedTranscript(deps, agent, run)
      : await kubeCall(deps, (signal) => readTranscript(readsWithin(deps, signal), run));
  const last = transcript.events.at(-1)?.seq ?? 0;
  return {
    events: [...transcript.events, ...(live?.events ?? []).filter(({ seq }) => seq > last)],
    transcript: live?.incomplete === true ? ('truncated' as const) : transcript.state,
  };
}

type ToolEvent = Extract<RunEvent, { type: 'tool' }>;

interface DetailsOf {
  agent: ApiAgent;
  run: AgentRun;
  /** What it does now, read before. */
  live?: FeedAnswer | undefined;
  includeToolCalls: boolean;
}

async function readDetails(deps: ScopeDeps, { agent, run, live, includeToolCalls }: DetailsOf) {
  const stored = run.status?.output ?? null;
  const state = run.status?.transcript?.state ?? 'full';
  if (!includeToolCalls && run.status?.outputTruncated !== true) {
    return { output: stored, transcript: state, toolCalls: [] };
  }
  const transcript =
    state === 'archived'
      ? await readArchivedTranscript(deps, agent, run)
      : await kubeCall(deps, (signal) => readTranscript(readsWithin(deps, signal), run));
  const full = transcript.events.findLast((event) => event.type === 'output');
  const last = transcript.events.at(-1)?.seq ?? 0;
  const events = [...transcript.events, ...(live?.events ?? []).filter(({ seq }) => seq > last)];
  return {
    output: run.status?.outputTruncated === true ? (full?.text ?? stored) : stored,
    transcript: live?.incomplete === true ? ('truncated' as const) : transcript.state,
    toolCalls: events.filter((event): event is ToolEvent => event.type === 'tool').map(toolCall),
  };
}

/** The output of an agent with an outputSchema; nothing when the run did not come so far. */
function parsedOutput({ status }: AgentRun, output: string | null): { outputJson?: unknown } {
  if (status?.structured !== true || status.reason !== 'Completed' || status.pending !== undefined) return {};
  try {
    return output === null ? {} : { outputJson: parseJsonText(output) };
  } catch {
    // Cut, because its transcript is gone.
    return {};
  }
}

function toolCall({ step, tool, input, result, isError, durationMs, subtask }: ToolEvent) {
  return { step, tool, input, result, isError, durationMs, ...(subtask === undefined ? {} : { subtask }) };
}

/** What the agent received; null after retention has removed it, or when it is damaged. */
export function inputOf(run: AgentRun): string | null {
  if (run.spec.message !== undefined) return run.spec.message;
  const data = run.spec.input?.data;
  if (data === undefined) return null;
  try {
    return gunzipSync(Buffer.from(data, 'base64'), { maxOutputLength: MAX_MESSAGE_BYTES }).toString();
  } catch {
    return null;
  }
}

/** `note` of a run that waits; the position is computed on read and never stored. */
function queueNote({ caches }: Pick<ScopeDeps, 'caches'>, run: ApiRun): { note?: string } {
  if (run.queuedReason === undefined) return {};
  const ahead = caches.AgentRun.byIndex(QUEUED_BY_BOX, run.box).filter(
    (other) => (compare(other.createdAt, run.createdAt) || compare(other.name, run.name)) < 0,
  );
  return { note: `queued: ${run.queuedReason}, ${ahead.length} ahead` };
}

export interface Message {
  message: string;
  sessionId?: string | undefined;
  /** For the run of the session that works, if there is one. */
  steer: boolean;
  waitMs: number;
  /** The client is gone: the run goes on. */
  gone: AbortSignal;
}

/** The result of send_message: one write, and one GET when the wait is over. */
export async function sendMessage(deps: RunDeps, caller: Caller, id: string, input: Message) {
  const bytes = Buffer.byteLength(input.message);
  if (bytes > MAX_MESSAGE_BYTES) {
    throw new UserError(`argument "message" has ${bytes} bytes; at most ${MAX_MESSAGE_BYTES} (128 KiB) are possible`);
  }
  if (input.steer && input.sessionId === undefined) {
    throw new UserError('argument "steer" needs "sessionId": the conversation whose run is at work');
  }
  const agent = await findAgent(deps, caller, id);
  if (input.sessionId !== undefined) await expectSession(deps, agent, input.sessionId);
  refuseInactive(agent);
  const started = await acceptMessage(deps, caller, agent, input);
  await Promise.all([
    deps.barrier.passed({ kind: AgentRuns.kind, resourceVersion: started.resourceVersion }),
    waitForRun(deps.waiter, {
      namespace: agent.namespace,
      name: started.runId,
      ms: input.waitMs,
      signal: input.gone,
    }),
  ]);
  const run = await readRun(deps, agent, started.runId);
  const projected = projectApiRun(run);
  const { output } = await readDetails(deps, { agent, run, includeToolCalls: false });
  return {
    ...record(agent, projected),
    output,
    ...parsedOutput(run, output),
    pending: pendingOfRun(deps.caches, projected),
    ...deliveryOf(agent, projected, input.steer),
  };
}

/** What became of the message, where that is not the output of its own run. */
function deliveryOf(agent: ApiAgent, run: ApiRun, steer: boolean): { delivery?: string; note?: string } {
  if (run.reason === 'Delivered') return { delivery: 'delivered', note: run.message ?? '' };
  return {
    ...(steer ? { delivery: 'queued' } : {}),
    ...(run.terminal ? {} : { note: stillWorking(agent, run) }),
  };
}

function stillWorking(agent: ApiAgent, run: ApiRun): string {
  return `Still working. Read it with get_run (agentId ${idOf(agent)}, runId ${run.name}); do not send the message again.`;
}

/** An agent without a slot does not run (spec 3): a call that would only wait is refused. */
export function refuseInactive(agent: ApiAgent): void {
  if (agent.active !== false) return;
  const reason = agent.inactiveReason ?? 'the plan has no free agent slot';
  throw new UserError(`plan limit reached: the agent is inactive: ${reason}`);
}

function acceptMessage(deps: RunDeps, caller: Caller, agent: ApiAgent, input: Message): Promise<StartedRun> {
  return acceptRun(deps, {
    agent: { box: agent.box, agent: agent.name },
    agentUid: agent.uid,
    message: input.message,
    trigger: { origin: caller.origin ?? 'api' },
    ...(input.sessionId === undefined ? { sessionTitle: input.message } : { sessionId: input.sessionId }),
    ...(input.steer ? { steer: true } : {}),
    actor: caller.keyPrefix,
  });
}

/** Starts a run for a tool; the API server gets 15 seconds (spec 8). Beyond the backlog budget it throws a {@link UserError}. */
export function acceptRun(deps: StartDeps, request: StartRunRequest): Promise<StartedRun> {
  const scope = deps.backlogExceeded(request.agent);
  if (scope !== undefined) throw backlogError(scope);
  return withTimeout(deps.clock, ACKNOWLEDGE_MS, (signal) => deps.startRun(request, signal));
}

const SESSION_NOT_FOUND =
  'session not found: this agent has no session with this sessionId; omit sessionId to start a new conversation';

/** A session is known by its runs, in the cluster or in the archive; the gateway reads the conversation from both. */
async function expectSession(deps: ScopeDeps, agent: ApiAgent, sessionId: string): Promise<void> {
  const shown = await sessionRuns(deps, agent, sessionId);
  if (shown.length > 0 || (await isSessionArchived(deps, agent, sessionId))) return;
  throw new UserError(SESSION_NOT_FOUND);
}

/** The result of cancel_run; one write, none for a run that has ended. */
export async function cancelRun(
  deps: RunDeps,
  caller: Caller,
  id: string,
  options: { runId: string; gone: AbortSignal },
) {
  const agent = await findAgent(deps, caller, id);
  const run = (await findRun(deps, agent, options.runId)) ?? projectApiRun(await readRun(deps, agent, options.runId));
  if (run.terminal) return { runId: run.name, status: run.phase, note: null };
  const ref = { namespace: run.namespace, name: run.name };
  const body = {
    metadata: { uid: run.uid, annotations: { [ANNOTATION_REQUESTED_BY]: caller.keyPrefix } },
    spec: { cancelRequested: true },
  };
  const patched = await kubeCall(deps, (signal) =>
    orUndefined(deps.api.patch(AgentRuns, ref, body, { type: 'merge', signal })),
  );
  if (patched === undefined) throw new UserError(RUN_NOT_FOUND);
  const [ended] = await Promise.all([
    waitForRun(deps.waiter, { ...ref, ms: CANCEL_WAIT_MS, signal: options.gone }),
    deps.barrier.passed({ kind: AgentRuns.kind, resourceVersion: patched.metadata.resourceVersion ?? '' }),
  ]);
  const status = ended?.phase ?? projectApiRun(patched).phase;
  return { runId: run.name, status, note: status === 'running' ? CANCEL_NOTE : null };
}

const CANCEL_NOTE = 'Cancellation is requested and happens in the background; read the run with get_run.';

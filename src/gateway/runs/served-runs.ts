/**
 * The runs that this pod owns, with what is not in their status yet: transcript positions, usage, clocks. All
 * of it can be rebuilt from the API server, so that a restart or a take-over loses at most the usage of 5 s.
 */
import type { Work } from '../../run/transition.js';
import { objectKey } from '../../api/meta.js';
import type { AgentRun, RunUsage } from '../../api/v1alpha1/agent-run.js';
import type { ObjectRef } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import { TranscriptLog, type TranscriptApi } from '../../transcript/log.js';
import { ownerOf } from '../../transcript/chunk-store.js';
import { NO_USAGE, type CallUsage } from '../../run/usage/usage.js';
import type { RunModel } from '../models/run-model.js';
import { LiveBudget, LiveEvents } from './live-events.js';
import { openCallOf, usageWithOpenCall } from '../../run/usage/open-call.js';

/** An answer of a model while it comes; another try has another one. */
export interface Said {
  /** What it said until now to whoever reads it. */
  readonly said: string;
}

/** A model call that is not answered yet. */
export interface CallInFlight {
  /** Cuts it; what it may have used is charged at once. */
  abort(): void;
  /** What it has used by now, as far as anybody can know; undefined before it left, and while it waits. */
  readonly open: CallUsage | undefined;
  /** Set while it waits to be tried again. */
  readonly waiting?: Waiting | undefined;
  readonly answer?: Said | undefined;
}

/** Why a model call is not at work. */
export interface Waiting {
  message: string;
  /** When the call began, RFC 3339. */
  since: string;
}

export interface ServedRun {
  readonly ref: Required<ObjectRef>;
  readonly uid: string;
  readonly podUid: string;
  /** Of the ownership under which this pod serves the run: `claim.epoch`. */
  readonly fencingToken: number;
  usage: RunUsage;
  /** What people should know of it. */
  warnings: readonly string[];
  /** Absent until something must be stored after a restart or a take-over. */
  log?: TranscriptLog;
  /** What the run told beyond what is stored. */
  readonly live: LiveEvents;
  /** On the monotonic clock: the last call of the run, and the last status write. */
  heardAt: number;
  writtenAt: number;
  /** What the status holds. */
  savedUsage: RunUsage;
  savedChunks: number;
  /** Tokens of the open call. */
  savedOpen: number | undefined;
  savedWaiting: string | undefined;
  /** The model call in flight; at most one. */
  call?: CallInFlight;
  /** What its model calls have shown, by provider and model; absent before the first one here. */
  models?: Map<string, RunModel>;
  /** A part of what was granted is on its way back, or may be: what is left is not known. */
  returning?: true;
}

export interface ServedRunsOptions {
  api: TranscriptApi;
  clock: Clock;
}

export class ServedRuns {
  readonly #options: ServedRunsOptions;
  readonly #runs = new Map<string, ServedRun>();
  readonly #liveBudget = new LiveBudget();

  constructor(options: ServedRunsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#runs.size;
  }

  /** All of them, as they are now. */
  list(): ServedRun[] {
    return [...this.#runs.values()];
  }

  get(ref: ObjectRef): ServedRun | undefined {
    return this.#runs.get(objectKey(ref));
  }

  /** Serves a run that this pod owns from now on; its heartbeat clock starts anew. A known one stays as it is. */
  take(run: AgentRun): ServedRun {
    const { claim } = run.status ?? {};
    const owner = ownerOf(run);
    if (claim === undefined) throw new Error(`run ${run.metadata.name} is not claimed`);
    const known = this.#runs.get(objectKey(owner));
    if (known !== undefined && known.uid === owner.uid && known.fencingToken >= claim.epoch) return known;
    if (known !== undefined) this.drop(known);
    const now = this.#options.clock.monotonic();
    const savedUsage = run.status?.usage ?? NO_USAGE;
    // Whoever served before was lost in the middle of a call: nobody will know what it used.
    const usage = usageWithOpenCall(run.status ?? {}) ?? NO_USAGE;
    const served: ServedRun = {
      ref: { namespace: owner.namespace, name: owner.name },
      uid: owner.uid,
      podUid: claim.podUid,
      fencingToken: claim.epoch,
      usage,
      live: new LiveEvents(this.#liveBudget),
      warnings: run.status?.warnings ?? [],
      heardAt: now,
      writtenAt: now,
      savedUsage,
      savedChunks: run.status?.transcript?.chunks ?? 0,
      savedOpen: tokensOf(run.status?.openCall),
      savedWaiting: undefined,
    };
    this.#runs.set(objectKey(owner), served);
    return served;
  }

  /** Stops serving: a call in flight is cut. */
  drop(served: ServedRun): void {
    served.call?.abort();
    served.live.clear();
    const key = objectKey(served.ref);
    if (this.#runs.get(key) === served) this.#runs.delete(key);
  }

  /** A run that was claimed just now has no chunk: nothing is read. */
  startLog(served: ServedRun): void {
    served.log ??= new TranscriptLog(this.#options.api, { ...served.ref, uid: served.uid });
  }

  /** The transcript so far; read from its chunks when another process wrote them. */
  async logOf(served: ServedRun, run: AgentRun | undefined): Promise<TranscriptLog> {
    const { state, onlyResultsCut } = run?.status?.transcript ?? {};
    const truncated = state === 'truncated' && onlyResultsCut !== true;
    served.log ??= await TranscriptLog.load(this.#options.api, { ...served.ref, uid: served.uid }, truncated);
    return served.log;
  }
}

/** Undefined for a call that is not open. */
export function tokensOf(open: Pick<CallUsage, 'inputTokens' | 'outputTokens'> | undefined): number | undefined {
  return open === undefined ? undefined : open.inputTokens + open.outputTokens;
}

/** What this pod knows of a run that it owns, and its status may not say yet. */
export function workOf({ fencingToken, usage, call, warnings, log }: ServedRun): Work {
  const open = call?.open;
  return {
    fencingToken,
    usage,
    openCall: open === undefined ? undefined : openCallOf(open),
    waiting: call?.waiting,
    warnings,
    transcript: log?.summary,
  };
}

/** Fields that name a run in a log line. */
export function logFields(served: Pick<ServedRun, 'ref'>): { namespace: string; run: string } {
  return { namespace: served.ref.namespace, run: served.ref.name };
}

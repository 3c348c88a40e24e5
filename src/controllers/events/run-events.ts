/** The events of a run: it waits for long, goes back to the queue, has warnings, ends in an error or is cancelled. A good run has none. */
import { findCondition } from '../../api/conditions.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import { isTerminal } from '../../run/status.js';
import { redact } from '../../observability/logger.js';
import type { ObjectEvent } from '../../runtime/event-recorder.js';
import { OLD_NEWS_MS, subjectOf } from './subject.js';

/** What events need of a run. */
export type RunFacts = Pick<ControllerRun, 'metadata' | 'status'>;

/** Reason of the events that tell `status.warnings`; no run ends or waits for it. */
const RUN_WARNING = 'RunWarning';

/** A run that waits for its turn for less than this is no news. */
export const LONG_WAIT_MS = 30_000;

export interface RunChange {
  /** Absent for a run that is seen for the first time. */
  previous?: RunFacts | undefined;
  current: RunFacts;
}

/** How a run ended, unless well. A run that is being deleted tells nothing: nobody can look at it any more. */
export function endEvents({ previous, current }: RunChange, now: number): ObjectEvent[] {
  const { metadata, status } = current;
  if (!isTerminal(current) || status?.phase === 'done' || metadata.deletionTimestamp !== undefined) return [];
  if (previous !== undefined && isTerminal(previous)) return [];
  const at = status?.finishedAt ?? new Date(now).toISOString();
  if (previous === undefined && now - Date.parse(at) > OLD_NEWS_MS) return [];
  const type = status?.phase === 'error' ? 'Warning' : 'Normal';
  const reason = status?.reason ?? 'Ended';
  return [{ ...common(current, status?.message ?? ''), type, reason, action: 'Ended', at }];
}

/** What came to the warnings of a run since it was seen last, in one event. */
export function warningEvents({ previous, current }: RunChange, now: number): ObjectEvent[] {
  const { metadata, status } = current;
  const known = previous?.status?.warnings ?? [];
  const fresh = (status?.warnings ?? []).filter((text) => !known.includes(text));
  if (fresh.length === 0 || metadata.deletionTimestamp !== undefined) return [];
  // The same whoever leads then, so that it is one event.
  const at = status?.finishedAt ?? status?.claim?.at ?? new Date(now).toISOString();
  if (previous === undefined && now - Date.parse(at) > OLD_NEWS_MS) return [];
  return [{ ...common(current, fresh.join('\n')), type: 'Warning', reason: RUN_WARNING, action: 'Warned', at }];
}

/** A run lost its Job before anything was executed, and waits again. */
export function returnedEvent(run: RunFacts, why: { reason: string; message: string }, now: number): ObjectEvent {
  const at = new Date(now).toISOString();
  return { ...common(run, why.message), type: 'Warning', reason: why.reason, action: 'ReturnedToQueue', at };
}

export interface Waiting {
  /** Why, as the status says now. */
  reason: string;
  /** For how long, whatever it waited for meanwhile. */
  forMs: number;
  /** What to tell when that is {@link LONG_WAIT_MS}. */
  event: ObjectEvent;
}

/** How a run waits; undefined when it does not. */
export function waitingOf(run: RunFacts, now: number): Waiting | undefined {
  const queued = findCondition(run.status?.conditions, 'Queued');
  if (queued?.status !== 'True' || isTerminal(run) || run.metadata.deletionTimestamp !== undefined) return undefined;
  const { reason, message, lastTransitionTime } = queued;
  const forMs = now - Date.parse(lastTransitionTime);
  // The time at which it was due is the same for whoever leads then; one that is told much later is about another reason.
  const at = new Date(isOldWait({ forMs }) ? now : now - forMs + LONG_WAIT_MS).toISOString();
  return { reason, forMs, event: { ...common(run, message), type: 'Normal', reason, action: 'Queued', at } };
}

/** Whether it was told before, when the run is seen for the first time. */
export function isOldWait({ forMs }: Pick<Waiting, 'forMs'>): boolean {
  return forMs > LONG_WAIT_MS + OLD_NEWS_MS;
}

function common(run: RunFacts, message: string): Pick<ObjectEvent, 'subject' | 'note'> {
  return { subject: subjectOf('AgentRun', run.metadata), note: redact(message) };
}

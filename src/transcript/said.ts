/** What was said in a run, as conversations show it (get_session), and how many messages that is. */
import { isTerminal } from '../run/status.js';
import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import type { RunEvent } from '../protocol/run.js';

/** A text of the agent; undefined for any other event, and for a message that only calls tools. */
export function agentText(event: RunEvent): { text: string; at: string } | undefined {
  if (event.type !== 'message' || event.message.role !== 'assistant' || event.message.text === '') return undefined;
  return { text: event.message.text, at: event.at };
}

/** How many texts of the agent are among the events. */
export function agentTexts(events: readonly RunEvent[]): number {
  return events.reduce((sum, event) => sum + (agentText(event) === undefined ? 0 : 1), 0);
}

/**
 * How many messages get_session shows of a finished run, without reading its transcript: the input, and every text of the
 * agent, or else its output. Undefined while the run works, and for a transcript that was not counted when it was written.
 * The run must carry its texts, as the API server has it: for the head of an archived run see src/archive/rows.ts.
 */
export function messageCount(run: AgentRun): number | undefined {
  if (!isTerminal(run)) return undefined;
  const { output = '', transcript } = run.status ?? {};
  const ofOutput = output === '' ? 0 : 1;
  if (transcript === undefined || isEmpty(transcript)) return (hasInput(run) ? 1 : 0) + ofOutput;
  const { messages } = transcript;
  return messages === 1 ? messages + ofOutput : messages;
}

/** Whether the run still has what it was told; retention removes long inputs. */
export function hasInput({ spec }: Pick<AgentRun, 'spec'>): boolean {
  return spec.message !== undefined || spec.input?.data !== undefined;
}

function isEmpty({ state, chunks }: NonNullable<NonNullable<AgentRun['status']>['transcript']>): boolean {
  return state === 'expired' || (state !== 'archived' && chunks === 0);
}

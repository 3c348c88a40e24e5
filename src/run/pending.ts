/** The pending record as it is stored: only of a run that completed, and within the bounds of the status. Pure. */
import {
  MAX_PENDING_CHOICES,
  MAX_PENDING_CHOICE_BYTES,
  MAX_PENDING_INPUT_BYTES,
  MAX_PENDING_TEXT_BYTES,
  type RunPending,
} from '../api/v1alpha1/agent-run.js';
import type { FinishRequest } from '../protocol/run.js';
import { cutUtf8 } from '../runtime/text.js';

const MAX_NAME_BYTES = 128;

/** Nothing for a record that could not be answered: without a call, or with arguments that cannot be kept whole. */
export function pendingRecordOf({ reason, pending }: FinishRequest['outcome']): RunPending | undefined {
  if (reason !== 'Completed' || pending === undefined || pending.callId === '') return undefined;
  const { kind, text, choices, callId, tool, input } = pending;
  if (callId.length > 256) return undefined;
  const question = {
    kind,
    text: cutUtf8(text, MAX_PENDING_TEXT_BYTES),
    ...(choices === undefined || choices.length === 0
      ? {}
      : { choices: choices.slice(0, MAX_PENDING_CHOICES).map((choice) => cutUtf8(choice, MAX_PENDING_CHOICE_BYTES)) }),
    callId,
  };
  if (kind === 'question') return question;
  if (tool === undefined || input === undefined) return undefined;
  if (tool.length > MAX_NAME_BYTES || Buffer.byteLength(input) > MAX_PENDING_INPUT_BYTES) return undefined;
  return { ...question, tool, input };
}

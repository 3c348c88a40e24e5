/** What stands in a conversation where the result of a tool was: the runner and the gateway cut the same way. Pure. */
import type { TranscriptMessage } from '../../protocol/run.js';

type ToolMessage = Extract<TranscriptMessage, { role: 'tool' }>;

/** A result that is no larger says as much as the mark would. */
const WORTH_CUTTING_BYTES = 512;
const DENIED = '{"error":"denied by the user';

const NOTE = 'This old result was cut to keep the conversation short. Call the tool again if you need it.';

/** The mark, for a result of so many bytes of JSON. */
export function clearedMark(bytes: number): { truncated: true; bytes: number; note: string } {
  return { truncated: true, bytes, note: NOTE };
}

/** Whether a result may be cut. What the person said (an answer, why a call was denied) never is. */
export function isClearable(message: TranscriptMessage): message is ToolMessage {
  return message.role === 'tool' && isClearableResult(message.tool, message.result);
}

/** Whether a value is the mark. */
export function isClearedMark(value: unknown): boolean {
  return typeof value === 'object' && value !== null && (value as { note?: unknown }).note === NOTE;
}

/** Whether the mark stands there already. */
export function isCleared(message: TranscriptMessage): boolean {
  return message.role === 'tool' && isClearedJson(message.result);
}

/** As {@link isCleared}, of the JSON of a result. */
export function isClearedJson(json: string): boolean {
  return json.startsWith('{"truncated":true,') && json.includes(NOTE);
}

/** As {@link isClearable}, of the JSON of a result. */
export function isClearableResult(tool: string, json: string): boolean {
  return tool !== 'ask_user' && !json.startsWith(DENIED) && Buffer.byteLength(json) > WORTH_CUTTING_BYTES;
}

/** The message with the mark in the place of its result. */
export function clearedResult({ callId, tool, result, isError }: ToolMessage): ToolMessage {
  const mark = JSON.stringify(clearedMark(Buffer.byteLength(result)));
  return { role: 'tool', callId, tool, result: mark, isError };
}

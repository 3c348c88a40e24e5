/** Results of tools, in the shape and size that the engine hands to a model. */
import { cutJson } from '../runtime/cut-json.js';
import type { Picture } from '../protocol/pictures.js';
import type { ToolResult } from './engine.js';

/** Stored input of a tool call, in bytes of JSON. */
export const MAX_STORED_INPUT_BYTES = 16 * 1024;
/** Stored result of a tool call, in bytes of JSON. */
export const MAX_STORED_RESULT_BYTES = 32 * 1024;

/** A call that came to nothing; the text is for the model. */
export function failed(error: string): ToolResult {
  return { isError: true, result: { error } };
}

/** The result with words about its call, for the model and in the record. */
export function withNotes(result: ToolResult, notes: readonly string[]): ToolResult {
  if (notes.length === 0) return result;
  const note = notes.join('; ');
  const text = result.text === undefined ? {} : { text: `${result.text}\n[${note}]` };
  return { ...result, result: { ...result.result, note }, ...text };
}

/** The result with what a model that sees is shown beside it. */
export function withPictures(result: ToolResult, pictures: Picture[]): ToolResult {
  return pictures.length === 0 ? result : { ...result, pictures };
}

/** The result with at most `maxBytes` of JSON, and without anything else that another side may have put beside it. */
export function bounded({ result, isError }: Pick<ToolResult, 'result' | 'isError'>, maxBytes: number): ToolResult {
  return { isError, result: JSON.parse(cutJson(result, maxBytes)) as Record<string, unknown> };
}

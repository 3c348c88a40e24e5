/** Results of tools, in the shape and size that the engine hands to a model. */
import type { ToolResult } from './engine.js';
import { cutJson } from './json-cut.js';

/** A call that came to nothing; the text is for the model. */
export function failed(error: string): ToolResult {
  return { isError: true, result: { error } };
}

/** The result with at most `maxBytes` of JSON, and without anything else that another side may have put beside it. */
export function bounded({ result, isError }: Pick<ToolResult, 'result' | 'isError'>, maxBytes: number): ToolResult {
  return { isError, result: JSON.parse(cutJson(result, maxBytes)) as Record<string, unknown> };
}

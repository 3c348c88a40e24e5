/**
 * What a model reads of a result of the pod's tools: plain text, in which no line end and no quote is escaped. The record of the
 * call keeps the fields.
 */
import type { ToolResult } from './engine.js';

/** What cutting adds. */
const CUT_MARKS = ['truncated', 'bytes'];

/** The result with its text; one that has none stays JSON to the model. */
export function withText(result: ToolResult): ToolResult {
  const text = plainText(result.result) ?? commandText(result.result);
  return text === undefined ? result : { ...result, text };
}

function plainText({ text, error, ...rest }: Record<string, unknown>): string | undefined {
  const only = text === undefined ? error : error === undefined ? text : undefined;
  return typeof only === 'string' && Object.keys(rest).every((key) => CUT_MARKS.includes(key)) ? only : undefined;
}

/** The output, and behind it in brackets how the command ended, or that it goes on. */
function commandText({ output, ...about }: Record<string, unknown>): string | undefined {
  const { exitCode, background, running } = about;
  if (typeof output !== 'string' || (exitCode === undefined && running !== true)) return undefined;
  const { signal, error, directory, outputBytes, logPath } = about;
  const name = typeof background === 'string' ? [`background command ${background}`] : [];
  const state = typeof exitCode === 'number' ? `exit code ${exitCode}` : `ended by ${asText(signal, 'a signal')}`;
  const notes = [
    ...name,
    ...(typeof error === 'string' ? [error.replace(/\.$/, '')] : []),
    running === true ? 'still running' : state,
    ...(typeof directory === 'string' ? [`now in ${directory}`] : []),
    ...(typeof logPath === 'string' ? [`all ${asText(outputBytes, '')} bytes of the output are in ${logPath}`] : []),
  ];
  const end = output === '' || output.endsWith('\n') ? '' : '\n';
  return `${output}${end}[${notes.join('; ')}]`;
}

function asText(value: unknown, otherwise: string): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : otherwise;
}

/** Texts that a run finds in its workspace, laid there before its first step. */
import type { ClaimAnswer } from '../protocol/run.js';
import type { ToolsClient } from './tools-client.js';

/** In their order; a file that is there is replaced. What is said about the first that could not be laid. */
export async function layRunFiles(
  files: NonNullable<ClaimAnswer['files']>,
  { tools, signal }: { tools: ToolsClient; signal: AbortSignal },
): Promise<string | undefined> {
  for (const { path, content } of files) {
    const { isError, result } = await tools.call({ tool: 'write', input: { path, content } }, signal);
    if (isError) return `The file ${path} could not be laid into the workspace: ${saidIn(result)}`;
  }
  return undefined;
}

function saidIn(result: unknown): string {
  const { error } = (result ?? {}) as { error?: unknown };
  return typeof error === 'string' ? error : JSON.stringify(result);
}

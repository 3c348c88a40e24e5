/** MCP tool calls and webhook hits as any client makes them: plain HTTP, nothing of ours imported. */
import { facts } from './install.js';

export interface ToolAnswer {
  isError: boolean;
  payload: Record<string, unknown>;
}

/** One tools/call. */
export async function callTool(apiKey: string, name: string, args: object): Promise<ToolAnswer> {
  const response = await fetch(`${facts().baseUrl}/api/mcp/account`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
  });
  const body = (await response.json()) as { result: { isError?: boolean; content: { text: string }[] } };
  return {
    isError: body.result.isError === true,
    payload: JSON.parse(body.result.content[0]?.text ?? 'null') as Record<string, unknown>,
  };
}

/** A tool call that must succeed; its payload. */
export async function toolOk<T = Record<string, unknown>>(apiKey: string, name: string, args: object): Promise<T> {
  const answer = await callTool(apiKey, name, args);
  if (answer.isError) throw new Error(`${name}: ${String(answer.payload['error'])}`);
  return answer.payload as T;
}

export interface RunRecord {
  runId: string;
  status: string;
  sessionId: string;
  trigger: string;
  steps: number;
  totalTokens: number;
  costUsd: number | null;
  error: string | null;
  output: string | null;
  note?: string;
  toolCalls?: { step: number; tool: string; input: string; result: string; isError: boolean; durationMs: number }[];
}

/** Waits for the end of a run over MCP. */
export async function finishedRun(apiKey: string, agentId: string, runId: string): Promise<RunRecord> {
  for (;;) {
    const run = await toolOk<RunRecord>(apiKey, 'get_run', { agentId, runId, waitSeconds: 60, includeToolCalls: true });
    if (run.status !== 'running') return run;
  }
}

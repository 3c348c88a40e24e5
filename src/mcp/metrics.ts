/** Tool calls. Label values are the tool names of the registry, and ok or error. */
import { Counter, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

export interface ToolMetrics {
  called(tool: string, result: 'ok' | 'error', seconds: number): void;
}

/** `boxwright_mcp_tool_calls_total` and `boxwright_mcp_tool_call_duration_seconds`. */
export function createToolMetrics(registry: Registry): ToolMetrics {
  const calls = new Counter({
    name: 'boxwright_mcp_tool_calls_total',
    help: 'Calls of MCP tools.',
    labelNames: ['tool', 'result'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'boxwright_mcp_tool_call_duration_seconds',
    help: 'Time of one tool call; send_message waits for its run.',
    labelNames: ['tool'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120, 600],
    registers: [registry],
  });
  return {
    called(tool, result, seconds) {
      calls.inc({ tool, result });
      duration.observe({ tool }, seconds);
    },
  };
}

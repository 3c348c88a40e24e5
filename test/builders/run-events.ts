/** Events of a run for tests. */
import type { RunEvent } from '../../src/protocol/run.js';

const AT = '2026-01-01T00:00:00.000Z';

export function userMessage(seq: number, text: string): RunEvent {
  return { type: 'message', v: 1, seq, at: AT, message: { role: 'user', text } };
}

export function assistantMessage(seq: number, text: string): RunEvent {
  return { type: 'message', v: 1, seq, at: AT, message: { role: 'assistant', text } };
}

export function toolEvent(seq: number, result = '{"exitCode":0}'): RunEvent {
  return {
    type: 'tool',
    seq,
    at: AT,
    step: 1,
    tool: 'shell',
    input: '{"command":"ls"}',
    result,
    isError: false,
    durationMs: 12,
  };
}

export function stepEvent(seq: number): RunEvent {
  return { type: 'step', seq, at: AT, step: 1, finishReason: 'stop', inputTokens: 10, outputTokens: 5 };
}

export function outputEvent(seq: number, text: string): RunEvent {
  return { type: 'output', seq, at: AT, text };
}

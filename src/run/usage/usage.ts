/** What a run used, counted by the gateway from the answers of models: pure sums. */
import { formatMicroUsd, parseMicroUsd } from './money.js';
import { sumOf } from './saturating.js';
import type { RunUsage } from '../../api/v1alpha1/agent-run.js';

/** One model call. */
export interface CallUsage {
  inputTokens: number;
  /** Of the input: read from the vendor's cache, and put there. */
  cacheReadTokens?: number;
  cacheWriteTokens?: number;
  outputTokens: number;
  /** Undefined when the price is unknown. */
  costMicroUsd: number | undefined;
  /** True for a call without an answer: it is paid for, but is no step. */
  unanswered?: boolean;
}

/** Nothing used yet, which costs nothing. */
export const NO_USAGE: RunUsage = {
  steps: 0,
  inputTokens: 0,
  outputTokens: 0,
  totalTokens: 0,
  costUsd: formatMicroUsd(0),
};

/** The sum with one call more. Once a call has no known price, the sum has none. */
export function addCall(usage: RunUsage, call: CallUsage): RunUsage {
  const known = parseMicroUsd(usage.costUsd);
  const inputTokens = sumOf(usage.inputTokens, call.inputTokens);
  const outputTokens = sumOf(usage.outputTokens, call.outputTokens);
  return {
    steps: usage.steps + (call.unanswered === true ? 0 : 1),
    inputTokens,
    ...counted('cacheReadTokens', usage, call),
    ...counted('cacheWriteTokens', usage, call),
    outputTokens,
    totalTokens: sumOf(inputTokens, outputTokens),
    ...(known === undefined || call.costMicroUsd === undefined
      ? {}
      : { costUsd: formatMicroUsd(sumOf(known, call.costMicroUsd)) }),
  };
}

/** Absent where no vendor ever said so. */
function counted(field: 'cacheReadTokens' | 'cacheWriteTokens', usage: RunUsage, call: CallUsage): Partial<RunUsage> {
  const sum = sumOf(usage[field] ?? 0, call[field] ?? 0);
  return sum === 0 ? {} : { [field]: sum };
}

/**
 * The model call in flight: what it may use at most stands in the status while it takes long. When nobody will know what it
 * used, it is charged in full: once, by whoever closes or takes over the run.
 */
import type { OpenCall, RunUsage } from '../../api/v1alpha1/agent-run.js';
import { amountOf, type Amount } from './budget.js';
import { formatMicroUsd, parseMicroUsd } from './money.js';
import { sumOf } from './saturating.js';
import { NO_USAGE, type CallUsage } from './usage.js';

/** What a status says of it. */
interface Used {
  usage?: RunUsage | undefined;
  openCall?: OpenCall | undefined;
}

/** A call in flight as it stands in a status. */
export function openCallOf({ inputTokens, outputTokens, costMicroUsd }: CallUsage): OpenCall {
  return {
    inputTokens: sumOf(inputTokens),
    outputTokens: sumOf(outputTokens),
    ...(costMicroUsd === undefined ? {} : { costUsd: formatMicroUsd(costMicroUsd) }),
  };
}

/** Usage with the open call charged: it is paid for, and is no step. */
export function usageWithOpenCall({ usage, openCall }: Used): RunUsage | undefined {
  if (openCall === undefined) return usage;
  const { steps, costUsd, ...used } = usage ?? NO_USAGE;
  const inputTokens = sumOf(used.inputTokens, openCall.inputTokens);
  const outputTokens = sumOf(used.outputTokens, openCall.outputTokens);
  const [known, cost] = [parseMicroUsd(costUsd), parseMicroUsd(openCall.costUsd)];
  return {
    steps,
    inputTokens,
    outputTokens,
    totalTokens: sumOf(inputTokens, outputTokens),
    ...(known === undefined || cost === undefined ? {} : { costUsd: formatMicroUsd(sumOf(known, cost)) }),
  };
}

/** What a live run has used or may use now; an unknown cost counts as nothing. */
export function amountInUse({ usage, openCall }: Used): Amount {
  const used = amountOf(usage);
  if (openCall === undefined) return used;
  const { inputTokens, outputTokens, costUsd } = openCall;
  const open = amountOf({ totalTokens: sumOf(inputTokens, outputTokens), costUsd });
  return { tokens: sumOf(used.tokens, open.tokens), microUsd: sumOf(used.microUsd, open.microUsd) };
}

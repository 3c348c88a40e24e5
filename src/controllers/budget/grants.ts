/** Grants as pure arithmetic: what limits leave, what a run gets at first, and how much more later. */
import type { Allowance, Amount } from '../../run/usage/budget.js';
import { formatMicroUsd, parseMicroUsd } from '../../run/usage/money.js';
import type { RunBudget } from '../../api/v1alpha1/agent-run.js';
import type { Budgets } from '../../api/v1alpha1/common.js';

/** The first grant is an eighth of what is left, but no less than this, so that few calls have to ask for more. */
const FIRST_SHARE = 8;
const FIRST_TOKENS = 50_000;
const FIRST_MICRO_USD = 100_000;
/** With less than this no model call is possible: a budget that has so little left is exhausted. */
const LEAST_TOKENS = 1_000;
const LEAST_MICRO_USD = 1_000;

export type Limit = Budgets[number];

/** Narrows `left` to what the limit leaves after the amounts; never below 0. */
export function narrow(left: Allowance, { usd, tokens }: Limit, used: readonly Amount[]): void {
  if (tokens !== undefined)
    left.tokens = lower(
      left.tokens,
      used.reduce((rest, one) => rest - one.tokens, tokens),
    );
  const microUsd = parseMicroUsd(usd);
  if (microUsd === undefined) return;
  left.microUsd = lower(
    left.microUsd,
    used.reduce((rest, one) => rest - one.microUsd, microUsd),
  );
}

/** Whether a limit with this much used leaves nothing to work with. */
export function isExhausted({ usd, tokens }: Limit, used: Amount): boolean {
  const microUsd = parseMicroUsd(usd);
  return (
    (tokens !== undefined && tooLittle(tokens, used.tokens, LEAST_TOKENS)) ||
    (microUsd !== undefined && tooLittle(microUsd, used.microUsd, LEAST_MICRO_USD))
  );
}

function tooLittle(limit: number, used: number, least: number): boolean {
  return limit - used <= 0 || limit - used < Math.min(least, limit);
}

/** What a run is granted at its admission: at most half if the run that called it works on beside it. */
export function firstGrant(left: Allowance, besideCaller: boolean): Allowance {
  const first = (amount: number | undefined, least: number) => {
    if (amount === undefined) return undefined;
    const share = Math.max(Math.ceil(amount / FIRST_SHARE), least);
    return Math.min(besideCaller ? Math.ceil(amount / 2) : amount, share);
  };
  return { tokens: first(left.tokens, FIRST_TOKENS), microUsd: first(left.microUsd, FIRST_MICRO_USD) };
}

/** As much of what is wanted as is left; never less than before. */
export function enlarged(known: Allowance, wanted: Allowance, left: Allowance): Allowance {
  const more = (before?: number, wish?: number, rest?: number) =>
    before === undefined || wish === undefined ? before : Math.max(before, Math.min(wish, rest ?? wish));
  return {
    tokens: more(known.tokens, wanted.tokens, left.tokens),
    microUsd: more(known.microUsd, wanted.microUsd, left.microUsd),
  };
}

function lower(one: number | undefined, other: number): number {
  return Math.max(0, Math.min(one ?? Infinity, other));
}

/** The larger of two; an absent one is no known limit. */
export function higher(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

/** An allowance of a status. */
export function allowanceIn({ tokens, usd }: RunBudget['granted']): Allowance {
  const microUsd = parseMicroUsd(usd);
  return { ...(tokens === undefined ? {} : { tokens }), ...(microUsd === undefined ? {} : { microUsd }) };
}

/** An allowance as a status shows it. */
export function shown({ tokens, microUsd }: Allowance): RunBudget['granted'] {
  return {
    ...(tokens === undefined ? {} : { tokens }),
    ...(microUsd === undefined ? {} : { usd: formatMicroUsd(microUsd) }),
  };
}

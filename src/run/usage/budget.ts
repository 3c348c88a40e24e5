/**
 * Money of runs as pure arithmetic: periods, amounts, and the grant that a run is granted.
 * See docs/architecture.md#budgets.
 */
import { parseMicroUsd } from './money.js';
import { sumOf } from './saturating.js';
import type { AgentRun, RunUsage } from '../../api/v1alpha1/agent-run.js';
import type { FoldedTotals } from '../../api/v1alpha1/common.js';

export interface Amount {
  tokens: number;
  microUsd: number;
}

/** What a run may use from its beginning; an absent dimension has no limit. */
export interface Allowance {
  tokens?: number | undefined;
  microUsd?: number | undefined;
}

/** An allowance with the time of its admission, RFC 3339. */
export interface Grant extends Allowance {
  at: string;
}

type Periods = NonNullable<FoldedTotals['periods']>;

/** How many of the latest days, and of the latest months, are kept. */
const KEPT = 4;
const DAY = 'YYYY-MM-DD'.length;
const MONTH = 'YYYY-MM'.length;

/** Day and month of UTC. */
export function periodsOf(at: string): { day: string; month: string } {
  const iso = new Date(at).toISOString();
  return { day: iso.slice(0, DAY), month: iso.slice(0, MONTH) };
}

/** What was used; an unknown cost counts as nothing. */
export function amountOf(usage: Pick<RunUsage, 'totalTokens' | 'costUsd'> | undefined): Amount {
  return { tokens: usage?.totalTokens ?? 0, microUsd: parseMicroUsd(usage?.costUsd) ?? 0 };
}

/** When the run was admitted: the day and month that it counts for. Undefined for runs that used nothing. */
export function countedAt(run: Pick<AgentRun, 'status'>): string | undefined {
  return run.status?.budget?.at ?? run.status?.claim?.at;
}

/** The sums with one run more; only the latest periods are kept. */
export function addToPeriods(periods: Periods | undefined, at: string, { tokens, microUsd }: Amount): Periods {
  const { day, month } = periodsOf(at);
  const sums = new Map((periods ?? []).map((one) => [one.period, one]));
  for (const period of [day, month]) {
    const known = sums.get(period) ?? { period, tokens: 0, costMicroUsd: 0 };
    sums.set(period, {
      period,
      tokens: sumOf(known.tokens, tokens),
      costMicroUsd: sumOf(known.costMicroUsd, microUsd),
    });
  }
  const latest = (length: number) =>
    [...sums.values()]
      .filter(({ period }) => period.length === length)
      .sort((a, b) => (a.period < b.period ? -1 : 1))
      .slice(-KEPT);
  return [...latest(DAY), ...latest(MONTH)];
}

/** A first grant, and what of the budgets it was taken. */
export type AdmittedGrant = Grant & { left: Allowance };

/** The grant as the annotation of a Job. */
export function renderGrant({ at, tokens, microUsd }: Grant): string {
  return JSON.stringify({ at, tokens, microUsd });
}

/** The grant of an annotation; undefined when there is none, or none of ours. */
export function parseGrant(annotation: string | undefined): Grant | undefined {
  if (annotation === undefined) return undefined;
  try {
    const { at, tokens, microUsd } = JSON.parse(annotation) as Partial<Record<keyof Grant, unknown>>;
    if (typeof at !== 'string' || Number.isNaN(Date.parse(at))) return undefined;
    return {
      at,
      ...(typeof tokens === 'number' ? { tokens } : {}),
      ...(typeof microUsd === 'number' ? { microUsd } : {}),
    };
  } catch {
    return undefined;
  }
}

/** Cases and models as results, under which name each run is started, and what all results say together. Pure. */
import { createHash } from 'node:crypto';
import { ulid } from '../../api/ulid.js';
import type { AgentEval, EvalCase, EvalResult } from '../../api/v1alpha1/agent-eval.js';
import type { RunModel } from '../../api/v1alpha1/agent-run.js';
import { formatMicroUsd, parseMicroUsd } from '../../run/usage/money.js';

type EvalStatus = NonNullable<AgentEval['status']>;

/** One result with what the spec says about it. */
export interface EvalCell {
  case: EvalCase;
  model: RunModel | undefined;
}

export type RunRole = 'case' | 'judge';

const ULID_RANDOM_BYTES = 10;

/** As results name a model. */
export function modelLabel({ provider, name }: RunModel): string {
  return provider === undefined ? name : `${provider}/${name}`;
}

/** Each case with each model, in the order of the spec. */
export function cellsOf({ cases, models = [] }: Pick<AgentEval['spec'], 'cases' | 'models'>): EvalCell[] {
  const chosen = models.length === 0 ? [undefined] : models;
  return cases.flatMap((one) => chosen.map((model) => ({ case: one, model })));
}

/** The results before anything was started. */
export function pendingResults(spec: Pick<AgentEval['spec'], 'cases' | 'models'>): EvalResult[] {
  return cellsOf(spec).map((cell) => ({
    case: cell.case.name,
    ...(cell.model === undefined ? {} : { model: modelLabel(cell.model) }),
    phase: 'pending',
  }));
}

/**
 * `<agent>-<ulid>`: the same name whoever computes it, so that a start that is repeated finds its run. `attempt` counts names
 * that somebody else's run has.
 */
export function evalRunName(
  { metadata }: Pick<AgentEval, 'metadata'>,
  cell: EvalCell,
  start: { role: RunRole; agent: string; attempt: number },
): string {
  const { uid = '', generation = 0, creationTimestamp = '' } = metadata;
  const model = cell.model === undefined ? '' : modelLabel(cell.model);
  const parts = [uid, generation, cell.case.name, model, start.role, start.attempt];
  const digest = createHash('sha256').update(JSON.stringify(parts)).digest();
  return `${start.agent}-${ulid(Date.parse(creationTimestamp) || 0, digest.subarray(0, ULID_RANDOM_BYTES))}`;
}

export function isOver({ phase }: EvalResult): boolean {
  return phase === 'passed' || phase === 'failed';
}

export function isUnderWay({ phase }: EvalResult): boolean {
  return phase === 'running' || phase === 'judging';
}

/** The fields of the status that follow from the results. */
export function totalsOf(results: readonly EvalResult[], now: string): Partial<EvalStatus> {
  const passed = results.filter(({ phase }) => phase === 'passed').length;
  const failed = results.filter(({ phase }) => phase === 'failed').length;
  const costs = results.flatMap(({ costUsd }) => parseMicroUsd(costUsd) ?? []);
  const isFinished = passed + failed === results.length;
  const outcome = failed === 0 ? ('passed' as const) : ('failed' as const);
  return {
    phase: isFinished ? outcome : 'running',
    total: results.length,
    passed,
    failed,
    ...(costs.length === 0 ? {} : { costUsd: formatMicroUsd(costs.reduce((sum, cost) => sum + cost, 0)) }),
    ...(isFinished ? { finishedAt: now } : {}),
  };
}

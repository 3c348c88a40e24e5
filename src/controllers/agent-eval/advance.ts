/** Takes one result of an eval further: from the end of its run to the judge, or to passed or failed. */
import type { AgentEval, EvalResult } from '../../api/v1alpha1/agent-eval.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { formatMicroUsd, parseMicroUsd } from '../../run/usage/money.js';
import { failure, failuresOf, needsTools, shownText } from './assertions.js';
import type { EvalFailure } from './assertions.js';
import { endedRun, evidenceOf, secondsOf } from './evidence.js';
import type { EvidenceDependencies } from './evidence.js';
import { judgeMessage, verdictOf } from './judge.js';
import type { EvalCell } from './plan.js';
import { startEvalRun } from './start.js';
import type { EvalStart, Obstacle, StartDependencies } from './start.js';

export type AdvanceDependencies = EvidenceDependencies & StartDependencies;

/** The result as it is now, and what a start has to wait for. */
export interface Advance {
  result: EvalResult;
  waits?: Obstacle;
}

/** Starts the run of a case. */
export async function begin(
  deps: StartDependencies,
  of: AgentEval,
  at: { cell: EvalCell; result: EvalResult },
  signal: AbortSignal,
): Promise<Advance> {
  const { cell, result } = at;
  const start = { cell, role: 'case' as const, agent: of.spec.agent, model: cell.model, message: cell.case.message };
  return await started(deps, of, { start, result }, signal);
}

/** The result after what its run, or that of its judge, has come to. */
export async function advance(
  deps: AdvanceDependencies,
  of: AgentEval,
  at: { cell: EvalCell; result: EvalResult },
  signal: AbortSignal,
): Promise<Advance> {
  const { result } = at;
  const { namespace = '', uid } = of.metadata;
  const isJudging = result.phase === 'judging';
  const name = (isJudging ? result.judgeRun : result.run) ?? '';
  const ended = await endedRun(deps, { namespace, name }, uid, signal);
  if (ended.kind === 'waits') return { result };
  if (ended.kind === 'gone') return { result: failed(result, [failure('its run', `run ${name} is gone`)]) };
  return isJudging
    ? { result: judged(result, ended.run) }
    : await assessed(deps, of, { ...at, run: ended.run }, signal);
}

/** Checks the assertions; a judge is asked only when all of them hold. */
async function assessed(
  deps: AdvanceDependencies,
  of: AgentEval,
  { cell, result, run }: { cell: EvalCell; result: EvalResult; run: AgentRun },
  signal: AbortSignal,
): Promise<Advance> {
  const { assertions, judge } = cell.case;
  const evidence = await evidenceOf(deps.api, run, { tools: assertions.some(needsTools) });
  const measured = measuredBy(result, run);
  const bad = badEnd(run);
  const failures = bad === undefined ? await failuresOf(assertions, evidence) : [bad];
  if (failures.length > 0) return { result: failed(measured, failures) };
  if (judge === undefined) return { result: { ...measured, phase: 'passed' } };
  const message = judgeMessage(cell.case, evidence.text);
  const start = { cell, role: 'judge' as const, agent: judge.agent, model: judge.model, message };
  const judging = await started(deps, of, { start, result: measured }, signal);
  // Until the judge works the result stays as it is, so that the run is assessed again.
  return judging.waits === undefined ? judging : { result, waits: judging.waits };
}

async function started(
  deps: StartDependencies,
  of: AgentEval,
  { start, result }: { start: EvalStart; result: EvalResult },
  signal: AbortSignal,
): Promise<Advance> {
  const outcome = await startEvalRun(deps, of, start, signal);
  if (outcome.kind === 'again') return { result, waits: outcome };
  if (outcome.kind === 'refused') return { result: failed(result, [failure('its run', outcome.message)]) };
  return {
    result:
      start.role === 'judge'
        ? { ...result, phase: 'judging', judgeRun: outcome.run }
        : { ...result, phase: 'running', run: outcome.run },
  };
}

function judged(result: EvalResult, run: AgentRun): EvalResult {
  const text = run.status?.output ?? '';
  const seen = { ...withCostOf(result, run), verdict: shownText(text) };
  const bad = badEnd(run);
  if (bad !== undefined) return failed(seen, [failure('its judge', bad.seen)]);
  // What it asks a person is no verdict, whatever the first word is.
  const verdict = run.status?.pending === undefined ? verdictOf(text) : undefined;
  if (verdict === 'pass') return { ...seen, phase: 'passed' };
  const expected = verdict === 'fail' ? 'judge: PASS' : 'judge: PASS or FAIL as the first word';
  return failed(seen, [failure(expected, text === '' ? 'an empty message' : text)]);
}

function badEnd({ metadata, status }: AgentRun): EvalFailure | undefined {
  if (status?.phase === 'done') return undefined;
  const why = [status?.reason, status?.message].filter((part) => part !== undefined).join(': ');
  return failure('its run ends well', `run ${metadata.name} ended as ${status?.phase ?? 'unknown'}: ${why}`);
}

function failed(result: EvalResult, failures: EvalFailure[]): EvalResult {
  return { ...result, phase: 'failed', failures };
}

function measuredBy(result: EvalResult, run: AgentRun): EvalResult {
  const { usage } = run.status ?? {};
  const used = usage === undefined ? {} : { steps: usage.steps, totalTokens: usage.totalTokens };
  return { ...withCostOf(result, run), ...used, seconds: secondsOf(run) };
}

function withCostOf(result: EvalResult, run: AgentRun): EvalResult {
  const cost = parseMicroUsd(run.status?.usage?.costUsd);
  if (cost === undefined) return result;
  return { ...result, costUsd: formatMicroUsd(cost + (parseMicroUsd(result.costUsd) ?? 0)) };
}

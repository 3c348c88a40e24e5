/**
 * AgentEval: runs every case with every model as ordinary AgentRuns, and keeps what became of them in its status. A run has a
 * name that is computed from the eval, its generation and the case, so that a start which is repeated finds the run. A
 * changed spec is another generation: what still works for the old one is cancelled, and all cases run again.
 * See docs/evals.md.
 */
import { objectKey } from '../../api/meta.js';
import { AgentEvals } from '../../api/v1alpha1/agent-eval.js';
import type { AgentEval, EvalResult } from '../../api/v1alpha1/agent-eval.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { isNotFound, orUndefined } from '../../kube/errors.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { AgentChild } from '../../projections/agent-child.js';
import type { ControllerAgent } from '../../projections/agent.js';
import type { ControllerEval } from '../../projections/agent-eval.js';
import { BY_TRIGGER_UID } from '../../projections/agent-run.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import { BY_NAMESPACE, agentKey } from '../../projections/indexes.js';
import { isTerminal } from '../../run/status.js';
import { isoNow } from '../../runtime/clock.js';
import type { Clock } from '../../runtime/clock.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import { CONTINUE, DONE, requeueAfter, runSteps } from '../../runtime/steps.js';
import type { Step, StepResult } from '../../runtime/steps.js';
import { all } from '../common/controller-part.js';
import type { ControllerPart } from '../common/controller-part.js';
import { refOf } from '../common/finalizer.js';
import { setReady, showCondition } from '../common/ready.js';
import type { NotReady } from '../common/ready.js';
import { patchStatus } from '../common/status-patch.js';
import { advance, begin } from './advance.js';
import type { Advance } from './advance.js';
import { problemOfCases } from './assertions.js';
import { contentOf } from './content.js';
import { isSettled } from './evidence.js';
import { cellsOf, isOver, isUnderWay, pendingResults, totalsOf } from './plan.js';
import { obstacleOf } from './start.js';
import type { StartDependencies } from './start.js';

export interface AgentEvalDependencies {
  api: Pick<KubeApi, 'get' | 'create' | 'patch'>;
  clock: Clock;
  log: Logger;
  caches: {
    evals: Cache<ControllerEval>;
    agents: Cache<ControllerAgent>;
    skills: Cache<AgentChild>;
    runs: Cache<ControllerRun>;
  };
  backlogExceeded: StartDependencies['backlogExceeded'];
  reserve: StartDependencies['reserve'];
}

/** The watch usually delivers the new version, and so triggers a reconcile, earlier. */
const CHANGED_RECHECK_MS = 1_000;
const AGAIN_MS = 30_000;
/** Ends of runs wake the eval earlier; this covers a lost event. */
const UNDER_WAY_RECHECK_MS = 60_000;

type EvalStep = Step<ControllerEval, undefined>;

/** The controller of AgentEval. */
export function createAgentEvalController(deps: AgentEvalDependencies): ControllerPart {
  const { evals } = deps.caches;
  const steps: readonly EvalStep[] = [
    { name: 'generation', run: (draft, _inputs, signal) => beginGeneration(deps, draft, signal) },
    { name: 'cases', run: (draft, _inputs, signal) => work(deps, draft, signal) },
  ];
  return {
    name: 'agent-eval',
    workers: 4,
    watch: (enqueue) => watchAll(deps, enqueue),
    async reconcile(key, signal): Promise<ReconcileResult | void> {
      const found = evals.get(key);
      if (found === undefined || found.metadata.deletionTimestamp !== undefined) return;
      return await runSteps({
        object: found,
        inputs: undefined,
        steps,
        writeStatus: (draft, abort) => patchStatus(deps.api, { type: AgentEvals, before: found, draft }, abort),
        signal,
      });
    },
  };
}

function watchAll({ caches }: AgentEvalDependencies, enqueue: (key: string) => void): () => void {
  const { evals, agents, runs } = caches;
  return all([
    evals.onChange(({ key }) => enqueue(key)),
    // An agent that comes may be the one that is evaluated, or a judge.
    agents.onChange(({ previous, current }) => {
      if (previous !== undefined || current === undefined) return;
      const inNamespace = evals.byIndex(BY_NAMESPACE, current.metadata.namespace ?? '');
      for (const { metadata } of inNamespace) enqueue(objectKey(metadata));
    }),
    runs.onChange(({ previous, current }) => {
      const { metadata, spec } = current ?? previous ?? {};
      if (spec?.trigger?.origin !== 'eval' || spec.trigger.name === undefined) return;
      const isNews = current === undefined || (isSettled(current) && !(previous !== undefined && isSettled(previous)));
      if (isNews) enqueue(agentKey(metadata?.namespace, spec.trigger.name));
    }),
  ]);
}

/** A generation that was not begun gets its results, all pending, before anything of it is started. */
async function beginGeneration(
  deps: AgentEvalDependencies,
  draft: ControllerEval,
  signal: AbortSignal,
): Promise<StepResult> {
  const { generation = 0 } = draft.metadata;
  if (draft.status?.generation === generation) return CONTINUE;
  const problem = await problemOf(draft);
  if (problem !== undefined) {
    draft.status = { ...conditionsOf(draft), phase: 'failed' };
    setReady(draft, problem, deps.clock);
    // Whoever waits for an end need not wait longer.
    showCondition(draft, { type: 'Finished', status: 'True', ...problem }, deps.clock);
    showCondition(draft, { type: 'Passed', status: 'False', ...problem }, deps.clock);
    return DONE;
  }
  // An old view must not cancel runs of a generation that has begun.
  if (!(await isCurrent(deps, draft, signal))) return requeueAfter(CHANGED_RECHECK_MS);
  await cancelRuns(deps, draft, signal);
  draft.status = { ...conditionsOf(draft), generation, phase: 'running', startedAt: isoNow(deps.clock) };
  showResults(deps, draft, pendingResults(draft.spec));
  // The write of this status wakes the eval again.
  return requeueAfter(CHANGED_RECHECK_MS);
}

function conditionsOf({ status }: AgentEval): Pick<NonNullable<AgentEval['status']>, 'conditions'> {
  return status?.conditions === undefined ? {} : { conditions: status.conditions };
}

async function problemOf({ spec, unusable }: ControllerEval): Promise<NotReady | undefined> {
  if (unusable !== undefined) return { reason: 'InvalidEval', message: unusable };
  const problem = await problemOfCases(spec);
  return problem === undefined ? undefined : { reason: 'InvalidEval', message: problem };
}

async function isCurrent({ api }: AgentEvalDependencies, { metadata }: AgentEval, signal: AbortSignal) {
  const live = await orUndefined(api.get(AgentEvals, refOf(metadata), { signal }));
  return (
    live !== undefined &&
    live.metadata.uid === metadata.uid &&
    live.metadata.resourceVersion === metadata.resourceVersion
  );
}

/** What works for an older generation. Runs that end meanwhile, or are gone, need nothing. */
async function cancelRuns(deps: AgentEvalDependencies, { metadata }: AgentEval, signal: AbortSignal): Promise<void> {
  for (const run of deps.caches.runs.byIndex(BY_TRIGGER_UID, metadata.uid ?? '')) {
    if (isTerminal(run) || run.spec.cancelRequested === true) continue;
    const body = { metadata: { uid: run.metadata.uid }, spec: { cancelRequested: true } };
    try {
      await deps.api.patch(AgentRuns, refOf(run.metadata), body, { type: 'merge', signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

/** Takes what has ended further, and starts what there is a place for; the status is written once for all of it. */
async function work(deps: AgentEvalDependencies, draft: AgentEval, signal: AbortSignal): Promise<StepResult> {
  const results = draft.status?.results ?? [];
  if (results.every(isOver)) return DONE;
  const cells = cellsOf(draft.spec);
  const doing = { ...deps, ...deps.caches };
  let waits: Advance['waits'];
  let isChecked = false;
  for (const [at, result] of results.entries()) {
    const cell = cells[at];
    if (cell === undefined || isOver(result)) continue;
    if (result.phase === 'pending') {
      if (waits !== undefined || results.filter(isUnderWay).length >= draft.spec.parallelism) continue;
      waits = obstacleOf(doing, draft, draft.spec.agent);
      if (waits !== undefined) continue;
      // The view of a controller that has just taken over may be old: whether the run was started is asked once.
      isChecked ||= await isCurrent(deps, draft, signal);
      if (!isChecked) return requeueAfter(CHANGED_RECHECK_MS);
      if (results.every(({ phase }) => phase === 'pending')) await showContent(deps, draft, signal);
    }
    const next = await (result.phase === 'pending' ? begin : advance)(doing, draft, { cell, result }, signal);
    results[at] = next.result;
    waits ??= next.waits;
  }
  if (results.every(isOver)) await keepContent(deps, draft, signal);
  showResults(deps, draft, results);
  setReady(draft, waits, deps.clock);
  logEnd(deps, draft);
  if (results.every(isOver)) return DONE;
  return requeueAfter(waits === undefined ? UNDER_WAY_RECHECK_MS : AGAIN_MS);
}

/** What the first case finds. */
async function showContent(deps: AgentEvalDependencies, draft: AgentEval, signal: AbortSignal): Promise<void> {
  const content = await currentContent(deps, draft, signal);
  if (content !== undefined) draft.status = { ...draft.status, content };
}

/** Results of an agent that changed meanwhile are about nothing that can be named. */
async function keepContent(deps: AgentEvalDependencies, draft: AgentEval, signal: AbortSignal): Promise<void> {
  const { content, ...status } = draft.status ?? {};
  if (content !== undefined && content !== (await currentContent(deps, draft, signal))) draft.status = status;
}

function currentContent(deps: AgentEvalDependencies, { metadata, spec }: AgentEval, signal: AbortSignal) {
  const agent = { namespace: metadata.namespace ?? '', name: spec.agent };
  return contentOf({ api: deps.api, skills: deps.caches.skills }, agent, signal);
}

/** Results, totals and what conditions say about them. */
function showResults({ clock }: AgentEvalDependencies, draft: AgentEval, results: EvalResult[]): void {
  draft.status = { ...draft.status, ...totalsOf(results, isoNow(clock)), results };
  const { phase, passed = 0, failed = 0, total = 0 } = draft.status;
  const message = `${passed} of ${total} passed, ${failed} failed`;
  const isFinished = phase !== 'running';
  const reason = !isFinished ? 'EvalRunning' : phase === 'passed' ? 'AllPassed' : 'CasesFailed';
  const passing = !isFinished ? ('Unknown' as const) : phase === 'passed' ? ('True' as const) : ('False' as const);
  showCondition(draft, { type: 'Finished', status: isFinished ? 'True' : 'False', reason, message }, clock);
  showCondition(draft, { type: 'Passed', status: passing, reason, message }, clock);
}

function logEnd({ log }: AgentEvalDependencies, { metadata, status }: AgentEval): void {
  if (status?.finishedAt === undefined) return;
  const { passed, failed } = status;
  log.info({ namespace: metadata.namespace, eval: metadata.name, passed, failed }, 'eval finished');
}

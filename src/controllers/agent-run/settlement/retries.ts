/**
 * Takes runs further that ended in an error in which nothing was under way (src/run/retry.ts): the retry is created under a
 * name that any replica computes, then the run says by whom it is taken further. A crash in between finds the retry there.
 */
import { boxOfNamespace } from '../../../api/names.js';
import type { AgentRef } from '../../../api/names.js';
import { acceptedAt } from '../../../api/names.js';
import { objectKey } from '../../../api/meta.js';
import { AgentRuns } from '../../../api/v1alpha1/agent-run.js';
import { orUndefined } from '../../../kube/errors.js';
import type { Logger } from '../../../observability/logger.js';
import { BY_AGENT, agentKey } from '../../../projections/indexes.js';
import { BY_SESSION } from '../../../projections/agent-run.js';
import type { ControllerRun } from '../../../projections/agent-run.js';
import { DamagedInputError, messageOf } from '../../../run/message.js';
import { retryOf } from '../../../run/retry.js';
import type { Retry } from '../../../run/retry.js';
import { sessionIdOf, sessionKeyOf } from '../../../run/session/key.js';
import { isClaimed, isTerminal } from '../../../run/status.js';
import type { BacklogScope } from '../../../run/start/backlog-budget.js';
import type { ReserveRun } from '../../../run/start/own-runs.js';
import { ACKNOWLEDGE_MS, StartRunError, startRun } from '../../../run/start/start-run.js';
import { withTimeout } from '../../../runtime/with-timeout.js';
import type { ReconcileResult } from '../../../runtime/controller.js';
import { all, type ControllerPart } from '../../common/controller-part.js';
import type { RunDependencies } from '../dependencies.js';
import { RunWriter } from '../run-writer.js';

export interface RetryDependencies extends Pick<RunDependencies, 'api' | 'clock'> {
  log: Pick<Logger, 'warn'>;
  caches: Pick<RunDependencies['caches'], 'runs' | 'agents'>;
  /** The budget that has no room for a run of this agent. */
  backlogExceeded(agent: AgentRef): BacklogScope | undefined;
  reserve: ReserveRun;
}

/** What the model is told after the conversation until then, and the cause of the end. */
const GO_ON = 'Go on with the task where it was interrupted.';
/** How often a full backlog is looked at again. */
const BACKLOG_LOOK_MS = 30_000;

export function createRetryController(deps: RetryDependencies): ControllerPart {
  const { api, clock, log, caches } = deps;
  const writer = new RunWriter(api, clock, log);
  const planned = (run: ControllerRun | undefined): Retry | undefined => {
    if (run === undefined || !isTerminal(run)) return undefined;
    const agent = caches.agents.get(agentKey(run.metadata.namespace ?? '', run.spec.agent));
    if (agent === undefined || agent.metadata.deletionTimestamp !== undefined) return undefined;
    return retryOf(run, agent.spec.retries ?? 0, clock.now());
  };
  return {
    name: 'run-retries',
    workers: 4,
    watch: (enqueue) =>
      all([
        caches.runs.onChange(({ key, current }) => {
          if (planned(current) !== undefined) enqueue(key);
        }),
        caches.agents.onChange(({ key, previous, current }) => {
          if (current === undefined || previous?.spec.retries === current.spec.retries) return;
          for (const run of caches.runs.byIndex(BY_AGENT, key)) {
            if (planned(run) !== undefined) enqueue(objectKey(run.metadata));
          }
        }),
      ]),
    async reconcile(key, signal): Promise<ReconcileResult> {
      const run = caches.runs.get(key);
      const retry = planned(run);
      if (run === undefined || retry === undefined || goesOn(deps, run)) return {};
      const left = retry.at - clock.now();
      if (left > 0) return { requeueAfterMs: left };
      if (deps.backlogExceeded(refOf(run)) !== undefined) return { requeueAfterMs: BACKLOG_LOOK_MS };
      if (await start(deps, run, retry, signal)) await writer.retried(run, retry.name, signal);
      return {};
    },
  };
}

/** Whether somebody has spoken in its session since: then the run after it knows what was lost, and is asked what comes next. */
function goesOn({ caches }: RetryDependencies, run: ControllerRun): boolean {
  return caches.runs
    .byIndex(BY_SESSION, sessionKeyOf(run))
    .some((other) => acceptedAt(other) > acceptedAt(run) && other.spec.retryOf?.uid !== run.metadata.uid);
}

function refOf(run: ControllerRun): AgentRef {
  return { box: boxOfNamespace(run.metadata.namespace ?? '') ?? '', agent: run.spec.agent };
}

/** False when there can be none: the run is gone, or the API server refuses its retry for good. */
async function start(deps: RetryDependencies, run: ControllerRun, retry: Retry, signal: AbortSignal): Promise<boolean> {
  const { api, clock, reserve, caches, log } = deps;
  const { namespace = '', name, uid = '' } = run.metadata;
  const message = isClaimed(run) ? GO_ON : await storedMessage(deps, run, signal);
  const agentUid = run.spec.agentUid ?? run.status?.agentUid;
  if (message === undefined || agentUid === undefined) return false;
  const session = caches.runs.byIndex(BY_SESSION, sessionKeyOf(run)).map(acceptedAt).toSorted();
  const request = {
    name: retry.name,
    agent: refOf(run),
    agentUid,
    message,
    trigger: run.spec.trigger ?? { origin: 'api' as const },
    sessionId: sessionIdOf(run),
    actor: run.spec.actor ?? 'retry',
    limits: run.spec.limits,
    retryOf: { name, uid, attempt: retry.attempt },
  };
  const starter = { api, clock, reserve, lastOfSession: () => session.at(-1) };
  try {
    await withTimeout(clock, ACKNOWLEDGE_MS, (abort) => startRun(starter, request, abort), signal);
    return true;
  } catch (error) {
    if (!(error instanceof StartRunError) || error.kind !== 'refused') throw error;
    log.warn({ err: error, namespace, run: name }, 'a run cannot be retried');
    return false;
  }
}

async function storedMessage(
  { api }: RetryDependencies,
  { metadata }: ControllerRun,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { namespace = '', name, uid } = metadata;
  const live = await orUndefined(api.get(AgentRuns, { namespace, name }, { signal }));
  if (live === undefined || live.metadata.uid !== uid) return undefined;
  try {
    return await messageOf(live.spec);
  } catch (error) {
    if (error instanceof DamagedInputError) return undefined;
    throw error;
  }
}

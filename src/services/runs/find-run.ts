/** Which runs a caller sees of an agent: by id, by session, and in which order. */
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { orUndefined } from '../../kube/errors.js';
import type { Cache } from '../../kube/types.js';
import { BY_SESSION, projectApiRun } from '../../projections/agent-run.js';
import type { ApiRun } from '../../projections/agent-run.js';
import type { ApiAgent } from '../../projections/agent.js';
import { sessionKey } from '../../run/session/key.js';
import { cachedOrLive, kubeCall, DNS_LABEL } from '../kube-call.js';
import type { ScopeDeps } from '../scope.js';
import { compare } from '../../runtime/compare.js';

/** The shown runs of a session of this agent, oldest first; of one that the cache does not know, the run that opened it. */
export async function sessionRuns(deps: ScopeDeps, agent: ApiAgent, sessionId: string): Promise<ApiRun[]> {
  const known = deps.caches.AgentRun.byIndex(BY_SESSION, sessionKey(agent.namespace, sessionId));
  const runs = known.filter((run) => isShown(deps, agent, run)).sort(byAcceptance);
  const first = sessionId.startsWith('s-') ? sessionId.slice(2) : '';
  if (known.length > 0 || !DNS_LABEL.test(first)) return runs;
  const ref = { namespace: agent.namespace, name: first };
  const live = await kubeCall(deps, (signal) => orUndefined(deps.api.get(AgentRuns, ref, { signal })));
  const run = live === undefined ? undefined : projectApiRun(live);
  return run !== undefined && run.sessionId === sessionId && isShown(deps, agent, run) ? [run] : [];
}

/** Order of runs: acceptance, then name. */
export function byAcceptance(a: ApiRun, b: ApiRun): number {
  return compare(a.createdAt, b.createdAt) || compare(a.name, b.name);
}

export const RUN_NOT_FOUND = 'run not found: this agent has no run with this runId; list_runs shows the latest';

/** Whether the run is one of this agent, not of a deleted namesake, and not being deleted. */
export function isRunOf(agent: ApiAgent, run: ApiRun): boolean {
  return isShown({}, agent, run);
}

/**
 * Whether a run is one of this agent, and not of a deleted namesake, that the tools show. A run that was deleted is gone
 * at once without an archive; with one it stays visible, first in the cluster and then in the archive.
 */
export function isShown({ archive }: Pick<ScopeDeps, 'archive'>, agent: ApiAgent, run: ApiRun): boolean {
  if (run.deleting && archive === undefined) return false;
  return run.agent === agent.name && (run.agentUid === undefined || run.agentUid === agent.uid);
}

/** The run of an agent while it is in the cluster; from the cache, or by one live GET when the cache does not know it. */
export async function findRun(deps: ScopeDeps, agent: ApiAgent, runId: string): Promise<ApiRun | undefined> {
  const source = { cache: deps.caches.AgentRun, type: AgentRuns, project: projectApiRun };
  const run = DNS_LABEL.test(runId) ? await cachedOrLive(deps, source, agent.namespace, runId) : undefined;
  return run !== undefined && isRunOf(agent, run) ? run : undefined;
}

/** For {@link StartRunDeps.lastOfSession}: acceptance of the newest run of a session that the cache knows. */
export function lastOfSession(runs: Pick<Cache<ApiRun>, 'byIndex'>, namespace: string, sessionId: string) {
  let last: string | undefined;
  for (const run of runs.byIndex(BY_SESSION, sessionKey(namespace, sessionId))) {
    if (last === undefined || Date.parse(run.createdAt) > Date.parse(last)) last = run.createdAt;
  }
  return last;
}

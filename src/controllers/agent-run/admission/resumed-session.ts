/** Which session a run goes on with that names another one in spec.resume. */
import { acceptedAt } from '../../../api/names.js';
import { AgentRuns } from '../../../api/v1alpha1/agent-run.js';
import { orUndefined } from '../../../kube/errors.js';
import { projectControllerRun } from '../../../projections/agent-run.js';
import type { ControllerRun } from '../../../projections/agent-run.js';
import { awaitsSession, sessionIdOf } from '../../../run/session/key.js';
import { isTerminal } from '../../../run/status.js';
import type { RunDependencies } from '../dependencies.js';

export type ResumedSession =
  | { kind: 'session'; sessionId: string }
  /** That run goes on with another one itself, which is still to be found. */
  | { kind: 'later' }
  /** There is no such session for this run; `message` is for a person. */
  | { kind: 'invalid'; message: string };

/** Of a run for which {@link awaitsSession} holds. The cache may not have the other run yet: then the API server is asked. */
export async function resumedSession(
  { api, caches }: Pick<RunDependencies, 'api' | 'caches'>,
  run: ControllerRun,
  signal: AbortSignal,
): Promise<ResumedSession> {
  const { namespace = '' } = run.metadata;
  const name = run.spec.resume ?? '';
  const known = caches.runs.get(`${namespace}/${name}`);
  const live = known === undefined ? await orUndefined(api.get(AgentRuns, { namespace, name }, { signal })) : undefined;
  return sessionOf(run, known ?? (live === undefined ? undefined : projectControllerRun(live)));
}

function sessionOf(run: ControllerRun, other: ControllerRun | undefined): ResumedSession {
  const { namespace, name } = run.metadata;
  const { resume, agent } = run.spec;
  if (other === undefined) {
    const message = `spec.resume: there is no AgentRun ${resume} in namespace ${namespace}; finished runs are removed after a while.`;
    return { kind: 'invalid', message };
  }
  if (other.spec.agent !== agent) {
    const message = `spec.resume: AgentRun ${resume} is one of agent ${other.spec.agent}, and this one of agent ${agent}.`;
    return { kind: 'invalid', message };
  }
  if (!awaitsSession(other) || isTerminal(other)) return { kind: 'session', sessionId: sessionIdOf(other) };
  // The older of two goes first, so that none waits for ever in a circle.
  const order = (one: ControllerRun) => `${acceptedAt(one)} ${one.metadata.name}`;
  if (order(other) < order(run)) return { kind: 'later' };
  return { kind: 'invalid', message: `spec.resume: AgentRun ${resume} is not older than ${name}.` };
}

/** Which session a run belongs to: session ids are unique within a Box only, and a Box has one namespace. */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';

type Sessioned = Pick<AgentRun, 'metadata'> & { spec: Pick<AgentRun['spec'], 'sessionId'> };

/** sessionId of a run: `spec.sessionId`, else `s-` + the run's name (at most 65 characters): it opens a session. */
export function sessionIdOf({ metadata, spec }: Sessioned): string {
  return spec.sessionId ?? `s-${metadata.name}`;
}

/** The value of every index of runs by session: `<namespace>/<sessionId>`. */
export function sessionKey(namespace: string | undefined, sessionId: string): string {
  return `${namespace ?? ''}/${sessionId}`;
}

/** {@link sessionKey} of a run. */
export function sessionKeyOf(run: Sessioned): string {
  return sessionKey(run.metadata.namespace, sessionIdOf(run));
}

/** Which session a run belongs to: session ids are unique within a Box only, and a Box has one namespace. */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';

type Sessioned = Pick<AgentRun, 'metadata'> & {
  spec: Pick<AgentRun['spec'], 'sessionId'>;
  status?: { sessionId?: string | undefined };
};

/**
 * sessionId of a run: `spec.sessionId`, or the one that `spec.resume` led to, else `s-` + the run's name (at most 65
 * characters): it opens a session.
 */
export function sessionIdOf({ metadata, spec, status }: Sessioned): string {
  return spec.sessionId ?? status?.sessionId ?? `s-${metadata.name}`;
}

/** Whether the run is the first of its session. */
export function opensSession({ spec, status }: Omit<Sessioned, 'metadata'>): boolean {
  return spec.sessionId === undefined && status?.sessionId === undefined;
}

/** Whether nobody knows the session of the run yet: the controller looks for the run that `spec.resume` names. */
export function awaitsSession({
  spec,
  status,
}: {
  spec: Pick<AgentRun['spec'], 'resume'>;
  status?: { sessionId?: string | undefined };
}): boolean {
  return spec.resume !== undefined && status?.sessionId === undefined;
}

/** The value of every index of runs by session: `<namespace>/<sessionId>`. */
export function sessionKey(namespace: string | undefined, sessionId: string): string {
  return `${namespace ?? ''}/${sessionId}`;
}

/** {@link sessionKey} of a run. */
export function sessionKeyOf(run: Sessioned): string {
  return sessionKey(run.metadata.namespace, sessionIdOf(run));
}

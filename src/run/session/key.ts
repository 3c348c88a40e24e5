/** Which session a run belongs to, as one text: session ids are unique within a Box only, and a Box has one namespace. */
import { sessionIdOf } from '../../api/names.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';

/** `<namespace>/<sessionId>` of a session. */
export function sessionKey(namespace: string, sessionId: string): string {
  return `${namespace}/${sessionId}`;
}

/** {@link sessionKey} of the session that a run belongs to. */
export function sessionKeyOf(run: Pick<AgentRun, 'metadata' | 'spec'>): string {
  return sessionKey(run.metadata.namespace ?? '', sessionIdOf(run));
}

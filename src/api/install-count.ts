/**
 * The mark of an install that is committed and not yet in the count of its template. It stands on the first agent of the
 * install and comes with the commit itself, so that no crash comes between the two: the number of installs is
 * `status.installs` of the template and the marks that are not in it. The controller takes them over one by one.
 * The agents that exist cannot be counted instead: an install stays in the number when its agents are deleted.
 */
import { ANNOTATION_UNCOUNTED_INSTALL } from './labels.js';
import type { ObjectMeta } from './meta.js';
import { isSlug, workspaceOfNamespace } from './names.js';

export interface InstalledTemplate {
  namespace: string;
  name: string;
  uid: string;
}

/** The value of the annotation on the agent with this UID. */
export function uncountedInstall({ namespace, name, uid }: InstalledTemplate, agentUid: string): string {
  return `${namespace}/${name} ${uid} ${agentUid}`;
}

/**
 * The template that the agent is still to be counted for; undefined when there is none. The mark of a copy (restored from
 * a backup, say) names the agent that it was copied from and means nothing.
 */
export function uncountedInstallOf(meta: Pick<ObjectMeta, 'annotations' | 'uid'>): InstalledTemplate | undefined {
  const [ref = '', uid, agentUid] = meta.annotations?.[ANNOTATION_UNCOUNTED_INSTALL]?.split(' ') ?? [];
  const [namespace = '', name = ''] = ref.split('/');
  if (uid === undefined || agentUid === undefined || agentUid !== meta.uid) return undefined;
  return workspaceOfNamespace(namespace) !== undefined && isSlug(name) ? { namespace, name, uid } : undefined;
}

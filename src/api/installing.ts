/**
 * The mark of an agent that install_template has made and not yet committed (all agents or none).
 *
 * The first agent of an install carries its deadline; every other one names the first by name and UID as well. Removing the
 * mark of the first is the commit, one write for all of them: whoever reads one of the others asks the first. Until then no
 * tool shows an agent of the install, its URLs do not answer and its runs wait. The controller takes the marks of the others
 * off after the commit, and deletes what is not committed in time; the first leaves last, so that it can be asked.
 */
import { ANNOTATION_INSTALLING } from './labels.js';
import type { ObjectMeta } from './meta.js';

/** How long the writes of one install may take. */
export const INSTALL_DEADLINE_MS = 120_000;
/** An object that is made this long after its own deadline is a copy: far above what clocks differ by. */
const COPY_MS = 3_600_000;

export interface InstallMark {
  /** Milliseconds since the epoch: an install that is not committed by then is taken back. */
  until: number;
  /** The first agent of the install, in the same namespace; absent on the first itself. */
  first?: { name: string; uid: string };
}

/** The value of the annotation. */
export function installMark({ until, first }: InstallMark): string {
  const deadline = new Date(until).toISOString();
  return first === undefined ? deadline : `${deadline} ${first.name} ${first.uid}`;
}

/**
 * The mark of an agent; undefined when it has none. The mark of a copy (restored from a backup, say) means nothing: nobody
 * hides it or takes it away.
 */
export function installMarkOf(meta: Pick<ObjectMeta, 'annotations' | 'creationTimestamp'>): InstallMark | undefined {
  const [deadline = '', name, uid] = meta.annotations?.[ANNOTATION_INSTALLING]?.split(' ') ?? [];
  const until = Date.parse(deadline);
  if (Number.isNaN(until) || Date.parse(meta.creationTimestamp ?? '') > until + COPY_MS) return undefined;
  return name === undefined || uid === undefined ? { until } : { until, first: { name, uid } };
}

/** What is looked at of an agent. */
export interface InstallState {
  uid: string;
  install: InstallMark | undefined;
}

/**
 * Whether the agent is one that everybody may see. `first` finds the agent of that name in the same namespace. A first agent
 * that is gone was never committed: one that was stays until no other agent asks for it.
 */
export function isInstalled({ install }: InstallState, first: (name: string) => InstallState | undefined): boolean {
  if (install === undefined) return true;
  if (install.first === undefined) return false;
  const leader = first(install.first.name);
  return leader !== undefined && leader.uid === install.first.uid && leader.install === undefined;
}

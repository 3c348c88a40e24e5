/** What Kubernetes says about a Job or pod that does not come up: read from its events, and only when a deadline is near. */
import { Events } from '../../../kube/core-types.js';
import type { KubeEvent } from '../../../kube/core-types.js';
import { isForbidden } from '../../../kube/errors.js';
import type { KubeApi } from '../../../kube/types.js';

export interface Subject {
  namespace: string;
  uid: string;
}

/** Longer texts are cut: the message of a run is short. */
const MAX_TEXT = 400;

/** The message of the latest warning about the object; undefined when there is none, or events may not be read. One list. */
export async function latestWarning(
  api: Pick<KubeApi, 'list'>,
  { namespace, uid }: Subject,
  signal: AbortSignal,
): Promise<string | undefined> {
  const fieldSelector = `involvedObject.uid=${uid},type=Warning`;
  try {
    const { items } = await api.list(Events, { namespace, fieldSelector, signal });
    const latest = items.reduce<KubeEvent | undefined>(
      (a, b) => (a !== undefined && timeOf(a) > timeOf(b) ? a : b),
      undefined,
    );
    return latest === undefined ? undefined : `${latest.reason ?? 'Warning'}: ${cut(latest.message ?? '')}`;
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
}

function timeOf(event: KubeEvent): number {
  return Date.parse(event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? '') || 0;
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}

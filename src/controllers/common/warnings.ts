/** What Kubernetes says about a Job or pod that does not come up: read from its events, and only when a deadline is near. */
import { Events } from '../../kube/core-types.js';
import type { KubeEvent } from '../../kube/core-types.js';
import { isForbidden } from '../../kube/errors.js';
import type { KubeApi } from '../../kube/types.js';

export interface Subject {
  namespace: string;
  uid: string;
}

/** The kubelet says with it which of the `imagePullSecrets` are not there; it pulls without them all the same. */
export const PULL_SECRET_MISSING = 'FailedToRetrieveImagePullSecret';

/** Longer texts are cut: the message of a run is short. */
const MAX_TEXT = 400;

/** The message of the latest warning about the object; undefined when there is none, or events may not be read. One list. */
export function latestWarning(
  api: Pick<KubeApi, 'list'>,
  { namespace, uid }: Subject,
  signal: AbortSignal,
): Promise<string | undefined> {
  return latestOf(api, { namespace, fieldSelector: `involvedObject.uid=${uid},type=Warning` }, signal);
}

/** Which pull secrets a pod lacked (since a time), found by the start of its name: the pod may be gone. As {@link latestWarning}. */
export function missingPullSecrets(
  api: Pick<KubeApi, 'list'>,
  pod: { namespace: string; namePrefix: string; since?: number },
  signal: AbortSignal,
): Promise<string | undefined> {
  const fieldSelector = `involvedObject.kind=Pod,reason=${PULL_SECRET_MISSING}`;
  return latestOf(api, { ...pod, fieldSelector }, signal);
}

interface EventQuery {
  namespace: string;
  fieldSelector: string;
  namePrefix?: string;
  since?: number;
}

async function latestOf(
  api: Pick<KubeApi, 'list'>,
  { namespace, fieldSelector, namePrefix = '', since = 0 }: EventQuery,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const found = await api.list(Events, { namespace, fieldSelector, signal });
    const items = found.items.filter(
      (event) => (event.involvedObject?.name ?? '').startsWith(namePrefix) && timeOf(event) >= since,
    );
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

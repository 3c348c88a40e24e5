/**
 * OpenShift gives each service account a pull secret for the registry of the cluster, and an annotation that names it. Its
 * controller puts both back for ever, and its admission lets nobody else take the annotation away: so they stay.
 */
import type { ServiceAccount } from '../../kube/core-types.js';

/** The chart's admission policies name it as well. */
const ANNOTATION = 'openshift.io/internal-registry-pull-secret-ref';
/** More were never seen; a bound, so that nobody's list grows without end. */
const MOST_KEPT = 8;

/** What we want of the service account, with what the platform has put on it. */
export function withPlatformPullSecrets(desired: ServiceAccount, actual: ServiceAccount): ServiceAccount {
  const isOfPlatform = (name: string) => isPlatformSecret(desired.metadata.name, name);
  const ours = desired.imagePullSecrets ?? [];
  const theirs = (actual.imagePullSecrets ?? []).filter(
    ({ name }) => isOfPlatform(name) && !ours.some((our) => our.name === name),
  );
  const named = actual.metadata.annotations?.[ANNOTATION];
  const kept = named !== undefined && isOfPlatform(named) ? { [ANNOTATION]: named } : {};
  return {
    ...desired,
    metadata: { ...desired.metadata, annotations: { ...desired.metadata.annotations, ...kept } },
    imagePullSecrets: inOrderOf(actual, [...ours, ...theirs.slice(0, MOST_KEPT)]),
  };
}

function isPlatformSecret(account: string, name: string): boolean {
  const prefix = `${account}-dockercfg-`;
  return name.startsWith(prefix) && /^[a-z0-9]{1,16}$/.test(name.slice(prefix.length));
}

/** The order says nothing, so one that is there already is no reason to write. */
function inOrderOf(actual: ServiceAccount, wanted: readonly { name: string }[]): { name: string }[] {
  const there = (actual.imagePullSecrets ?? []).map(({ name }) => name);
  const position = ({ name }: { name: string }) => (there.includes(name) ? there.indexOf(name) : there.length);
  return [...wanted].sort((a, b) => position(a) - position(b));
}

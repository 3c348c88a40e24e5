/**
 * What only the English text of a message of Kubernetes tells: every such text that this code base depends on is here, and
 * the test beside it has a sample of each from every supported version. Where a code, reason or cause tells as much, that is
 * used instead (errors.ts).
 */

/**
 * An admission policy or webhook said no. It chooses the code itself: 422 is what a policy answers that names no reason, 500
 * what most webhooks answer for a failure of their own.
 */
export function saysDeniedByAdmission(message: string): boolean {
  return /\bdenied (the )?request\b/.test(message);
}

/** The quota of the namespace is used up. In answers, and in events about pods that could not be created. */
export function saysQuotaExceeded(message: string): boolean {
  return message.includes('exceeded quota');
}

/** The quota of a young namespace has not been counted yet: a moment later the same request is taken. */
export function saysQuotaNotCounted(message: string): boolean {
  return message.includes('status unknown for quota');
}

/**
 * A refusal by an API server that has not read all that it needs after its start: the rights of callers, or what an admission
 * plugin works with. Missing rights read the same.
 */
export function saysNotReadyOrNoRight(message: string): boolean {
  return message.includes('cannot create resource') || message.includes('not yet ready to handle request');
}

/** Something that the API server asked failed, such as a webhook that gave no answer: other requests may well succeed. */
export function saysInternalError(message: string): boolean {
  return message.includes('Internal error occurred: ');
}

/**
 * The scheduler names a volume, or the node that holds the volume, as what is in the way of a pod: pods without that volume may
 * still find room.
 */
export function saysVolumeInTheWay(unschedulable: string): boolean {
  return VOLUME_IN_THE_WAY.test(unschedulable);
}

const VOLUME_IN_THE_WAY =
  /persistent ?volume|volume node affinity|volume zone|volume count|pvc\(s\)|enough free storage|pod affinity rules/i;

/**
 * The scheduler found nodes for a pod, and too little of what every pod asks for: where this one has no room, one that asks for
 * as much has none.
 */
export function saysNoRoom(unschedulable: string): boolean {
  return (
    / (Insufficient (cpu|memory|ephemeral-storage)|Too many pods)\b/.test(unschedulable) &&
    !saysVolumeInTheWay(unschedulable) &&
    !unschedulable.includes('affinity')
  );
}

/** The Secret that hands a key to people: pure decisions and objects. */
import { randomBytes } from 'node:crypto';
import { API_KEY_PREFIX, API_KEY_VISIBLE_CHARACTERS, hashOfApiKey } from '../../api/api-key-validity.js';
import { LABEL_MANAGED_BY, MANAGED_BY } from '../../api/labels.js';
import { APIKeys } from '../../api/v1alpha1/api-key.js';
import type { APIKey } from '../../api/v1alpha1/api-key.js';
import type { Secret } from '../../kube/core-types.js';
import { controllerOwner, controllerReference } from '../../kube/owner-references.js';

/** Entry of the Secret with the key. */
export const SECRET_ENTRY = 'key';
const KEY_BYTES = 32;

export type RandomBytes = (size: number) => Uint8Array;

/** A new key: `bw_` and 256 random bits in base64url, 46 characters. */
export function newApiKey(random: RandomBytes = randomBytes): string {
  return API_KEY_PREFIX + Buffer.from(random(KEY_BYTES)).toString('base64url');
}

/** What to do with the Secret of a key that has no hash. */
export type IssueDecision =
  | { action: 'create' }
  | { action: 'replace'; existing: Secret }
  | { action: 'adopt'; key: string }
  /** A Secret of a backup: the key stays, the Secret becomes ours again. */
  | { action: 'take'; existing: Secret; key: string }
  | { action: 'refuse' };

/**
 * A key without a hash is not in force. It gets a new value, with one exception: a Secret that was made for this very
 * object (its UID) while the status never recorded any Secret is the work of a controller that died between its two
 * writes; that value is taken, so that whoever read the Secret already holds the right key. Somebody who removes the
 * hash leaves `secretName` behind, and so gets a new key. A Secret of a former object of this name gives a new key as well; one
 * that a backup brought back without an owner keeps the key in force.
 */
export function decideIssue(apiKey: APIKey, existing: Secret | undefined): IssueDecision {
  if (existing === undefined) return { action: 'create' };
  const owner = controllerOwner(existing);
  const key = keyOf(existing);
  // Of a backup: its owner, and the hash, stayed behind; the label says that we have made it.
  const isRestored = owner === undefined && existing.metadata.labels?.[LABEL_MANAGED_BY] === MANAGED_BY;
  if (isRestored && apiKey.status?.secretName === undefined && key !== undefined)
    return { action: 'take', existing, key };
  if (owner?.kind !== APIKeys.kind || owner.name !== apiKey.metadata.name) return { action: 'refuse' };
  const isUnrecorded = apiKey.status?.secretName === undefined && owner.uid === apiKey.metadata.uid;
  return isUnrecorded && key !== undefined ? { action: 'adopt', key } : { action: 'replace', existing };
}

function keyOf(secret: Secret): string | undefined {
  const key = Buffer.from(secret.data?.[SECRET_ENTRY] ?? '', 'base64').toString('utf8');
  return /^bw_[A-Za-z0-9_-]{43}$/.test(key) ? key : undefined;
}

/** The Secret next to the object, with the same name. */
export function desiredSecret(apiKey: APIKey, key: string): Secret {
  const { name, namespace } = apiKey.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      labels: { [LABEL_MANAGED_BY]: MANAGED_BY },
      ownerReferences: [controllerReference(APIKeys, apiKey)],
    },
    type: 'Opaque',
    data: { [SECRET_ENTRY]: Buffer.from(key, 'utf8').toString('base64') },
  };
}

/** What the status keeps of a key: never the key. */
export function recordOf(apiKey: APIKey, key: string): { hash: string; prefix: string; secretName: string } {
  return {
    hash: hashOfApiKey(key),
    prefix: key.slice(0, API_KEY_VISIBLE_CHARACTERS),
    secretName: apiKey.metadata.name,
  };
}

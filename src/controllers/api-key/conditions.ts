/** Conditions of an API key as a pure function of its spec, its hash and the time. */
import { isKeyExpired } from '../../api/api-key-validity.js';
import type { ConditionReason } from '../../api/condition-reasons.js';
import { setCondition } from '../../api/conditions.js';
import type { APIKey } from '../../api/v1alpha1/api-key.js';
import type { Condition } from '../../api/v1alpha1/common.js';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Revoked, Expired and Ready of a key that was issued. */
export function keyConditions(apiKey: APIKey, nowMs: number): Condition[] {
  const { revoked } = apiKey.spec;
  const expired = isKeyExpired(apiKey, nowMs);
  const states: [type: string, holds: boolean, reason: ConditionReason, message: string][] = [
    ['Revoked', revoked, revoked ? 'SpecRevoked' : 'InForce', revoked ? 'spec.revoked is true' : ''],
    ['Expired', expired, expired ? 'SpecExpiresAt' : 'InForce', expired ? expiryMessage(apiKey) : ''],
    readyState(revoked, expired),
  ];
  const { generation } = apiKey.metadata;
  const now = new Date(nowMs).toISOString();
  return states.reduce<Condition[]>(
    (conditions, [type, holds, reason, message]) =>
      setCondition(
        conditions,
        {
          type,
          status: holds ? 'True' : 'False',
          reason,
          message,
          ...(generation === undefined ? {} : { observedGeneration: generation }),
        },
        now,
      ),
    apiKey.status?.conditions ?? [],
  );
}

function readyState(revoked: boolean, expired: boolean): [string, boolean, ConditionReason, string] {
  if (revoked) return ['Ready', false, 'Revoked', 'the key was revoked; create another APIKey'];
  if (expired) return ['Ready', false, 'Expired', 'the key has expired; create another APIKey or move spec.expiresAt'];
  return ['Ready', true, 'Ready', ''];
}

function expiryMessage(apiKey: APIKey): string {
  const expiresAt = apiKey.spec.expiresAt ?? '';
  return Number.isNaN(Date.parse(expiresAt))
    ? 'spec.expiresAt is not a time such as 2030-01-31T00:00:00Z, so the key does not work'
    : 'spec.expiresAt has passed';
}

/** Milliseconds until the key expires, at most a day; undefined when it never does or already has. */
export function nextExpiryCheckMs(apiKey: APIKey, nowMs: number): number | undefined {
  const { expiresAt } = apiKey.spec;
  if (expiresAt === undefined || isKeyExpired(apiKey, nowMs)) return undefined;
  return Math.min(DAY_MS, Date.parse(expiresAt) - nowMs);
}

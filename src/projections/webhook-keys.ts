/** Projections of the Secrets with the keys of webhook senders. The watch is for one name, as RBAC allows no other. */
import { LABEL_CREDENTIAL } from '../api/credentials.js';
import { SIGNATURE_SCHEMES, WEBHOOK_KEYS_SECRET, webhookKeysIn } from '../api/webhook-keys.js';
import type { SignatureScheme } from '../api/webhook-keys.js';
import { Secrets } from '../kube/core-types.js';
import type { Secret } from '../kube/core-types.js';
import type { InformerOptions } from '../kube/types.js';

/** For api pods: the text of each entry; none of a Secret without the label. */
export type ApiWebhookKeys = ReadonlyMap<string, string>;

export function projectApiWebhookKeys(secret: Secret): ApiWebhookKeys {
  const entries = isLabelled(secret) ? Object.entries(secret.data ?? {}) : [];
  return new Map(entries.map(([name, value]) => [name, textOf(value)]));
}

const SELECTED = { type: Secrets, fieldSelector: `metadata.name=${WEBHOOK_KEYS_SECRET}` };

export const apiWebhookKeysInformer: InformerOptions<Secret, ApiWebhookKeys> = {
  ...SELECTED,
  project: projectApiWebhookKeys,
};

/** For the controller, which tells what is missing: which schemes find a key in which entry, and no value. */
export interface ControllerWebhookKeys {
  namespace: string;
  labelled: boolean;
  usable: ReadonlyMap<string, readonly SignatureScheme[]>;
}

export function projectControllerWebhookKeys(secret: Secret): ControllerWebhookKeys {
  const schemesOf = (value: string) =>
    SIGNATURE_SCHEMES.filter((scheme) => webhookKeysIn(textOf(value), scheme).length > 0);
  const entries = Object.entries(secret.data ?? {});
  return {
    namespace: secret.metadata.namespace ?? '',
    labelled: isLabelled(secret),
    usable: new Map(entries.map(([name, value]) => [name, schemesOf(value)])),
  };
}

export const controllerWebhookKeysInformer: InformerOptions<Secret, ControllerWebhookKeys> = {
  ...SELECTED,
  project: projectControllerWebhookKeys,
};

function isLabelled({ metadata }: Secret): boolean {
  return metadata.labels?.[LABEL_CREDENTIAL] === 'true';
}

function textOf(value: string): string {
  return Buffer.from(value, 'base64').toString('utf8');
}

/** The Secrets of the installation: their names, and how they hold keyring, CA and server certificate. */
import { createSecretKey } from 'node:crypto';
import { KEYRING_ENTRY, KEYRING_SECRET, KEY_BYTES, formatKeyring } from '../../api/keyring.js';
import { LABEL_MANAGED_BY, MANAGED_BY } from '../../api/labels.js';
import type { Secret } from '../../kube/core-types.js';
import { bundleOf, isCertificate, splitPem } from './certificates.js';
import type { Authority, KeyPair } from './certificates.js';

export const CA_SECRET = 'boxwright-ca';
export const GATEWAY_TLS_SECRET = 'boxwright-gateway-tls';

/** Id of the key in the first keyring. */
export const FIRST_KEY_ID = 'k1';

/** A keyring with one new key. It outlives an uninstall: without it every trigger URL would change. */
export function newKeyringSecret(namespace: string, random: (size: number) => Uint8Array): Secret {
  const keyring = { current: FIRST_KEY_ID, keys: new Map([[FIRST_KEY_ID, createSecretKey(random(KEY_BYTES))]]) };
  const secret = installationSecret(KEYRING_SECRET, namespace, { [KEYRING_ENTRY]: formatKeyring(keyring) });
  return {
    ...secret,
    metadata: { ...secret.metadata, annotations: { 'helm.sh/resource-policy': 'keep' } },
  };
}

/** The Secret of the CA: readable by the controller only. */
export function caSecret(namespace: string, authority: Authority): Secret {
  return installationSecret(CA_SECRET, namespace, {
    'ca.crt': authority.current.cert,
    'ca.key': authority.current.key,
    ...(authority.next === undefined ? {} : { 'next.crt': authority.next.cert, 'next.key': authority.next.key }),
    'previous.crt': authority.previous.map((cert) => `${cert.trim()}\n`).join(''),
  });
}

/** Reads what {@link caSecret} wrote; undefined when it is damaged, and then a new CA has to be made. */
export function parseCaSecret(secret: Secret): Authority | undefined {
  const current = pairOf(secret, 'ca');
  if (current === undefined) return undefined;
  const next = pairOf(secret, 'next');
  const previous = splitPem(entryOf(secret, 'previous.crt') ?? '').filter(isCertificate);
  return { current, previous, ...(next === undefined ? {} : { next }) };
}

/** The Secret with the gateway's server certificate. */
export function gatewayTlsSecret(namespace: string, authority: Authority, leaf: KeyPair): Secret {
  const data = { 'ca.crt': bundleOf(authority), 'tls.crt': leaf.cert, 'tls.key': leaf.key };
  return { ...installationSecret(GATEWAY_TLS_SECRET, namespace, data), type: 'kubernetes.io/tls' };
}

/** The text of an entry. */
export function entryOf(secret: Secret | undefined, entry: string): string | undefined {
  const value = secret?.data?.[entry];
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8');
}

function pairOf(secret: Secret, name: string): KeyPair | undefined {
  const cert = entryOf(secret, `${name}.crt`);
  const key = entryOf(secret, `${name}.key`);
  return cert === undefined || key === undefined || !isCertificate(cert) ? undefined : { cert, key };
}

function installationSecret(name: string, namespace: string, texts: Record<string, string>): Secret {
  const data = Object.entries(texts).map(([entry, text]) => [entry, Buffer.from(text, 'utf8').toString('base64')]);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, labels: { [LABEL_MANAGED_BY]: MANAGED_BY } },
    type: 'Opaque',
    data: Object.fromEntries(data) as Record<string, string>,
  };
}

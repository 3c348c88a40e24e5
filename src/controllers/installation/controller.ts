/**
 * What the installation itself needs, created at the first start and checked every hour: the keyring of trigger URLs,
 * our CA and the gateway's certificate. Three Secrets, read by name; no other Secret is touched here. A watch tells when one of
 * the certificates changes or goes.
 */
import { randomBytes } from 'node:crypto';
import { ANNOTATION_ROTATE } from '../../api/labels.js';
import { KEYRING_ENTRY, KEYRING_SECRET, parseKeyring } from '../../api/keyring.js';
import type { Keyring } from '../../api/keyring.js';
import { Secrets } from '../../kube/core-types.js';
import type { Secret } from '../../kube/core-types.js';
import { orUndefined } from '../../kube/errors.js';
import type { Cache, CacheChange, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import type { InstallationSecret } from '../../projections/installation-secret.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import { all } from '../common/controller-part.js';
import type { ControllerPart } from '../common/controller-part.js';
import {
  advanceAuthority,
  bundleOf,
  certificateEnd,
  createCa,
  decideAuthority,
  issueServerCertificate,
  needsServerCertificate,
} from './certificates.js';
import type { Authority } from './certificates.js';
import type { InstallationMetrics } from './metrics.js';
import {
  CA_SECRET,
  GATEWAY_TLS_SECRET,
  caSecret,
  entryOf,
  gatewayTlsSecret,
  newKeyringSecret,
  parseCaSecret,
} from './secrets.js';

export interface InstallationDependencies {
  api: Pick<KubeApi, 'get' | 'create' | 'replace'>;
  clock: Clock;
  log: Logger;
  /** Release namespace. */
  namespace: string;
  /** Name of the gateway's Service in it. */
  gatewayService: string;
  /** Tell that one of the certificates changed. */
  caches: Record<'certificates' | 'authority', Pick<Cache<InstallationSecret>, 'onChange'>>;
  metrics: InstallationMetrics;
  random?: (size: number) => Uint8Array;
}

/** Ids of the keyring's keys. */
export interface InstalledKeyIds {
  current: string;
  all: ReadonlySet<string>;
}

export interface Installation extends ControllerPart {
  /** PEM bundle of our CA for the Jobs of runs; undefined until this leader has completed its first reconcile. */
  caBundle(): string | undefined;
  /** Undefined until the keyring was read. */
  keyIds(): InstalledKeyIds | undefined;
  /** For the names of scheduled runs; undefined until it was read. */
  keyring(): Keyring | undefined;
}

const KEY = 'installation';
const CHECK_MS = 60 * 60 * 1000;

/** The names that the gateway's certificate carries; runners verify the first one, on pod addresses too. */
export function gatewayServerNames(service: string, namespace: string): string[] {
  return [`${service}.${namespace}.svc`, `${service}.${namespace}.svc.cluster.local`];
}

/** The controller of the installation; it has one key. */
export function createInstallationController(deps: InstallationDependencies): Installation {
  let caBundle: string | undefined;
  let keyring: Keyring | undefined;
  let keyIds: InstalledKeyIds | undefined;
  return {
    name: KEY,
    workers: 1,
    caBundle: () => caBundle,
    keyIds: () => keyIds,
    keyring: () => keyring,
    watch: (enqueue) => {
      enqueue(KEY);
      const { certificates, authority } = deps.caches;
      // A resync shows what is known: the check of every hour reads it again.
      const changed = ({ previous, current }: CacheChange<InstallationSecret>) => {
        if (previous?.version !== current?.version) enqueue(KEY);
      };
      return all([certificates, authority].map((cache) => cache.onChange(changed)));
    },
    async reconcile(_key, signal): Promise<ReconcileResult> {
      keyring = await ensureKeyring(deps, signal);
      keyIds = { current: keyring.current, all: new Set(keyring.keys.keys()) };
      const authority = await ensureAuthority(deps, signal);
      await ensureGatewayCertificate(deps, authority, signal);
      caBundle = bundleOf(authority);
      return { requeueAfterMs: CHECK_MS };
    },
  };
}

/** Created once. An existing keyring is never overwritten, even when it cannot be read: URLs in use depend on it. */
async function ensureKeyring(deps: InstallationDependencies, signal: AbortSignal): Promise<Keyring> {
  let secret = await readSecret(deps, KEYRING_SECRET, signal);
  if (secret === undefined) {
    const desired = newKeyringSecret(deps.namespace, deps.random ?? randomBytes);
    secret = await deps.api.create(Secrets, desired, { signal });
    deps.log.info({ secret: KEYRING_SECRET }, 'keyring made');
  }
  return parseKeyring(entryOf(secret, KEYRING_ENTRY) ?? '');
}

async function ensureAuthority(deps: InstallationDependencies, signal: AbortSignal): Promise<Authority> {
  const now = deps.clock.now();
  const secret = await readSecret(deps, CA_SECRET, signal);
  const authority = secret === undefined ? undefined : parseCaSecret(secret);
  if (authority === undefined) {
    const made: Authority = { current: await createCa(now), previous: [] };
    await writeSecret(deps, secret, caSecret(deps.namespace, made), signal);
    deps.log.info({ secret: CA_SECRET }, 'certificate authority made');
    return made;
  }
  const isAsked = isRotationAsked(secret);
  // One that is on its way is what was asked for.
  const step = isAsked && authority.next === undefined ? 'publish-next' : decideAuthority(authority, now);
  deps.metrics.expires(CA_SECRET, certificateEnd(authority.current.cert));
  if (step === 'none' && !isAsked) return authority;
  const advanced = await advanceAuthority(authority, step, now);
  await writeSecret(deps, secret, caSecret(deps.namespace, advanced), signal);
  deps.log.info({ secret: CA_SECRET, step }, 'certificate authority changed');
  return advanced;
}

async function ensureGatewayCertificate(
  deps: InstallationDependencies,
  authority: Authority,
  signal: AbortSignal,
): Promise<void> {
  const now = deps.clock.now();
  const names = gatewayServerNames(deps.gatewayService, deps.namespace);
  const secret = await readSecret(deps, GATEWAY_TLS_SECRET, signal);
  const [cert, key] = [entryOf(secret, 'tls.crt'), entryOf(secret, 'tls.key')];
  const isDue =
    key === undefined || isRotationAsked(secret) || (await needsServerCertificate(cert, authority.current, names, now));
  if (!isDue && cert !== undefined) deps.metrics.expires(GATEWAY_TLS_SECRET, certificateEnd(cert));
  if (!isDue && entryOf(secret, 'ca.crt') === bundleOf(authority)) return;
  const leaf =
    isDue || cert === undefined ? await issueServerCertificate(authority.current, names, now) : { cert, key };
  await writeSecret(deps, secret, gatewayTlsSecret(deps.namespace, authority, leaf), signal);
  deps.metrics.expires(GATEWAY_TLS_SECRET, certificateEnd(leaf.cert));
  deps.log.info({ secret: GATEWAY_TLS_SECRET, issued: isDue }, 'gateway certificate written');
}

async function readSecret(
  { api, namespace }: InstallationDependencies,
  name: string,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  return await orUndefined(api.get(Secrets, { namespace, name }, { signal }));
}

/** Creates, or replaces the version that was read: of two writers, the second starts again from what the first one wrote. */
async function writeSecret(
  { api }: InstallationDependencies,
  existing: Secret | undefined,
  desired: Secret,
  signal: AbortSignal,
): Promise<void> {
  if (existing === undefined) {
    await api.create(Secrets, desired, { signal });
    return;
  }
  const { [ANNOTATION_ROTATE]: _done, ...annotations } = existing.metadata.annotations ?? {};
  const metadata = { ...existing.metadata, annotations, ...desired.metadata };
  await api.replace(Secrets, { ...desired, metadata }, { signal });
}

/** Whoever administers the installation asks for another certificate; the annotation goes when it was done. */
function isRotationAsked(secret: Secret | undefined): boolean {
  return secret?.metadata.annotations?.[ANNOTATION_ROTATE] !== undefined;
}

/**
 * Keys of model providers: read by name for each Box when one of its runs calls, by the gateway alone. They are in
 * memory for seconds and never leave this process but towards the provider.
 */
import { LABEL_CREDENTIAL } from '../../api/credentials.js';
import { boxNamespace } from '../../api/names.js';
import type { Secret } from '../../kube/core-types.js';
import type { ObjectRef } from '../../kube/types.js';
import { GatewayError } from '../errors.js';
import type { CachedReads } from '../../kube/cached-reads.js';
import { PROVIDER_APIS, type ProviderName } from './providers.js';
import type { GatewayBox } from '../../projections/box.js';

/** Where a key stands. */
export interface KeySource {
  ref: Required<ObjectRef>;
  key: string;
  /** Whether the Secret must carry the label: the administrator of the installation chose its own one by name. */
  labelled: boolean;
}

/**
 * Where the key of a provider is for a Box: its own Secret, else that of the installation; undefined when there is neither.
 * The Secret of the installation does not serve a provider whose address the Box chose itself: whoever names an address may
 * not have the installation's key sent there.
 */
export function providerKeySource(
  box: Pick<GatewayBox, 'name' | 'credentialsSecret' | 'vendors'>,
  provider: ProviderName,
  installation: Required<ObjectRef> | undefined,
): KeySource | undefined {
  const key = PROVIDER_APIS[provider].secretKey;
  if (box.credentialsSecret !== undefined) {
    return { ref: { namespace: boxNamespace(box.name), name: box.credentialsSecret }, key, labelled: true };
  }
  const isElsewhere = box.vendors?.[provider] !== undefined;
  return installation === undefined || isElsewhere ? undefined : { ref: installation, key, labelled: false };
}

/** Where the key of the Box's own endpoint is; undefined when it wants none. */
export function endpointKeySource({ name, endpoint }: Pick<GatewayBox, 'name' | 'endpoint'>): KeySource | undefined {
  const secretRef = endpoint?.secretRef;
  if (secretRef === undefined) return undefined;
  return { ref: { namespace: boxNamespace(name), name: secretRef.name }, key: secretRef.key, labelled: true };
}

/** `key ANTHROPIC_API_KEY of Secret models in namespace bw-lab`. */
export function describeSource({ ref, key }: KeySource): string {
  return `key ${key} of Secret ${ref.name} in namespace ${ref.namespace}`;
}

export class Credentials {
  constructor(private readonly secrets: Pick<CachedReads<Secret>, 'get' | 'forget'>) {}

  /** The key itself. Rejects with ModelNotConfigured, which says what to create. */
  async read(source: KeySource): Promise<string> {
    const secret = await this.secrets.get(source.ref);
    const where = describeSource(source);
    if (secret === undefined) throw notConfigured(`there is no ${where}: create it`);
    if (source.labelled && secret.metadata.labels?.[LABEL_CREDENTIAL] !== 'true') {
      throw notConfigured(
        `Secret ${source.ref.name} in namespace ${source.ref.namespace} may not be read: label it ${LABEL_CREDENTIAL}=true`,
      );
    }
    const value = Buffer.from(secret.data?.[source.key] ?? '', 'base64')
      .toString('utf8')
      .trim();
    if (value === '') throw notConfigured(`there is no ${where}: add it`);
    // Anything else would break the header, or out of it.
    if (!/^[\x21-\x7e]+$/.test(value)) throw notConfigured(`${where} holds characters that no key has`);
    return value;
  }

  /** Changes whenever the key may have changed; undefined when there is no such Secret. */
  async version(source: KeySource): Promise<string | undefined> {
    return (await this.secrets.get(source.ref))?.metadata.resourceVersion;
  }

  /** The provider refused the key: the next call reads it again. */
  forget(source: KeySource): void {
    this.secrets.forget(source.ref);
  }
}

function notConfigured(message: string): GatewayError {
  return new GatewayError(400, message, { type: 'ModelNotConfigured' });
}

/** Which providers a Box can reach, in the words that tools show. */
import { LABEL_CREDENTIAL, PROVIDER_KEYS } from '../api/credentials.js';
import { boxNamespace } from '../api/names.js';
import type { Provider } from '../api/v1alpha1/common.js';

type ProviderName = Exclude<Provider, 'boxwright'>;

/** What of a Box decides it. */
export interface BoxModels {
  name: string;
  engine?: string | undefined;
  /** The OpenAI-compatible server of the Box. */
  endpoint?: { secretRef?: { name: string; key: string } | undefined } | undefined;
  /** Providers that the Box reaches at addresses of its own: the installation's key is not sent there. */
  vendors?: Partial<Record<ProviderName, object | undefined>> | undefined;
  /** Secret of the Box with the keys of providers; the installation's own serves Boxes that name none. */
  credentialsSecret?: string | undefined;
  /** Providers with a usable key, as the gateway saw them; undefined until it has looked. */
  availableProviders?: readonly Provider[] | undefined;
}

interface Lack {
  what: string;
  /** Undefined while it is not known that anything is missing. */
  fix?: string;
}

/** Why no run of that Box can use the provider; undefined when runs can. */
export function whyUnavailable(box: BoxModels, provider: Provider): string | undefined {
  const lack = lackOf(box, provider);
  if (lack?.fix === undefined) return lack?.what;
  return `${lack.what}: runs will end with the error ModelNotConfigured; list_models says what to do`;
}

/** Why the provider is not available, with the command that changes it, for list_models; null when it is available. */
export function howToConfigure(box: BoxModels, provider: Provider): string | null {
  const lack = lackOf(box, provider);
  if (lack === undefined) return null;
  return lack.fix === undefined ? lack.what : `${lack.what}; ${lack.fix}`;
}

function lackOf(box: BoxModels, provider: Provider): Lack | undefined {
  if (provider !== 'boxwright') return keyLack(box, provider, providerLack);
  const { engine, endpoint } = box;
  if (engine !== undefined) return undefined;
  if (endpoint === undefined) {
    return {
      what: `nothing stands behind provider boxwright in Box ${box.name}`,
      fix: `run: ${patchBox(box, { engine: 'scripted' })}, or set spec.endpoint of the Box`,
    };
  }
  const { secretRef } = endpoint;
  return secretRef === undefined ? undefined : keyLack(box, provider, () => secretLack(box, secretRef));
}

/** Only the gateway can say whether a key is there. */
function keyLack<P extends Provider>(box: BoxModels, provider: P, lack: (box: BoxModels, provider: P) => Lack) {
  if (box.availableProviders?.includes(provider) === true) return undefined;
  if (box.availableProviders !== undefined) return lack(box, provider);
  const what = `whether Box ${box.name} has a usable key for provider ${provider} is not known yet`;
  return { what: `${what}: the gateway tells within a minute, list_models shows it` };
}

function providerLack(box: BoxModels, provider: ProviderName): Lack {
  const key = PROVIDER_KEYS[provider];
  if (box.credentialsSecret !== undefined) return secretLack(box, { name: box.credentialsSecret, key });
  const own = ownSecret(box, key);
  if (box.vendors?.[provider] !== undefined) {
    const what = `Box ${box.name} reaches provider ${provider} at an address of its own, where the installation's key is not sent, and has no key itself`;
    return { what, fix: `run: ${own}` };
  }
  return {
    what: `neither Box ${box.name} nor the installation has a usable key for provider ${provider}`,
    fix: `add ${key} to the Secret of chart value gateway.modelCredentialsSecret, or give the Box a Secret of its own, which it then uses alone: ${own}`,
  };
}

/** A Secret that the Box names, but that is missing, has no label or lacks the key. */
function secretLack(box: BoxModels, { name, key }: { name: string; key: string }): Lack {
  const at = `${name} -n ${boxNamespace(box.name)}`;
  const change = { metadata: { labels: { [LABEL_CREDENTIAL]: 'true' } }, stringData: { [key]: 'YOUR-KEY' } };
  return {
    what: `Box ${box.name} names Secret ${name}, but namespace ${boxNamespace(box.name)} has none with a usable key ${key} and label ${LABEL_CREDENTIAL}=true`,
    fix: `run: kubectl patch secret ${at} --type merge -p '${JSON.stringify(change)}' (before it, where there is no such Secret: kubectl create secret generic ${at})`,
  };
}

function ownSecret(box: BoxModels, key: string): string {
  const namespace = boxNamespace(box.name);
  return [
    `kubectl create secret generic models -n ${namespace} --from-literal=${key}=YOUR-KEY`,
    `kubectl label secret models -n ${namespace} ${LABEL_CREDENTIAL}=true`,
    patchBox(box, { credentialsSecret: 'models' }),
  ].join(' && ');
}

function patchBox({ name }: BoxModels, spec: object): string {
  return `kubectl patch box ${name} --type merge -p '${JSON.stringify({ spec })}'`;
}

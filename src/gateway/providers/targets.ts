/** Where a run's model calls go: a provider, or the OpenAI-compatible endpoint of its Box; with the key and the price. */
import { boxNamespace } from '../../api/names.js';
import type { ObjectRef } from '../../kube/types.js';
import { outputLimitOf } from '../../models/catalog.js';
import { endpointPrice, priceOf, type Price, type PriceTable } from '../../run/usage/prices.js';
import {
  describeSource,
  endpointKeySource,
  providerKeySource,
  type Credentials,
  type KeySource,
} from './credentials.js';
import type { CatalogSource } from '../../models/catalog-source.js';
import { GatewayError } from '../errors.js';
import type { OptionalParameter } from '../../models/optional-parameters.js';
import { endpointProvider, isProvider, PROVIDER_APIS, type ProviderApi, type ProviderName } from './providers.js';
import type { GatewayBox } from '../../projections/box.js';

export interface Target {
  provider: string;
  api: Omit<ProviderApi, 'secretKey'>;
  /** Undefined = no key is sent. */
  key: { source: KeySource; value: string } | undefined;
  price: Price | undefined;
  /** What its models are asked to write at most; undefined = as much as they do by themselves. */
  maxOutputTokens: number | undefined;
  /** The installation says this limit: what the SDK knows of the model counts no more. */
  isLimitStated?: boolean;
  /** Parameters that the installation says the model does not take. */
  refuses?: readonly OptionalParameter[];
}

export interface TargetsOptions {
  credentials: Pick<Credentials, 'read'>;
  /** The prices in force. */
  prices: () => Promise<PriceTable>;
  /** What else the installation says of a model. */
  catalog: Pick<CatalogSource, 'outputLimitOf' | 'refusedBy'>;
  /** Secret with the provider keys of Boxes that have none of their own. */
  installationSecret: Required<ObjectRef> | undefined;
  /** Base URLs of the installation that differ from the providers' own; those of a Box win. */
  baseUrls: Readonly<Partial<Record<ProviderName, string>>>;
}

export class Targets {
  constructor(private readonly options: TargetsOptions) {}

  /** The provider of that name, or the endpoint of the Box. Rejects with ModelNotConfigured. */
  async of(provider: string, model: string, box: GatewayBox): Promise<Target> {
    if (isProvider(provider)) return this.#ofProvider(provider, model, box);
    const { endpoint } = box;
    if (provider !== 'boxwright' || endpoint === undefined) throw noSuchProvider(box, provider);
    const source = endpointKeySource(box);
    return {
      provider,
      api: endpointProvider(endpoint.baseUrl),
      key: source === undefined ? undefined : { source, value: await this.options.credentials.read(source) },
      price: endpointPrice(endpoint.prices),
      ...(await this.#statedOf(provider, model)),
    };
  }

  async #ofProvider(provider: ProviderName, model: string, box: GatewayBox): Promise<Target> {
    const api = PROVIDER_APIS[provider];
    const { installationSecret, baseUrls, credentials, prices } = this.options;
    const ownUrl = box.vendors?.[provider]?.baseUrl.replace(/(?<!\/)\/+$/, '');
    const source = providerKeySource(box, provider, installationSecret);
    if (source === undefined) throw noKey(box, provider, api.secretKey);
    return {
      provider,
      api: { ...api, baseUrl: ownUrl ?? baseUrls[provider] ?? api.baseUrl },
      key: { source, value: await credentials.read(source) },
      price: priceOf(await prices(), provider, model),
      ...(await this.#statedOf(provider, model, outputLimitOf(provider, model))),
    };
  }

  /** What the installation says of the model, with the limit that holds when it says none. */
  async #statedOf(provider: string, model: string, known?: number) {
    const { catalog } = this.options;
    const stated = await catalog.outputLimitOf(provider, model);
    const refuses = await catalog.refusedBy(provider, model);
    return { maxOutputTokens: stated ?? known, isLimitStated: stated !== undefined, refuses };
  }
}

/** For messages. */
export function keyOf(target: Target): string | undefined {
  return target.key === undefined ? undefined : describeSource(target.key.source);
}

function noKey(box: GatewayBox, provider: string, key: string): GatewayError {
  const what = `there is no key for provider ${provider} in Box ${box.name}`;
  const how = `create a Secret with key ${key} in namespace ${boxNamespace(box.name)}, label it boxwright.dev/credential=true and name it in spec.credentialsSecret of the Box`;
  return new GatewayError(400, `${what}: ${how}`, { type: 'ModelNotConfigured' });
}

/** Nothing stands behind the provider. */
export function noSuchProvider(box: GatewayBox, provider: string): GatewayError {
  const hint = `set spec.engine: scripted on Box ${box.name}, which needs no key, or spec.endpoint, and provider boxwright on the agent`;
  const what =
    provider === 'boxwright'
      ? `nothing stands behind provider boxwright in Box ${box.name}`
      : `provider ${provider} is not available in this installation`;
  return new GatewayError(400, `${what}: ${hint}`, { type: 'ModelNotConfigured' });
}

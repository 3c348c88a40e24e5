/** The models that agents of a Box can name, with prices and whether runs can use them. */
import type { Provider } from '../../api/v1alpha1/common.js';
import { howToConfigure } from '../../models/availability.js';
import type { CatalogSource, ListedModel } from '../../models/catalog-source.js';
import { defaultModelOf } from '../../models/catalog.js';
import type { Caller } from '../keys/key-check.js';
import { chooseBox } from '../scope.js';
import type { ScopeDeps } from '../scope.js';
import type { ApiBox } from '../../projections/box.js';

/** The record of list_models. */
export interface ModelRecord {
  provider: Provider;
  model: string;
  available: boolean;
  /** Why it is not available, with what to do. */
  reason: string | null;
  isDefault: boolean;
  /** Tokens; null when unknown. */
  contextWindow: number | null;
  /** Null when unknown, never 0. */
  inputUsdPerMillion: number | null;
  outputUsdPerMillion: number | null;
}

export interface ModelDeps extends Pick<ScopeDeps, 'caches'> {
  catalog: Pick<CatalogSource, 'models'>;
}

/** The result of list_models: what the Box itself provides first, then what the catalogue knows and the ConfigMap says. */
export async function listModels(
  deps: ModelDeps,
  caller: Caller,
  { spaceId, provider }: { spaceId?: string | undefined; provider?: Provider | undefined },
): Promise<{ models: ModelRecord[] }> {
  const box = chooseBox(deps, caller, spaceId);
  const known = await deps.catalog.models();
  const models = [ownModel(box), ...known.map((model) => providerModel(box, model))];
  return { models: provider === undefined ? models : models.filter((model) => model.provider === provider) };
}

/** The scripted engine costs nothing and says so; an endpoint costs what its Box says. */
function ownModel(box: ApiBox): ModelRecord {
  const { engine, endpoint } = box;
  const free = engine === 'scripted' ? 0 : null;
  return {
    provider: 'boxwright',
    model: engine ?? endpoint?.model ?? 'default',
    ...availability(box, 'boxwright'),
    isDefault: true,
    contextWindow: endpoint?.contextWindow ?? null,
    inputUsdPerMillion: endpoint?.prices === undefined ? free : Number(endpoint.prices.inputUsd),
    outputUsdPerMillion: endpoint?.prices === undefined ? free : Number(endpoint.prices.outputUsd),
  };
}

function providerModel(box: ApiBox, known: ListedModel): ModelRecord {
  const { provider, model, contextWindow, inputUsd, outputUsd } = known;
  return {
    provider,
    model,
    ...availability(box, provider),
    isDefault: defaultModelOf(provider) === model,
    contextWindow: contextWindow ?? null,
    inputUsdPerMillion: inputUsd ?? null,
    outputUsdPerMillion: outputUsd ?? null,
  };
}

function availability(box: ApiBox, provider: Provider): { available: boolean; reason: string | null } {
  const reason = howToConfigure(box, provider);
  return { available: reason === null, reason };
}

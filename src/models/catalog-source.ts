/** What is known of models: the built-in catalogue with what a ConfigMap says in front, prices and context windows. */
import { z } from 'zod';
import { parse } from 'yaml';
import type { ConfigMap } from '../kube/core-types.js';
import type { ObjectRef } from '../kube/types.js';
import { KNOWN_MODELS, type KnownModel } from './catalog.js';
import type { Logger } from '../observability/logger.js';
import type { CachedReads } from '../kube/cached-reads.js';
import { OPTIONAL_PARAMETERS, type OptionalParameter } from './optional-parameters.js';
import { PRICES, entryOf, type PriceTable } from '../run/usage/prices.js';

/** Key of the ConfigMap. */
const FILE = 'prices.yaml';

/** A place that was left empty is no price: it would read as 0. */
const Usd = z
  .union([z.number(), z.string().regex(/\S/)])
  .pipe(z.coerce.number<string | number>().min(0).max(1_000_000))
  .transform((usd) => Math.round(usd * 1_000_000));
const Window = z.int().min(1024).max(100_000_000);
const Output = z.int().min(256).max(100_000_000);
const Facts = {
  contextWindow: Window.optional(),
  maxOutputTokens: Output.optional(),
  refuses: z.array(z.enum(OPTIONAL_PARAMETERS)).max(OPTIONAL_PARAMETERS.length).optional(),
};
const File = z.record(
  z.string().regex(/^[a-z]+\/\S*$/),
  z.union([
    z.strictObject({
      input: Usd,
      output: Usd,
      cacheRead: Usd.optional(),
      cacheWrite: Usd.optional(),
      ...Facts,
    }),
    // Of a model whose price nobody knows, or stays that of the catalogue.
    z.strictObject(Facts).refine((facts) => Object.keys(facts).length > 0, { error: 'it says nothing' }),
  ]),
);

/** Tokens of models, by the names of a {@link PriceTable}. */
type TokenTable = Readonly<Record<string, number>>;

/** What a file says, or the catalogue with it in front. */
export interface ModelFacts {
  prices: PriceTable;
  /** Tokens that they can read, and write in one call. */
  windows: TokenTable;
  outputs: TokenTable;
  /** Parameters that they do not take. */
  refused: Readonly<Record<string, readonly OptionalParameter[]>>;
}

/** A model with what is known of it; tokens, and US dollars for a million of them. */
export interface ListedModel {
  provider: KnownModel['provider'];
  model: string;
  contextWindow: number | undefined;
  inputUsd: number | undefined;
  outputUsd: number | undefined;
}

/** In the order of the catalogue. */
const PROVIDERS = [...new Set(KNOWN_MODELS.map(({ provider }) => provider))];

const BUILT_IN: ModelFacts = {
  prices: PRICES,
  windows: Object.fromEntries(KNOWN_MODELS.map((known) => [`${known.provider}/${known.model}`, known.contextWindow])),
  outputs: {},
  refused: {},
};

/** The facts in a file. Throws what is wrong with it. */
export function factsIn(text: string): ModelFacts {
  const entries = Object.entries(File.parse(parse(text) ?? {}));
  const prices = entries.flatMap(([name, entry]) => {
    if (!('input' in entry)) return [];
    const { input: inputMicroUsd, output: outputMicroUsd, cacheRead, cacheWrite } = entry;
    return [[name, { inputMicroUsd, outputMicroUsd, cacheReadMicroUsd: cacheRead, cacheWriteMicroUsd: cacheWrite }]];
  });
  return {
    prices: Object.fromEntries(prices) as PriceTable,
    windows: column(entries, 'contextWindow'),
    outputs: column(entries, 'maxOutputTokens'),
    refused: column(entries, 'refuses'),
  };
}

/** What the entries say of one matter. */
function column<Name extends keyof typeof Facts>(
  entries: readonly (readonly [string, { [N in Name]?: z.output<(typeof Facts)[N]> }])[],
  name: Name,
): Record<string, NonNullable<z.output<(typeof Facts)[Name]>>> {
  const said = entries.flatMap(([model, { [name]: value }]) => (value === undefined ? [] : [[model, value]]));
  return Object.fromEntries(said) as Record<string, NonNullable<z.output<(typeof Facts)[Name]>>>;
}

export class CatalogSource {
  #seen: string | undefined;
  #facts: ModelFacts = BUILT_IN;

  constructor(
    private readonly maps: Pick<CachedReads<ConfigMap>, 'get'>,
    private readonly ref: Required<ObjectRef>,
    private readonly log: Pick<Logger, 'warn' | 'info'>,
  ) {}

  /** The prices in force. Never rejects. */
  async prices(): Promise<PriceTable> {
    return (await this.#read()).prices;
  }

  /** Tokens that a model can read, where that is known. Never rejects. */
  async contextWindowOf(provider: string, model: string): Promise<number | undefined> {
    return entryOf((await this.#read()).windows, provider, model);
  }

  /** The output limit that the ConfigMap gives a model. Never rejects. */
  async outputLimitOf(provider: string, model: string): Promise<number | undefined> {
    return entryOf((await this.#read()).outputs, provider, model);
  }

  /** Parameters that a model does not take, by the ConfigMap. Never rejects. */
  async refusedBy(provider: string, model: string): Promise<readonly OptionalParameter[]> {
    return entryOf((await this.#read()).refused, provider, model) ?? [];
  }

  /** Every model that the catalogue or the ConfigMap names whole, by provider, the default of each first. Never rejects. */
  async models(): Promise<ListedModel[]> {
    const { prices, windows, outputs, refused } = await this.#read();
    const named = [prices, windows, outputs, refused].flatMap((table) => Object.keys(table));
    return PROVIDERS.flatMap((provider) => {
      const own = named.filter((name) => name.startsWith(`${provider}/`) && !/[*/]$/.test(name));
      const names = KNOWN_MODELS.filter((known) => known.provider === provider).map(({ model }) => model);
      return [...new Set([...names, ...own.map((name) => name.slice(provider.length + 1))])].map((model) => {
        const price = entryOf(prices, provider, model);
        return {
          provider,
          model,
          contextWindow: entryOf(windows, provider, model),
          inputUsd: price === undefined ? undefined : price.inputMicroUsd / 1_000_000,
          outputUsd: price === undefined ? undefined : price.outputMicroUsd / 1_000_000,
        };
      });
    });
  }

  /** A ConfigMap that cannot be read or is wrong leaves everything as it was. */
  async #read(): Promise<ModelFacts> {
    try {
      const map = await this.maps.get(this.ref);
      this.#use(map?.data?.[FILE] ?? '');
    } catch (err) {
      this.log.warn({ err, configMap: this.ref.name }, 'the catalogue of models cannot be read; the former one stays');
    }
    return this.#facts;
  }

  #use(text: string): void {
    if (text === this.#seen) return;
    this.#seen = text;
    const { prices, windows, outputs, refused } = factsIn(text);
    this.#facts = { prices: { ...PRICES, ...prices }, windows: { ...BUILT_IN.windows, ...windows }, outputs, refused };
    const models = new Set([prices, windows, outputs, refused].flatMap((table) => Object.keys(table))).size;
    this.log.info({ configMap: this.ref.name, models }, 'catalogue of models in force');
  }
}

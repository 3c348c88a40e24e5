/** What is known of models: the built-in catalogue with what a ConfigMap says in front, prices and context windows. */
import { z } from 'zod';
import { parse } from 'yaml';
import type { ConfigMap } from '../kube/core-types.js';
import type { ObjectRef } from '../kube/types.js';
import { KNOWN_MODELS } from '../models/catalog.js';
import type { Logger } from '../observability/logger.js';
import type { CachedReads } from './cached-reads.js';
import { PRICES, entryOf, type PriceTable } from '../run/usage/prices.js';

/** Key of the ConfigMap. */
const FILE = 'prices.yaml';

/** A place that was left empty is no price: it would read as 0. */
const Usd = z
  .union([z.number(), z.string().regex(/\S/)])
  .pipe(z.coerce.number<string | number>().min(0).max(1_000_000))
  .transform((usd) => Math.round(usd * 1_000_000));
const Window = z.int().min(1024).max(100_000_000);
const File = z.record(
  z.string().regex(/^[a-z]+\/\S*$/),
  z.union([
    z.strictObject({
      input: Usd,
      output: Usd,
      cacheRead: Usd.optional(),
      cacheWrite: Usd.optional(),
      contextWindow: Window.optional(),
    }),
    // Of a model whose price nobody knows, or stays that of the catalogue.
    z.strictObject({ contextWindow: Window }),
  ]),
);

/** Tokens that models can read, by the names of a {@link PriceTable}. */
type WindowTable = Readonly<Record<string, number>>;

/** What a file says, or the catalogue with it in front. */
export interface ModelFacts {
  prices: PriceTable;
  windows: WindowTable;
}

const BUILT_IN: ModelFacts = {
  prices: PRICES,
  windows: Object.fromEntries(KNOWN_MODELS.map((known) => [`${known.provider}/${known.model}`, known.contextWindow])),
};

/** The facts in a file. Throws what is wrong with it. */
export function factsIn(text: string): ModelFacts {
  const entries = Object.entries(File.parse(parse(text) ?? {}));
  const prices = entries.flatMap(([name, entry]) => {
    if (!('input' in entry)) return [];
    const { input: inputMicroUsd, output: outputMicroUsd, cacheRead, cacheWrite } = entry;
    return [[name, { inputMicroUsd, outputMicroUsd, cacheReadMicroUsd: cacheRead, cacheWriteMicroUsd: cacheWrite }]];
  });
  const windows = entries.flatMap(([name, { contextWindow }]) =>
    contextWindow === undefined ? [] : [[name, contextWindow]],
  );
  return { prices: Object.fromEntries(prices) as PriceTable, windows: Object.fromEntries(windows) as WindowTable };
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
    const { prices, windows } = factsIn(text);
    this.#facts = { prices: { ...PRICES, ...prices }, windows: { ...BUILT_IN.windows, ...windows } };
    const models = new Set([...Object.keys(prices), ...Object.keys(windows)]).size;
    this.log.info({ configMap: this.ref.name, models }, 'catalogue of models in force');
  }
}

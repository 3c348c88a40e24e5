/** Prices of models. A model that is not in the table has no known price: its runs show no cost, never 0. */
import { parseMicroUsd } from './money.js';
import { MAX_CALL_TOKENS, withinCounts } from './saturating.js';
import { isDatedName, KNOWN_MODELS } from '../../models/catalog.js';
import type { KnownModel } from '../../models/catalog.js';

/** Whole millionths of a US dollar for a million tokens. */
export interface Price {
  inputMicroUsd: number;
  outputMicroUsd: number;
  /** Of input that the vendor had cached, and of input that it puts into its cache; as other input when absent. */
  cacheReadMicroUsd?: number | undefined;
  cacheWriteMicroUsd?: number | undefined;
}

/** Tokens of one call. The cached ones are part of the input. */
export interface TokenCounts {
  inputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  outputTokens: number;
}

/**
 * `<provider or engine>/<model>` -> price, for the model of that name and its dated versions. A name that ends with `*`
 * or `/` stands for all that begin so; the longest that fits counts.
 */
export type PriceTable = Readonly<Record<string, Price>>;

/** The scripted engine costs nothing, and says so; the vendors' models have the prices of the catalogue. */
export const PRICES: PriceTable = {
  'scripted/': { inputMicroUsd: 0, outputMicroUsd: 0 },
  ...Object.fromEntries(KNOWN_MODELS.flatMap(pricesIn)),
};

/** None for a model whose price is not known. */
function pricesIn(known: KnownModel): [name: string, Price][] {
  const { provider, model, inputUsd, outputUsd, cacheReadUsd, cacheWriteUsd } = known;
  if (inputUsd === undefined || outputUsd === undefined) return [];
  const price = {
    inputMicroUsd: micro(inputUsd),
    outputMicroUsd: micro(outputUsd),
    cacheReadMicroUsd: cacheReadUsd === undefined ? undefined : micro(cacheReadUsd),
    cacheWriteMicroUsd: cacheWriteUsd === undefined ? undefined : micro(cacheWriteUsd),
  };
  return [[`${provider}/${model}`, price]];
}

function micro(usd: number): number {
  return Math.round(usd * 1_000_000);
}

/** The price of a model, or undefined when it is unknown. */
export function priceOf(table: PriceTable, engine: string, model: string): Price | undefined {
  return entryOf(table, engine, model);
}

/** What a table says of a model, by the rule of {@link PriceTable}. */
export function entryOf<E>(table: Readonly<Record<string, E>>, engine: string, model: string): E | undefined {
  const wanted = `${engine}/${model}`;
  const best = Object.keys(table)
    .filter((name) => fits(name, wanted))
    .sort((a, b) => b.length - a.length)[0];
  return best === undefined ? undefined : table[best];
}

function fits(name: string, wanted: string): boolean {
  if (name.endsWith('/')) return wanted.startsWith(name);
  if (name.endsWith('*')) return wanted.startsWith(name.slice(0, -1));
  return name === wanted || isDatedName(name, wanted);
}

/** What one call can have used at all: a model, or whoever plays one, may say any number. */
export function believableCounts(counts: TokenCounts): TokenCounts {
  const believed = (tokens: number) => Math.min(MAX_CALL_TOKENS, withinCounts(tokens));
  return {
    inputTokens: believed(counts.inputTokens),
    cacheReadTokens: believed(counts.cacheReadTokens),
    cacheWriteTokens: believed(counts.cacheWriteTokens),
    outputTokens: believed(counts.outputTokens),
  };
}

/** Cost of one call in whole micro-USD, rounded up; undefined when the price is. */
export function costOf(price: Price | undefined, counts: TokenCounts): number | undefined {
  if (price === undefined) return undefined;
  const cached = Math.min(counts.inputTokens, counts.cacheReadTokens);
  const written = Math.min(counts.inputTokens - cached, counts.cacheWriteTokens);
  const cost =
    price.inputMicroUsd * (counts.inputTokens - cached - written) +
    (price.cacheReadMicroUsd ?? price.inputMicroUsd) * cached +
    (price.cacheWriteMicroUsd ?? price.inputMicroUsd) * written +
    price.outputMicroUsd * counts.outputTokens;
  return withinCounts(cost / 1_000_000);
}

/** The price that a Box gives its endpoint, in US dollars for a million tokens. */
export function endpointPrice(prices: { inputUsd: string; outputUsd: string } | undefined): Price | undefined {
  if (prices === undefined) return undefined;
  return {
    inputMicroUsd: parseMicroUsd(prices.inputUsd) ?? 0,
    outputMicroUsd: parseMicroUsd(prices.outputUsd) ?? 0,
  };
}

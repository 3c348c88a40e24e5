/** Prices of models. A model that is not in the table has no known price: its runs show no cost, never 0 (DESIGN 5). */
import { KNOWN_MODELS } from '../models/catalog.js';
import type { KnownModel } from '../models/catalog.js';

/** Whole millionths of a US dollar for a million tokens. */
export interface Price {
  inputMicroUsd: number;
  outputMicroUsd: number;
}

/** `<provider or engine>/<beginning of the model's name>` -> price; the longest match counts. */
export type PriceTable = Readonly<Record<string, Price>>;

/** The scripted engine costs nothing, and says so; the vendors' models have the prices of the catalogue. */
export const PRICES: PriceTable = {
  'scripted/': { inputMicroUsd: 0, outputMicroUsd: 0 },
  ...Object.fromEntries(KNOWN_MODELS.map((known) => [`${known.provider}/${known.model}`, priceIn(known)])),
};

function priceIn({ inputUsd, outputUsd }: KnownModel): Price {
  return { inputMicroUsd: Math.round(inputUsd * 1_000_000), outputMicroUsd: Math.round(outputUsd * 1_000_000) };
}

/** The price of a model, or undefined when it is unknown. */
export function priceOf(table: PriceTable, engine: string, model: string): Price | undefined {
  const wanted = `${engine}/${model}`;
  const best = Object.keys(table)
    .filter((prefix) => wanted.startsWith(prefix))
    .sort((a, b) => b.length - a.length)[0];
  return best === undefined ? undefined : table[best];
}

/** Cost of one call in whole micro-USD, rounded up; undefined when the price is. */
export function costOf(price: Price | undefined, inputTokens: number, outputTokens: number): number | undefined {
  if (price === undefined) return undefined;
  return Math.ceil((price.inputMicroUsd * inputTokens + price.outputMicroUsd * outputTokens) / 1_000_000);
}

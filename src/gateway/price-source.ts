/** The prices in force: the built-in table with those of a ConfigMap in front. */
import { z } from 'zod';
import { parse } from 'yaml';
import type { ConfigMap } from '../kube/core-types.js';
import type { ObjectRef } from '../kube/types.js';
import type { Logger } from '../observability/logger.js';
import type { CachedReads } from './cached-reads.js';
import { PRICES, type PriceTable } from '../run/usage/prices.js';

/** Key of the ConfigMap. */
const FILE = 'prices.yaml';

/** A place that was left empty is no price: it would read as 0. */
const Usd = z
  .union([z.number(), z.string().regex(/\S/)])
  .pipe(z.coerce.number<string | number>().min(0).max(1_000_000))
  .transform((usd) => Math.round(usd * 1_000_000));
const File = z.record(
  z.string().regex(/^[a-z]+\/\S*$/),
  z
    .strictObject({ input: Usd, output: Usd, cacheRead: Usd.optional(), cacheWrite: Usd.optional() })
    .transform(({ input, output, cacheRead, cacheWrite }) => ({
      inputMicroUsd: input,
      outputMicroUsd: output,
      cacheReadMicroUsd: cacheRead,
      cacheWriteMicroUsd: cacheWrite,
    })),
);

/** The table of a file. Throws what is wrong with it. */
export function pricesIn(text: string): PriceTable {
  return File.parse(parse(text) ?? {});
}

export class PriceSource {
  #seen: string | undefined;
  #table: PriceTable = PRICES;

  constructor(
    private readonly maps: Pick<CachedReads<ConfigMap>, 'get'>,
    private readonly ref: Required<ObjectRef>,
    private readonly log: Pick<Logger, 'warn' | 'info'>,
  ) {}

  /** Never rejects: a ConfigMap that cannot be read or is wrong leaves the prices as they were. */
  async table(): Promise<PriceTable> {
    try {
      const map = await this.maps.get(this.ref);
      this.#use(map?.data?.[FILE] ?? '');
    } catch (err) {
      this.log.warn({ err, configMap: this.ref.name }, 'the prices of models cannot be read; the former ones stay');
    }
    return this.#table;
  }

  #use(text: string): void {
    if (text === this.#seen) return;
    this.#seen = text;
    const own = pricesIn(text);
    this.#table = { ...PRICES, ...own };
    this.log.info({ configMap: this.ref.name, models: Object.keys(own).length }, 'prices of models in force');
  }
}

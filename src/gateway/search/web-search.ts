/** web_search: the gateway asks the search engine of the operator with its key; the run gets text, and never the key. */
import type { BodyBudget } from '../../net/body-budget.js';
import { readText } from '../../net/capped-body.js';
import type { GatewayToolInput } from '../../protocol/gateway-tools.js';
import type { ToolAnswer } from '../../protocol/run.js';
import type { Clock } from '../../runtime/clock.js';
import { timeoutSignal } from '../../runtime/timeout-signal.js';
import { GatewayError } from '../errors.js';
import type { GatewayMetrics } from '../metrics.js';
import type { GatewayBox } from '../../projections/box.js';
import type { Credentials } from '../providers/credentials.js';
import { ProviderUnreachable, type ProviderClient } from '../providers/provider-client.js';
import type { ServedRun } from '../runs/served-runs.js';
import { answer, ToolRefusal, type ToolContext } from '../tools/tool-context.js';
import type { Hit, SearchQuery } from './engines.js';
import { textOfHits } from './hit-text.js';
import { searchOf, type InstallationSearch, type SearchTarget } from './targets.js';

/** One search with all its tries, and within it how long it is tried again. */
const SEARCH_MS = 20_000;
const TRY_MS = 10_000;
const MAX_ANSWER_BYTES = 2 * 1024 * 1024;
const DEFAULT_HITS = 8;

export interface WebSearchOptions {
  clock: Clock;
  client: Pick<ProviderClient, 'sendPatiently'>;
  credentials: Pick<Credentials, 'read' | 'forget'>;
  installation: InstallationSearch;
  /** The memory budget of all bodies of the process. */
  bodies: BodyBudget;
  metrics: Pick<GatewayMetrics, 'searched'>;
}

export class WebSearch {
  readonly #options: WebSearchOptions;
  /** Searches of each run that this pod serves. */
  readonly #searches = new WeakMap<ServedRun, number>();

  constructor(options: WebSearchOptions) {
    this.#options = options;
  }

  /** Whether runs of the Box have the tool. */
  isThereFor(box: GatewayBox): boolean {
    return searchOf(box, this.#options.installation) !== undefined;
  }

  async search(input: GatewayToolInput<'web_search'>, { box, served }: ToolContext): Promise<ToolAnswer> {
    const target = searchOf(box, this.#options.installation);
    if (target === undefined) throw new ToolRefusal('this agent has no web search');
    const count = this.#searches.get(served) ?? 0;
    if (count >= target.searches) {
      throw new ToolRefusal(`this run has used all ${target.searches} searches of its limit: work with what you have`);
    }
    const key = await this.#keyOf(target);
    this.#searches.set(served, count + 1);
    const query = { query: input.query, limit: input.limit ?? DEFAULT_HITS };
    try {
      const hits = await this.#ask(target, query, key);
      this.#options.metrics.searched(target.name, 'answered');
      return answer({ results: textOfHits(hits, query.limit) });
    } catch (error) {
      this.#options.metrics.searched(target.name, error instanceof ToolRefusal ? 'refused' : 'failed');
      throw error instanceof ToolRefusal ? error : unanswered(target, error);
    }
  }

  async #keyOf({ source }: SearchTarget): Promise<string | undefined> {
    if (source === undefined) return undefined;
    try {
      return await this.#options.credentials.read(source);
    } catch (error) {
      if (error instanceof GatewayError) throw new ToolRefusal(`web search is not set up: ${error.message}`);
      throw error;
    }
  }

  async #ask(target: SearchTarget, query: SearchQuery, key: string | undefined): Promise<Hit[]> {
    const { clock, client, bodies } = this.#options;
    const bound = timeoutSignal(clock, SEARCH_MS);
    try {
      const request = { ...target.engine.request(target.baseUrl, query, key), signal: bound.signal };
      const { status, body } = await client.sendPatiently(request, clock.monotonic() + TRY_MS);
      const text = await readText(body, MAX_ANSWER_BYTES, { all: bodies, address: target.baseUrl });
      if (status !== 200) throw this.#refused(target, status);
      const hits = target.engine.hitsIn(parsed(text));
      if (hits === undefined) throw new Error('this is no answer of a search');
      return hits;
    } finally {
      bound.dispose();
    }
  }

  /** What the engine says itself stays here: it may repeat what it was sent. */
  #refused({ name, engine, source }: SearchTarget, status: number): ToolRefusal {
    if ([401, 403].includes(status) && source !== undefined) this.#options.credentials.forget(source);
    return new ToolRefusal(
      `${engine.title} refused the search (HTTP ${status}): ${MEANING[name]?.[status] ?? meaningOf(status)}`,
    );
  }
}

const MEANING: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  searxng: { 403: 'the operator must allow the format json in its settings' },
  // Its plans: searches of the month, and the limit of pay as you go.
  tavily: { 432: 'the searches of its plan are used up', 433: 'the searches of its plan are used up' },
  brave: { 422: 'it does not take this query, or its key' },
};

function meaningOf(status: number): string {
  if (status === 401 || status === 403) return 'an operator must look at its key';
  if (status === 402 || status === 429) return 'no more searches for now: go on without, or try again later';
  return status >= 500 ? 'it does not work now: go on without, or try again later' : 'it does not take this query';
}

function parsed(text: string | undefined): unknown {
  return JSON.parse(text ?? '');
}

function unanswered({ engine }: SearchTarget, error: unknown): ToolRefusal {
  const why = error instanceof ProviderUnreachable ? 'gave no answer' : 'gave an answer that cannot be read';
  return new ToolRefusal(`${engine.title} ${why}: go on without, or try again later`);
}

/**
 * Keeps a run within what it was granted: before each model call there must be room for the most that it
 * can use. Near the end of the grant it asks the controller for more, and waits for the answer.
 * See docs/architecture.md#budgets.
 */
import { formatMicroUsd, parseMicroUsd } from '../../run/usage/money.js';
import { sumOf } from '../../run/usage/saturating.js';
import type { AgentRun, RunBudget, RunUsage } from '../../api/v1alpha1/agent-run.js';
import { sleep, type Clock } from '../../runtime/clock.js';
import { GatewayError, runEnded } from '../errors.js';
import type { Price } from '../../run/usage/prices.js';
import type { RunStore } from '../runs/run-store.js';
import { workOf, type ServedRun } from '../runs/served-runs.js';

/** Longest wait for the controller's answer. */
const ANSWER_MS = 30_000;
const LOOK_MS = 250;

/** What a call may use at most. */
export interface Ask {
  /** Estimated. */
  inputTokens: number;
  /** What the call should be able to write: for less room than this, more is asked for. */
  outputTokens: number;
  /** What it may write when there is room. */
  mostOutputTokens: number;
  /** With less it is not worth calling. */
  leastOutputTokens: number;
  price: Price | undefined;
}

export interface RunBudgetsOptions {
  clock: Clock;
  store: Pick<RunStore, 'find' | 'update'>;
}

export class RunBudgets {
  constructor(private readonly options: RunBudgetsOptions) {}

  /**
   * The most output tokens that the call may write; undefined when no budget limits the run. Rejects with ModelUnpriced or
   * BudgetExhausted.
   */
  async admit(served: ServedRun, ask: Ask, signal: AbortSignal): Promise<number | undefined> {
    const budget = await this.#budgetOf(served);
    if (budget === undefined) return undefined;
    expectPrice(budget, served.usage, ask.price);
    const room = served.returning === true ? 0 : roomFor(budget, served.usage, ask);
    if (room >= ask.outputTokens) return Math.min(room, ask.mostOutputTokens);
    const answered = await this.#askForMore(served, wishOf(budget, served.usage, ask), signal);
    const found = roomFor(answered, served.usage, ask);
    if (found >= ask.leastOutputTokens) return Math.min(found, ask.mostOutputTokens);
    throw exhausted(answered, served.usage);
  }

  /**
   * Returns what the run was granted and did not use, so that an agent that it calls can have it; the next model call
   * asks anew. Nothing happens while a model call is in flight.
   */
  async returnUnused(served: ServedRun): Promise<void> {
    const budget = await this.#budgetOf(served);
    if (budget === undefined || served.call !== undefined) return;
    // A model call that began now would count with what is given back.
    const busy = { open: undefined, abort: () => undefined };
    served.call = busy;
    served.returning = true;
    try {
      await this.options.store.update(served.ref, (run) => {
        const work = workOf(served);
        const granted = run.status?.budget === undefined ? undefined : leastOf(run.status.budget, work.usage);
        return granted === undefined ? undefined : { type: 'budget-returned', work, granted };
      });
      delete served.returning;
    } finally {
      if (served.call === busy) delete served.call;
    }
  }

  async #budgetOf(served: ServedRun): Promise<RunBudget | undefined> {
    return (await this.options.store.find(served.ref)).status?.budget;
  }

  async #askForMore(served: ServedRun, wanted: RunBudget['granted'], signal: AbortSignal): Promise<RunBudget> {
    const { clock, store } = this.options;
    const giveUpAt = clock.monotonic() + ANSWER_MS;
    const { run: asked } = await store.update(served.ref, () => ({
      type: 'budget-asked',
      work: workOf(served),
      wanted,
    }));
    // This write was decided on the newest version: a return that is not in it never comes.
    if (asked.status?.claim?.epoch === served.fencingToken) delete served.returning;
    let budget = budgetIn(asked);
    while (!isAnswered(budget, wanted) && clock.monotonic() < giveUpAt) {
      await sleep(clock, LOOK_MS, signal);
      if (signal.aborted) throw runEnded('the call was cut');
      budget = (await this.#budgetOf(served)) ?? budget;
    }
    return budget;
  }
}

function budgetIn(run: AgentRun): RunBudget {
  if (run.status?.budget === undefined) throw runEnded(run.status?.phase);
  return run.status.budget;
}

function isAnswered({ answered }: RunBudget, wanted: RunBudget['granted']): boolean {
  return answered !== undefined && answered.tokens === wanted.tokens && answered.usd === wanted.usd;
}

/** What the run has used, in the dimensions that are limited; undefined when it has used all that it was granted. */
function leastOf({ granted }: RunBudget, usage: RunUsage): RunBudget['granted'] | undefined {
  const [used, limit] = [parseMicroUsd(usage.costUsd) ?? 0, parseMicroUsd(granted.usd)];
  const tokens = granted.tokens === undefined ? undefined : Math.min(granted.tokens, usage.totalTokens);
  const usd = limit === undefined ? undefined : formatMicroUsd(Math.min(limit, used));
  if (tokens === granted.tokens && usd === granted.usd) return undefined;
  return { ...(tokens === undefined ? {} : { tokens }), ...(usd === undefined ? {} : { usd }) };
}

/** In micro-USD for a million tokens: what input costs at most. */
function inputPrice({ inputMicroUsd, cacheWriteMicroUsd = 0 }: Price): number {
  return Math.max(inputMicroUsd, cacheWriteMicroUsd);
}

/** Output tokens for which the grant has room after the input. */
function roomFor({ granted }: RunBudget, usage: RunUsage, { inputTokens, price }: Ask): number {
  const byTokens = granted.tokens === undefined ? Infinity : granted.tokens - usage.totalTokens - inputTokens;
  const microUsd = parseMicroUsd(granted.usd);
  if (microUsd === undefined || price === undefined) return byTokens;
  const left = microUsd - (parseMicroUsd(usage.costUsd) ?? 0) - (inputPrice(price) * inputTokens) / 1_000_000;
  if (left < 0) return -1;
  // Costs are rounded up.
  const byUsd = price.outputMicroUsd === 0 ? Infinity : Math.floor(((left - 1) * 1_000_000) / price.outputMicroUsd);
  return Math.min(byTokens, byUsd);
}

/** The grant that would let the call do what it should, in the dimensions that are limited. */
function wishOf({ granted }: RunBudget, usage: RunUsage, ask: Ask): RunBudget['granted'] {
  const { inputTokens, outputTokens, price } = ask;
  const used = parseMicroUsd(usage.costUsd) ?? 0;
  const cost =
    price === undefined ? 0 : (inputPrice(price) * inputTokens + price.outputMicroUsd * outputTokens) / 1_000_000;
  return {
    ...(granted.tokens === undefined ? {} : { tokens: sumOf(usage.totalTokens, inputTokens, outputTokens) }),
    ...(granted.usd === undefined ? {} : { usd: formatMicroUsd(sumOf(used, Math.ceil(cost), 1)) }),
  };
}

/** A budget of money cannot be kept for what has no price. */
function expectPrice({ granted }: RunBudget, usage: RunUsage, price: Price | undefined): void {
  if (granted.usd === undefined || (price !== undefined && usage.costUsd !== undefined)) return;
  throw new GatewayError(
    400,
    'a budget in US dollars limits this run, and the price of its model is not known: add it to ConfigMap boxwright-model-prices, or set the budget in tokens',
    { type: 'ModelUnpriced' },
  );
}

function exhausted({ granted }: RunBudget, usage: RunUsage): GatewayError {
  const used = [
    granted.tokens === undefined ? [] : [`${usage.totalTokens} of ${granted.tokens} tokens`],
    granted.usd === undefined ? [] : [`${usage.costUsd ?? '?'} of ${granted.usd} US dollars`],
  ].flat();
  const message = `the budgets of agent, Box and Workspace leave too little for the next model call; this run used ${used.join(' and ')} that were granted`;
  return new GatewayError(400, message, { type: 'BudgetExhausted' });
}

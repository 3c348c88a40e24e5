/**
 * One model call towards a provider: what may pass is checked, the key takes the place of the run token, and the call is made
 * again until its answer is whole, because no tool has run in between. The runner gets one whole answer; what each try used is
 * counted here.
 * See docs/architecture.md#model-calls.
 */
import { isDeepStrictEqual } from 'node:util';
import type { BodyBudget } from '../../net/body-budget.js';
import { readText } from '../../net/capped-body.js';
import { backoffDelay } from '../../runtime/backoff.js';
import { timeoutSignal } from '../../runtime/timeout-signal.js';
import { isoNow, sleep, type Clock } from '../../runtime/clock.js';
import { runEnded, type GatewayError } from '../errors.js';
import type { CallResult } from '../metrics.js';
import type { Ask } from '../budget/run-budgets.js';
import type { AnswerSink } from '../models/answer-sink.js';
import type { CallEstimates } from '../models/call-estimates.js';
import type { RunModel } from '../models/run-model.js';
import type { ModelCallInFlight } from '../models/call-in-flight.js';
import { MODEL_NOTICE_HEADER } from '../../protocol/run.js';
import { believableCounts, costOf, type TokenCounts } from '../../run/usage/prices.js';
import { tokensIn } from '../../run/usage/token-meter.js';
import type { CallUsage } from '../../run/usage/usage.js';
import type { Logger } from '../../observability/logger.js';
import { readModelAnswer, type AnswerOptions, type AnswerProgress, type ModelAnswer } from './answers.js';
import type { Credentials } from './credentials.js';
import type { OptionalParameter } from '../../models/optional-parameters.js';
import { parametersIn, refusedParameter, withoutParameters } from './optional-parameters.js';
import { passedOf, type Passed } from './passed.js';
import { isPassing, ProviderUnreachable, type ProviderClient, type ProviderResponse } from './provider-client.js';
import { callTooLong, modelError, notServed, outOfQuota, refusalOf } from './provider-errors.js';
import { keyOf, type Target } from './targets.js';
import { TryFailed } from './try-failed.js';

const MAX_REFUSAL_BYTES = 64 * 1024;
const BACKOFF = { baseMs: 1_000, maxMs: 30_000, jitter: 0.5 };
/** What a model that nobody knows is taken to write at most, under a budget. */
const UNSTATED_OUTPUT_TOKENS = 32_768;
/** The room that a budget should leave for an answer: with less, more is asked for. */
const WANTED_OUTPUT_TOKENS = 32_000;
/** The longest patience with a provider when another model can answer. */
const FALLBACK_SECONDS = 60;
/** The same for a model that is asked to think. */
const THINKING_OUTPUT_TOKENS = 64_000;
/** An answer that is cut below this is worth nothing. */
const LEAST_OUTPUT_TOKENS = 512;

export interface ModelProxyOptions {
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  client: Pick<ProviderClient, 'send'>;
  credentials: Pick<Credentials, 'forget'>;
  /** The memory budget of all bodies of the process. */
  bodies: BodyBudget;
  log: Pick<Logger, 'warn' | 'info'>;
}

export interface ModelProxyCall {
  target: Target;
  /** Below `/gateway/<provider>/`. */
  path: string;
  body: unknown;
  /** The only model of this run. */
  model: string;
  inFlight: ModelCallInFlight;
  known: RunModel;
  /** What the agent says of its calls. */
  wishes?: { maxOutputTokens?: number | undefined; thinks?: boolean; hasFallback?: boolean };
  /** Most time for the call with all its tries. */
  boundSeconds: number;
  /** Fires when the runner went away or the run ended. */
  signal: AbortSignal;
  sink: AnswerSink;
  /** The most output tokens that the run's budget allows this call; undefined = it has none. May refuse. */
  admit: (ask: Ask) => Promise<number | undefined>;
  result: { value: CallResult };
}

/** A call that passes, and what is known of it before it leaves. */
interface Asked extends Passed {
  /** Our measure of the request. */
  measured: number;
  /** What it may write at most, by its own word and by what is known of the model; undefined = as much as the provider lets it. */
  maxOutputTokens: number | undefined;
  /** What of it the model may not take. */
  optional: readonly OptionalParameter[];
}

export class ModelProxy {
  /** Base URLs of models whose counts are not believed: said once each. */
  readonly #doubted = new Set<string>();
  /** Base URL and model where answers cannot stream. */
  readonly #unstreamed = new Set<string>();

  constructor(private readonly options: ModelProxyOptions) {}

  /** Resolves when the whole answer is written to the sink. Rejects with ModelError for what the provider did. */
  async call(call: ModelProxyCall): Promise<void> {
    const asked = askedOf(call);
    const outputTokens = await admitted(call, asked);
    const bound = timeoutSignal(this.options.clock, call.boundSeconds * 1000, call.signal);
    call.result.value = 'aborted';
    try {
      const { answer, failures } = await this.#untilAnswered(call, { asked, outputTokens, signal: bound.signal });
      call.result.value = 'answered';
      call.sink.start(200, answer.contentType, noticesOf([...failures, ...call.known.news(asked.optional)]));
      for (const piece of answer.pieces) await call.sink.write(piece);
    } catch (error) {
      call.inFlight.lost();
      if (bound.expired) throw callTooLong(call.target.provider, call.boundSeconds);
      if (call.signal.aborted) throw runEnded('the call was cut');
      call.result.value = 'failed';
      throw error;
    } finally {
      bound.dispose();
    }
  }

  async #untilAnswered(call: ModelProxyCall, first: Try): Promise<{ answer: ModelAnswer; failures: string[] }> {
    const { clock, log } = this.options;
    const since = isoNow(clock);
    const giveUpAt = clock.monotonic() + patienceOf(call) * 1000;
    let { outputTokens } = first;
    let failed: TryFailed | undefined;
    for (let failures = 0; ;) {
      const outcome = await this.#try(call, { ...first, outputTokens }).catch(asFailedTry);
      if (!(outcome instanceof TryFailed)) {
        return { answer: outcome, failures: failed === undefined ? [] : [noticeOf(failed, failures)] };
      }
      first.signal.throwIfAborted();
      if (outcome.adapted) continue;
      failed = outcome;
      if (!failed.again) throw failed.error;
      failures += 1;
      const delay = this.#delay(failures, failed);
      if (clock.monotonic() + delay >= giveUpAt) throw exhausted(failed, { failures, call });
      const { provider } = call.target;
      log.info({ provider, failures, delayMs: delay }, 'a model call is tried again');
      call.inFlight.waits({ message: `${failed.message} The model call is tried again.`, since });
      await sleep(clock, delay, first.signal);
      first.signal.throwIfAborted();
      // A try that broke off may have used something: what is left is asked for anew.
      outputTokens = await admitted(call, first.asked);
    }
  }

  #delay(failures: number, { retryAfterSeconds = 0 }: TryFailed): number {
    return Math.max(backoffDelay(BACKOFF, failures, this.options.random), retryAfterSeconds * 1000);
  }

  /** Rejects with {@link TryFailed}. What the try used is counted, whatever comes of it. */
  async #try(call: ModelProxyCall, { asked, outputTokens, signal }: Try): Promise<ModelAnswer> {
    const { target, inFlight } = call;
    const { estimates } = call.known;
    const { measured } = asked;
    let progress: AnswerProgress = { hasBegun: false, counts: undefined, writtenTokens: 0, said: '' };
    const follow = (followed: AnswerProgress) => {
      progress = followed;
      inFlight.works(followed);
    };
    signal.throwIfAborted();
    // A provider that says nothing at all is asked once more, in the middle of the time for the call.
    const silence = timeoutSignal(this.options.clock, (call.boundSeconds * 1000) / 2, signal);
    inFlight.send(() => this.#usageOf(target, spentBy(progress, measured, estimates)));
    try {
      const request = this.#requestOf(call, asked, outputTokens);
      const response = await this.options.client.send({ ...request, signal: silence.signal });
      silence.lift();
      if (response.status >= 300) throw await this.#refusal(call, asked, response);
      const answer = await readModelAnswer(response, { ...this.#readingOf(call, asked), follow });
      if (answer.counts !== undefined) estimates.learn(measured, answer.counts);
      inFlight.answered(this.#usageOf(target, answer.counts ?? spentBy(answer, measured, estimates)));
      return answer;
    } catch (error) {
      // What we cut ourselves was at work. Else the provider had not begun, or broke off what it had.
      if (silence.signal.aborted || progress.hasBegun) inFlight.lost();
      else inFlight.unused();
      throw error instanceof ProviderUnreachable ? noAnswer(call, silence.expired ? undefined : error.code) : error;
    } finally {
      silence.dispose();
    }
  }

  #requestOf(call: ModelProxyCall, { path, body: whole, request, optional }: Asked, outputTokens: number | undefined) {
    const { api, key } = call.target;
    const taken = call.known.taken(optional);
    const left = optional.filter((parameter) => !taken.includes(parameter));
    const body = withoutParameters(whole, left, api.dialect.optional);
    const limited = outputTokens === undefined ? body : api.dialect.limit(body, outputTokens);
    const streams = request.stream || !this.#unstreamed.has(placeOf(call));
    const sent = streams ? api.dialect.streamed(path, limited) : { path, body: limited };
    const query = streams && api.version === 'v1beta' ? '?alt=sse' : '';
    return {
      url: `${api.baseUrl}/${sent.path}${query}`,
      headers: api.headers(key?.value ?? ''),
      body: JSON.stringify(api.prepare?.(sent.body) ?? sent.body),
    };
  }

  #usageOf(target: Target, counts: TokenCounts): CallUsage {
    const believed = this.#believed(target, counts);
    return { ...believed, costMicroUsd: costOf(target.price, believed) };
  }

  /** A hostile or broken server may say any number; what no call can have used is not counted. */
  #believed({ provider, api: { baseUrl } }: Target, told: TokenCounts): TokenCounts {
    const believed = believableCounts(told);
    if (!isDeepStrictEqual(believed, told) && !this.#doubted.has(baseUrl)) {
      this.#doubted.add(baseUrl);
      this.options.log.warn({ provider, baseUrl, told }, 'a model says that it used more tokens than one call can use');
    }
    return believed;
  }

  #readingOf({ target }: ModelProxyCall, { request }: Asked): Omit<AnswerOptions, 'follow'> {
    const { provider, api, key } = target;
    const budget = { all: this.options.bodies, address: api.baseUrl };
    return { provider, dialect: api.dialect, asEvents: request.stream, secret: key?.value ?? '', budget };
  }

  async #refusal(call: ModelProxyCall, { request, optional }: Asked, response: ProviderResponse): Promise<TryFailed> {
    const { target, known } = call;
    const { status, retryAfterSeconds } = response;
    if (status === 401 && target.key !== undefined) this.options.credentials.forget(target.key.source);
    const text = (await readText(response.body, MAX_REFUSAL_BYTES).catch(() => undefined)) ?? '';
    const error = refusalOf({
      provider: target.provider,
      status,
      text,
      retryAfterSeconds,
      keyIs: keyOf(target),
      secret: target.key?.value ?? '',
    });
    const refused = refusedParameter({ status, text }, known.taken(optional));
    if (refused !== undefined) {
      known.refuses(refused, error.message);
      return new TryFailed(error, { again: true, adapted: true });
    }
    // Some servers cannot stream what they can answer, and some providers do not let everybody.
    const isAboutStream = (status === 400 || status === 422) && /stream/i.test(text);
    if (isAboutStream && !request.stream && !this.#unstreamed.has(placeOf(call))) {
      this.#unstreamed.add(placeOf(call));
      return new TryFailed(error, { again: true });
    }
    return new TryFailed(error, { again: isPassing(status) && !outOfQuota(text), retryAfterSeconds });
  }
}

interface Try {
  asked: Asked;
  outputTokens: number | undefined;
  signal: AbortSignal;
}

function asFailedTry(error: unknown): TryFailed {
  if (error instanceof TryFailed) return error;
  throw error;
}

/** There was no answer: the connection failed with that code, or nothing came for half of the time. */
function noAnswer({ target, boundSeconds }: ModelProxyCall, code: string | undefined): TryFailed {
  const why = code === undefined ? ` within ${boundSeconds / 2} s` : ` (${code})`;
  const how = `Check that the gateway can reach ${target.api.baseUrl}.`;
  return new TryFailed(modelError(`${target.provider} gave no answer${why}. ${how}`), { again: true });
}

function askedOf({ target, path, body, model, wishes }: ModelProxyCall): Asked {
  const passed = passedOf(target, path, body, model);
  // Where the agent says none, the limit of a request is what the SDK knows of the model.
  const own = target.isLimitStated === true ? undefined : passed.request.maxOutputTokens;
  const limits = [wishes?.maxOutputTokens ?? own, target.maxOutputTokens].filter((limit) => limit !== undefined);
  return {
    ...passed,
    optional: parametersIn(passed.body, target.api.dialect.optional),
    measured: tokensIn(passed.body),
    maxOutputTokens: limits.length === 0 ? undefined : Math.min(...limits),
  };
}

/** The output limit that the call is sent with. */
async function admitted({ target, known, wishes, admit }: ModelProxyCall, asked: Asked): Promise<number | undefined> {
  const { measured, maxOutputTokens } = asked;
  const inputTokens = known.estimates.inputOf(measured);
  const mostOutputTokens = maxOutputTokens ?? UNSTATED_OUTPUT_TOKENS;
  const wanted = wishes?.thinks === true ? THINKING_OUTPUT_TOKENS : WANTED_OUTPUT_TOKENS;
  const outputTokens = Math.min(mostOutputTokens, wanted);
  const leastOutputTokens = Math.min(outputTokens, LEAST_OUTPUT_TOKENS);
  const ask = { inputTokens, outputTokens, mostOutputTokens, leastOutputTokens, price: target.price };
  return (await admit(ask)) ?? maxOutputTokens;
}

/** What a try has used by now: what the provider said of it, else our measure. */
function spentBy(
  { counts, writtenTokens }: Pick<AnswerProgress, 'counts' | 'writtenTokens'>,
  measured: number,
  estimates: CallEstimates,
): TokenCounts {
  const estimated = estimates.countsOf({ measured, written: writtenTokens });
  if (counts === undefined) return estimated;
  return { ...counts, outputTokens: Math.max(counts.outputTokens, estimated.outputTokens) };
}

function placeOf({ target, model }: ModelProxyCall): string {
  return `${target.api.baseUrl} ${model}`;
}

/** For the transcript. */
function noticeOf({ error }: TryFailed, failures: number): string {
  const times = failures === 1 ? 'once' : `${failures} times`;
  return `The model call was tried again ${times}. The last failure: ${error.message}`;
}

/** A line each, in characters of a header. */
function noticesOf(notices: readonly string[]): Record<string, string> {
  return notices.length === 0 ? {} : { [MODEL_NOTICE_HEADER]: encodeURIComponent(notices.join('\n')) };
}

/** For how many seconds a call is begun anew. */
function patienceOf({ boundSeconds, wishes }: ModelProxyCall): number {
  return wishes?.hasFallback === true ? Math.min(boundSeconds, FALLBACK_SECONDS) : boundSeconds;
}

/** Patience ends with the time for the call, or when another model can answer. */
function exhausted({ error }: TryFailed, { failures, call }: { failures: number; call: ModelProxyCall }): GatewayError {
  if (failures === 1) return notServed(error.message);
  const why = call.wishes?.hasFallback === true ? '' : ' (spec.bounds.modelCallSeconds of the Box)';
  return notServed(`${error.message} It was tried ${failures} times within ${patienceOf(call)} s${why}.`);
}

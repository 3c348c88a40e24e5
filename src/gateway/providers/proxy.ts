/**
 * One model call towards a provider: what may pass is checked, the key takes the place of the run
 * token, the answer goes through as it comes, and what it says was used is counted here.
 */
import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { readText } from '../../net/capped-body.js';
import { mediaTypeOf } from '../../net/media-type.js';
import { parseBounded } from '../../protocol/bounded-parse.js';
import { issuePath } from '../../protocol/issues.js';
import { JsonLimitError, parseJsonText } from '../../protocol/json-limits.js';
import { timeoutSignal } from '../../runtime/timeout-signal.js';
import type { Clock } from '../../runtime/clock.js';
import { GatewayError, runEnded } from '../errors.js';
import type { CallResult } from '../metrics.js';
import type { Ask } from '../budget/run-budgets.js';
import type { AnswerSink } from '../models/answer-sink.js';
import type { ModelCallInFlight } from '../models/call-in-flight.js';
import { believableCounts, costOf, type TokenCounts } from '../../run/usage/prices.js';
import type { CallUsage } from '../../run/usage/usage.js';
import type { Credentials } from './credentials.js';
import { parseObject, type Dialect, type ModelRequest, type StreamState } from './dialect.js';
import { StreamEvents } from './stream-events.js';
import { keyOf, type Target } from './targets.js';
import type { Logger } from '../../observability/logger.js';
import { ProviderUnreachable, type ProviderClient, type ProviderResponse } from './provider-client.js';
import { callTooLong, modelError, refusalOf } from './provider-errors.js';

const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_REFUSAL_BYTES = 64 * 1024;
/** What a call is taken to write at most when neither request nor budget limit it; a budget grants no more for one call. */
const UNSTATED_OUTPUT_TOKENS = 16_384;
/** An answer that is cut below this is worth nothing. */
const LEAST_OUTPUT_TOKENS = 512;

export interface ModelProxyOptions {
  clock: Clock;
  client: Pick<ProviderClient, 'send'>;
  credentials: Pick<Credentials, 'forget'>;
  log: Pick<Logger, 'warn'>;
}

export interface ModelProxyCall {
  target: Target;
  /** Below `/gateway/<provider>/`. */
  path: string;
  body: unknown;
  /** The only model of this run. */
  model: string;
  inFlight: ModelCallInFlight;
  /** Most time for the call with all its tries. */
  boundSeconds: number;
  /** Fires when the runner went away or the run ended. */
  signal: AbortSignal;
  sink: AnswerSink;
  /** The most output tokens that the run's budget allows this call; undefined = it has none. May refuse. */
  admit: (ask: Ask) => Promise<number | undefined>;
  result: { value: CallResult };
}

interface Passed {
  path: string;
  body: Record<string, unknown>;
  request: ModelRequest;
}

export class ModelProxy {
  /** Base URLs of models whose counts are not believed: said once each. */
  readonly #doubted = new Set<string>();

  constructor(private readonly options: ModelProxyOptions) {}

  /** Resolves when the whole answer is written to the sink. Rejects with ModelError for what the provider did. */
  async call(call: ModelProxyCall): Promise<void> {
    const { target, inFlight, boundSeconds } = call;
    const passed = passedOf(call);
    const inputTokens = Buffer.byteLength(JSON.stringify(passed.body));
    const { maxOutputTokens = UNSTATED_OUTPUT_TOKENS } = passed.request;
    const wanted = Math.min(maxOutputTokens, UNSTATED_OUTPUT_TOKENS);
    const leastOutputTokens = Math.min(wanted, LEAST_OUTPUT_TOKENS);
    const allowed = await call.admit({ inputTokens, outputTokens: wanted, leastOutputTokens, price: target.price });
    const body = allowed === undefined ? passed.body : target.api.dialect.limit(passed.body, allowed);
    const outputTokens = allowed ?? maxOutputTokens;
    const bound = timeoutSignal(this.options.clock, boundSeconds * 1000, call.signal);
    call.result.value = 'aborted';
    const most = { inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const reservation = usageOf(target, believableCounts(most));
    try {
      const response = await this.#send(call, { ...passed, body, reservation }, bound.signal);
      await this.#answer(call, passed, response);
    } catch (error) {
      inFlight.lost();
      if (bound.expired) throw callTooLong(target.provider, boundSeconds);
      if (call.signal.aborted) throw runEnded('the call was cut');
      call.result.value = 'failed';
      throw error;
    } finally {
      bound.dispose();
    }
  }

  async #send(
    { target, inFlight, boundSeconds }: ModelProxyCall,
    passed: Passed & { reservation: CallUsage },
    signal: AbortSignal,
  ): Promise<ProviderResponse> {
    const { clock, client } = this.options;
    const { api, key, provider } = target;
    const query = passed.request.stream && api.version === 'v1beta' ? '?alt=sse' : '';
    try {
      return await client.send({
        url: `${api.baseUrl}/${passed.path}${query}`,
        headers: api.headers(key?.value ?? ''),
        body: JSON.stringify(api.prepare?.(passed.body) ?? passed.body),
        signal,
        giveUpAt: clock.monotonic() + boundSeconds * 1000,
        leaves: () => inFlight.send(passed.reservation),
        waits: () => inFlight.unused(),
      });
    } catch (error) {
      if (!(error instanceof ProviderUnreachable)) throw error;
      if (!error.maybeUsed) inFlight.unused();
      throw modelError(`${provider} gave no answer (${error.code}). Check that the gateway can reach ${api.baseUrl}.`);
    }
  }

  async #answer(call: ModelProxyCall, { request }: Passed, response: ProviderResponse): Promise<void> {
    if (response.status >= 300) throw await this.#refusal(call, response);
    const streams = request.stream && mediaTypeOf(response.contentType) === 'text/event-stream';
    const count = (counts: TokenCounts) => usageOf(call.target, this.#believed(call.target, counts));
    await (streams ? passStream(call, response, count) : passWhole(call, response, count));
    call.result.value = 'answered';
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

  async #refusal({ target, inFlight }: ModelProxyCall, response: ProviderResponse): Promise<GatewayError> {
    // Providers charge for answers only.
    inFlight.unused();
    if (response.status === 401 && target.key !== undefined) this.options.credentials.forget(target.key.source);
    const text = (await readText(response.body, MAX_REFUSAL_BYTES).catch(() => undefined)) ?? '';
    return refusalOf({
      provider: target.provider,
      status: response.status,
      text,
      retryAfterSeconds: response.retryAfterSeconds,
      keyIs: keyOf(target),
      secret: target.key?.value ?? '',
    });
  }
}

/** Throws 404 for a path, 400 for a field or model that is not passed. */
function passedOf({ target, path: whole, body, model }: ModelProxyCall): Passed {
  const { api, provider } = target;
  const path = whole.startsWith(`${api.version}/`) ? whole.slice(api.version.length + 1) : '';
  const meaning = api.dialect.pathOf(path);
  if (meaning === undefined) {
    throw new GatewayError(404, `the gateway passes no such call to ${provider}`, { type: 'NotPassed' });
  }
  const parsed = parseBounded(api.dialect.body, body);
  if (!parsed.success) throw notPassed(provider, parsed.error);
  const request = api.dialect.read(parsed.data, meaning);
  if (request.model !== model) {
    throw new GatewayError(400, `this run may use model ${model} alone`, { type: 'OtherModel' });
  }
  return { path, body: parsed.data, request };
}

function notPassed(provider: string, error: z.ZodError): GatewayError {
  const [issue] = error.issues;
  const where = issue === undefined || issue.path.length === 0 ? 'the request' : issuePath(issue);
  const what = issue?.code === 'unrecognized_keys' ? `field ${(issue.keys[0] ?? '').slice(0, 64)} of ${where}` : where;
  return new GatewayError(400, `the gateway does not pass this to ${provider}: ${what}`, { type: 'NotPassed' });
}

function usageOf({ price }: Target, counts: TokenCounts): CallUsage {
  return { ...counts, costMicroUsd: costOf(price, counts) };
}

async function passWhole(
  { target, inFlight, sink }: ModelProxyCall,
  response: ProviderResponse,
  count: (counts: TokenCounts) => CallUsage,
): Promise<void> {
  const text = await answerIn(response);
  const answer = parseObject(text);
  if (answer === undefined) {
    throw modelError(`${target.provider} answered ${whatIs(text)}.`);
  }
  const counts = target.api.dialect.usageOf(answer);
  // A step all the same: it is charged with the most that it can have used.
  const used = counts === undefined ? inFlight.open : count(counts);
  if (used !== undefined) inFlight.answered(used);
  sink.start(response.status, response.contentType);
  await sink.write(text);
}

async function passStream(
  { target, inFlight, sink }: ModelProxyCall,
  response: ProviderResponse,
  count: (counts: TokenCounts) => CallUsage,
): Promise<void> {
  const { dialect } = target.api;
  const reader = new StreamEvents();
  let state: StreamState = { complete: false };
  sink.start(response.status, response.contentType);
  let bytes = 0;
  for await (const piece of response.body as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > MAX_ANSWER_BYTES) throw tooLarge();
    state = readAll(dialect, state, reader.read(piece));
    await sink.write(piece);
  }
  state = readAll(dialect, state, reader.end());
  if (!state.complete || state.counts === undefined) {
    throw modelError(`${target.provider} broke its answer off.`);
  }
  inFlight.answered(count(state.counts));
}

function readAll(dialect: Dialect, state: StreamState, events: ReturnType<StreamEvents['read']>): StreamState {
  return events.reduce((before, event) => dialect.readEvent(before, event), state);
}

/** Of an answer that cannot be used. */
function whatIs(text: string): string {
  if (text.trim() === '') return 'nothing';
  try {
    parseJsonText(text);
  } catch (error) {
    if (error instanceof JsonLimitError) return `JSON that ${error.message}`;
  }
  return 'something that is not JSON';
}

/** Rejects when the body is cut or too large. */
async function answerIn({ body }: ProviderResponse): Promise<string> {
  const text = await readText(body, MAX_ANSWER_BYTES).catch(() => {
    throw modelError('The model broke its answer off.');
  });
  if (text === undefined) throw tooLarge();
  return text;
}

function tooLarge(): GatewayError {
  return modelError(`The answer of the model is larger than ${MAX_ANSWER_BYTES} bytes.`);
}

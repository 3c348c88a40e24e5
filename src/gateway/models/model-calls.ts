/**
 * Model calls of runs (DESIGN 4, Model gateway): only for a run that this pod serves, one at a time, within the step limit;
 * what they use is counted here and not in the pod.
 */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { Cache } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/clock.js';
import type { RunIdentity } from '../auth/run-authenticator.js';
import { GatewayError, runEnded } from '../errors.js';
import type { CallResult, GatewayMetrics } from '../metrics.js';
import { costOf, priceOf, type PriceTable } from '../prices.js';
import type { ClaimInputs } from '../runs/claim-inputs.js';
import { stepLimitOf } from '../runs/claim-answer.js';
import type { Pinning } from '../runs/pinning.js';
import type { RunStore } from '../runs/run-store.js';
import type { ServedRun } from '../runs/served-runs.js';
import { scriptedReply } from '../scripted/engine.js';
import { ChatRequest, type ChatAnswer } from '../scripted/openai.js';
import { addCall } from '../usage.js';
import type { AgentView, BoxView } from '../views.js';

/** The provider whose models are what the Box configures (DESIGN 5). */
const OWN_PROVIDER = 'boxwright';
const SCRIPTED = 'scripted';

export interface ModelCallsOptions {
  clock: Clock;
  store: RunStore;
  pinning: Pick<Pinning, 'resolve'>;
  boxes: Pick<ClaimInputs, 'boxOf'>;
  agents: Pick<Cache<AgentView>, 'get'>;
  prices: PriceTable;
  metrics: Pick<GatewayMetrics, 'called'>;
}

export interface ModelCall {
  identity: RunIdentity;
  /** From the path. */
  provider: string;
  /** Whether the path is the one of chat completions: no other is served. */
  isChat: boolean;
  /** The parsed JSON of the request. */
  body: unknown;
  /** Fires when the runner went away. */
  signal: AbortSignal;
}

export interface ModelCallAnswer {
  answer: ChatAnswer;
  stream: boolean;
  includeUsage: boolean;
}

export class ModelCalls {
  readonly #options: ModelCallsOptions;

  constructor(options: ModelCallsOptions) {
    this.#options = options;
  }

  /** Rejects with 400 (not configured, step limit, bad request, what the model says), 409, 410, 421 or 429. */
  async call(call: ModelCall): Promise<ModelCallAnswer> {
    const served = await this.#options.pinning.resolve(call.identity);
    const run = await this.#options.store.find(served.ref);
    const result = { value: 'refused' as CallResult };
    try {
      await this.#expectEngine(call, run);
      this.#expectStep(served, run);
      const request = ChatRequest.parse(call.body);
      return await this.#inFlight(served, call.signal, (signal) => this.#answer(served, request, { signal, result }));
    } finally {
      this.#options.metrics.called(OWN_PROVIDER, result.value);
    }
  }

  async #expectEngine({ provider, identity, isChat }: ModelCall, run: AgentRun): Promise<void> {
    const box = await this.#options.boxes.boxOf(identity.namespace);
    if (provider !== OWN_PROVIDER || run.status?.provider !== OWN_PROVIDER) throw notConfigured(box, provider);
    if (box.engine === undefined) throw notConfigured(box, provider);
    if (!isChat) throw new GatewayError(404, 'only /v1/chat/completions is served', { type: 'NotFound' });
  }

  #expectStep(served: ServedRun, run: AgentRun): void {
    const limit = stepLimitOf(this.#options.agents.get(`${served.ref.namespace}/${run.spec.agent}`), run);
    if (served.usage.steps < limit) return;
    throw new GatewayError(400, `the run has used all ${limit} steps of its limit`, { type: 'StepLimitReached' });
  }

  async #inFlight<T>(served: ServedRun, gone: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (served.call !== undefined) {
      throw new GatewayError(429, 'a model call of this run is in flight', {
        type: 'CallInFlight',
        retryAfterSeconds: 1,
      });
    }
    const call = new AbortController();
    served.call = call;
    try {
      return await work(AbortSignal.any([call.signal, gone]));
    } finally {
      delete served.call;
    }
  }

  async #answer(
    served: ServedRun,
    request: ChatRequest,
    call: { signal: AbortSignal; result: { value: CallResult } },
  ): Promise<ModelCallAnswer> {
    const { clock, prices } = this.#options;
    const reply = scriptedReply(request);
    call.result.value = 'aborted';
    if (reply.waitMs > 0) await sleep(clock, reply.waitMs, call.signal);
    if (call.signal.aborted) throw runEnded('the call was cut');
    if ('failure' in reply.result) {
      call.result.value = 'failed';
      throw new GatewayError(400, reply.result.failure, { type: 'ScriptedFailure' });
    }
    const { answer } = reply.result;
    const { inputTokens, outputTokens } = answer.usage;
    const price = priceOf(prices, SCRIPTED, request.model);
    served.usage = addCall(served.usage, {
      inputTokens,
      outputTokens,
      costMicroUsd: costOf(price, inputTokens, outputTokens),
    });
    call.result.value = 'answered';
    return {
      answer: {
        ...answer,
        id: `chatcmpl-${served.ref.name}-${served.usage.steps}`,
        created: Math.floor(clock.now() / 1000),
      },
      stream: request.stream === true,
      includeUsage: request.stream_options?.include_usage === true,
    };
  }
}

function notConfigured(box: BoxView, provider: string): GatewayError {
  const hint = `set spec.engine: scripted on Box ${box.name}, which needs no key, and provider boxwright on the agent`;
  const what =
    provider === OWN_PROVIDER
      ? `nothing stands behind provider boxwright in Box ${box.name}`
      : `provider ${provider} is not available in this installation`;
  return new GatewayError(400, `${what}: ${hint}`, { type: 'ModelNotConfigured' });
}

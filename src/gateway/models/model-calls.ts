/**
 * Model calls of runs: only for a run that this pod serves, one at a time, within the step limit
 * and its budget; what they use is counted here and not in the pod.
 * See docs/architecture.md#model-calls.
 */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { Cache } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import type { RunIdentity } from '../auth/run-authenticator.js';
import type { Ask, RunBudgets } from '../budget/run-budgets.js';
import { GatewayError, tryAgain } from '../errors.js';
import type { CallResult, GatewayMetrics } from '../metrics.js';
import type { RunInputs } from '../runs/run-inputs.js';
import { stepLimitOf } from '../runs/claim-answer.js';
import type { Ownership } from '../runs/ownership.js';
import type { RunStore } from '../runs/run-store.js';
import type { ServedRun } from '../runs/served-runs.js';
import type { ModelProxy, ModelProxyCall } from '../providers/proxy.js';
import { noSuchProvider, type Targets } from '../providers/targets.js';
import type { AnswerSink } from './answer-sink.js';
import { ModelCallInFlight } from './call-in-flight.js';
import { RunModel } from './run-model.js';
import { findModel } from '../../models/catalog.js';
import { callScripted } from './scripted-calls.js';
import type { GatewayAgent } from '../../projections/agent.js';
import type { GatewayBox } from '../../projections/box.js';

/** The provider whose models are what the Box configures. */
const OWN_PROVIDER = 'boxwright';

export interface ModelCallsOptions {
  clock: Clock;
  store: RunStore;
  ownership: Pick<Ownership, 'resolve'>;
  boxes: Pick<RunInputs, 'boxOf'>;
  agents: Pick<Cache<GatewayAgent>, 'get'>;
  targets: Pick<Targets, 'of'>;
  proxy: Pick<ModelProxy, 'call'>;
  budgets: Pick<RunBudgets, 'admit'>;
  metrics: Pick<GatewayMetrics, 'called' | 'used'>;
}

export interface ModelCall {
  identity: RunIdentity;
  /** From the path. */
  provider: string;
  /** What follows the provider in the path. */
  path: string;
  /** The parsed JSON of the request. */
  body: unknown;
  /** Fires when the runner went away. */
  signal: AbortSignal;
}

export class ModelCalls {
  readonly #options: ModelCallsOptions;

  constructor(options: ModelCallsOptions) {
    this.#options = options;
  }

  /**
   * Writes the answer to the sink. Rejects with 400 (not configured, step limit, what may not pass, what the model says),
   * 404, 409, 410, 421 or 429.
   */
  async call(call: ModelCall, sink: AnswerSink): Promise<void> {
    const served = await this.#options.ownership.resolve(call.identity);
    const run = await this.#options.store.find(served.ref);
    const result = { value: 'refused' as CallResult };
    try {
      const box = await this.#options.boxes.boxOf(call.identity.namespace);
      // A run has one provider; which words may follow the slash is decided here, before they are counted.
      if (run.status?.provider !== call.provider) throw noSuchProvider(box, call.provider);
      this.#expectStep(served, run);
      const model = labelOf(call.provider, run.status.model);
      const flight = new ModelCallInFlight(served, (usage) =>
        this.#options.metrics.used({ provider: call.provider, model }, usage),
      );
      await inFlight(served, flight, () => this.#answer({ call, served, run, box, flight, sink, result }));
    } catch (error) {
      // Cut, but not because of the run: another pod took it over, and there the call may be tried again.
      const cut = error instanceof GatewayError && error.type === 'RunEnded';
      const { claim } = (cut ? await this.#options.store.find(served.ref) : undefined)?.status ?? {};
      if (claim !== undefined && claim.epoch > served.fencingToken)
        throw tryAgain('another gateway pod serves the run now', 1);
      throw error;
    } finally {
      this.#options.metrics.called(run.status?.provider ?? OWN_PROVIDER, result.value);
    }
  }

  #expectStep(served: ServedRun, run: AgentRun): void {
    const limit = stepLimitOf(this.#options.agents.get(`${served.ref.namespace}/${run.spec.agent}`), run);
    if (served.usage.steps < limit) return;
    throw new GatewayError(400, `the run has used all ${limit} steps of its limit`, { type: 'StepLimitReached' });
  }

  async #answer({ call, served, run, box, flight, sink, result }: Answering): Promise<void> {
    const signal = AbortSignal.any([flight.signal, call.signal]);
    const admit = (ask: Ask) => this.#options.budgets.admit(served, ask, signal);
    if (call.provider === OWN_PROVIDER && box.engine !== undefined) {
      const { clock } = this.#options;
      const { path, body } = call;
      const of = { clock, run: run.metadata.name, boundSeconds: box.modelCallSeconds };
      return callScripted({ ...of, path, body, admit, flight, signal, sink, result });
    }
    const model = run.status?.model ?? '';
    const target = await this.#options.targets.of(call.provider, model, box);
    const { path, body } = call;
    served.model ??= new RunModel(call.provider);
    const wishes = wishesOf(this.#options.agents.get(`${served.ref.namespace}/${run.spec.agent}`));
    const proxied = { target, path, body, model, boundSeconds: box.modelCallSeconds, known: served.model, wishes };
    await this.#options.proxy.call({ ...proxied, inFlight: flight, signal, sink, admit, result });
  }
}

interface Answering {
  call: ModelCall;
  served: ServedRun;
  run: AgentRun;
  box: GatewayBox;
  flight: ModelCallInFlight;
  sink: AnswerSink;
  result: { value: CallResult };
}

/** What an agent says of its model calls; nothing when it was deleted meanwhile. */
function wishesOf(agent: GatewayAgent | undefined): NonNullable<ModelProxyCall['wishes']> {
  const { reasoning, maxOutputTokens } = agent?.spec ?? {};
  return { maxOutputTokens, thinks: reasoning === 'medium' || reasoning === 'high' };
}

/** Names that people choose are no labels of metrics: there may be any number of them. */
function labelOf(provider: string, model: string | undefined): string {
  return findModel(provider, model ?? '')?.model ?? 'other';
}

/** One call of a run at a time. */
async function inFlight(served: ServedRun, flight: ModelCallInFlight, work: () => Promise<void>): Promise<void> {
  if (served.call !== undefined) {
    throw new GatewayError(429, 'a model call of this run is in flight', {
      type: 'CallInFlight',
      retryAfterSeconds: 1,
    });
  }
  served.call = flight;
  try {
    await work();
  } finally {
    delete served.call;
  }
}

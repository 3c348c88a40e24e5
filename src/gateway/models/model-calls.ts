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
import { fallbacksOf } from '../../models/fallbacks.js';
import { objectIn } from '../providers/dialect.js';
import type { ModelProxy, ModelProxyCall } from '../providers/proxy.js';
import { noSuchProvider, type Targets } from '../providers/targets.js';
import type { AnswerSink } from './answer-sink.js';
import { ModelCallInFlight } from './call-in-flight.js';
import { RunModel } from './run-model.js';
import { findModel } from '../../models/catalog.js';
import { callScripted } from './scripted-calls.js';
import { scriptedReply } from '../scripted/engine.js';
import type { Recordings } from '../scripted/recordings.js';
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
  recordings: Pick<Recordings, 'replay'>;
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
    let provider: string = run.status?.provider ?? OWN_PROVIDER;
    try {
      const box = await this.#options.boxes.boxOf(call.identity.namespace);
      const agent = this.#options.agents.get(`${served.ref.namespace}/${run.spec.agent}`);
      // A run has few models; which words may follow the slash is decided here, before they are counted.
      const models = modelsOf(run, agent);
      const at = placeOf(call, models);
      const model = models[at]?.model;
      if (model === undefined) throw noSuchProvider(box, call.provider);
      provider = call.provider;
      this.#expectStep(served, run);
      const label = labelOf(provider, model);
      const flight = new ModelCallInFlight(served, (usage) =>
        this.#options.metrics.used({ provider: call.provider, model: label }, usage),
      );
      const wishes = { ...wishesOf(agent), hasFallback: at < models.length - 1 };
      await inFlight(served, flight, () =>
        this.#answer({ call, served, run, box, flight, sink, result, model, wishes }),
      );
    } catch (error) {
      // Cut, but not because of the run: another pod took it over, and there the call may be tried again.
      const cut = error instanceof GatewayError && error.type === 'RunEnded';
      const { claim } = (cut ? await this.#options.store.find(served.ref) : undefined)?.status ?? {};
      if (claim !== undefined && claim.epoch > served.fencingToken)
        throw tryAgain('another gateway pod serves the run now', 1);
      throw error;
    } finally {
      this.#options.metrics.called(provider, result.value);
    }
  }

  #expectStep(served: ServedRun, run: AgentRun): void {
    const limit = stepLimitOf(this.#options.agents.get(`${served.ref.namespace}/${run.spec.agent}`), run);
    if (served.usage.steps < limit) return;
    throw new GatewayError(400, `the run has used all ${limit} steps of its limit`, { type: 'StepLimitReached' });
  }

  async #answer({ call, served, run, box, flight, sink, result, model, wishes }: Answering): Promise<void> {
    const signal = AbortSignal.any([flight.signal, call.signal]);
    const admit = (ask: Ask) => this.#options.budgets.admit(served, ask, signal);
    const { recording } = run.spec;
    if (call.provider === OWN_PROVIDER && (box.engine !== undefined || recording !== undefined)) {
      const { clock, recordings } = this.#options;
      const { path, body } = call;
      const of = { clock, run: run.metadata.name, boundSeconds: box.modelCallSeconds };
      const reply = recording === undefined ? scriptedReply : recordings.replay(served.ref.namespace, recording);
      return callScripted({ ...of, path, body, reply, admit, flight, signal, sink, result });
    }
    const target = await this.#options.targets.of(call.provider, model, box);
    const { path, body } = call;
    const known = knownOf(served, call.provider, model);
    for (const parameter of target.refuses ?? []) known.refuses(parameter, STATED);
    const proxied = { target, path, body, model, boundSeconds: box.modelCallSeconds, known, wishes };
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
  model: string;
  wishes: NonNullable<ModelProxyCall['wishes']>;
}

const STATED = 'the catalogue of this installation says that the model does not take it.';

/** The models of a run in the order in which they are asked: its own, then what may answer in its place. */
function modelsOf({ status }: AgentRun, agent: GatewayAgent | undefined): { provider: string; model: string }[] {
  const { provider, model } = status ?? {};
  const own = provider === undefined || model === undefined ? [] : [{ provider, model }];
  return [...own, ...(agent === undefined ? [] : fallbacksOf(agent.spec.fallbackModels ?? [], agent.spec.provider))];
}

/** Which of them is called: by the model that the request names, else the first of the provider. -1 for another provider. */
function placeOf({ provider, path, body }: ModelCall, models: ReturnType<typeof modelsOf>): number {
  const named = models.findIndex(
    (one) =>
      one.provider === provider && (objectIn(body)['model'] === one.model || path.includes(`/models/${one.model}:`)),
  );
  return named === -1 ? models.findIndex((one) => one.provider === provider) : named;
}

function knownOf(served: ServedRun, provider: string, model: string): RunModel {
  const models = (served.models ??= new Map());
  const name = `${provider}/${model}`;
  const known = models.get(name) ?? new RunModel(provider);
  models.set(name, known);
  return known;
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

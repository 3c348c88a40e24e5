/** What a run needs to start, read from caches; a live GET only for what a cache does not have. */
import { boxOfNamespace } from '../../api/names.js';
import { outcomeOf, type RunOutcome } from '../../run/outcome.js';
import { AgentEvals } from '../../api/v1alpha1/agent-eval.js';
import type { EvalFile } from '../../api/v1alpha1/agent-eval.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import { objectKey } from '../../api/meta.js';
import { isNotFound, orUndefined } from '../../kube/errors.js';
import type { ArchiveReader } from '../../archive/types.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import type { TranscriptMessage } from '../../protocol/run.js';
import { GatewayError, tryAgain } from '../errors.js';
import { EarlierRuns } from './earlier-runs.js';
import { historyOf } from '../../run/session/history.js';
import { hasOpenCall, resumeOf, type Resume } from '../../run/session/resume.js';
import { DamagedInputError, messageOf } from '../../run/message.js';
import type { RunStore } from './run-store.js';
import { startsUntrusted } from '../../run/trust.js';
import { projectGatewayAgent } from '../../projections/agent.js';
import type { GatewayAgent } from '../../projections/agent.js';
import { projectGatewayBox } from '../../projections/box.js';
import type { GatewayBox } from '../../projections/box.js';

export interface RunInput {
  agent: GatewayAgent;
  box: GatewayBox;
  message: string;
  history: TranscriptMessage[];
  /** What lies in its workspace before the first step. */
  files: readonly EvalFile[];
  /** What the history lacks, for the record of the run. */
  warnings: readonly string[];
  /** Whether the run, or one before it in its session, came from outside. */
  untrusted: boolean;
  /** Set when the message answers what the session waits for. */
  resume?: Resume;
  /** Tools that earlier messages of the session approved for good. */
  approvedBefore: readonly string[];
}

/** The run cannot be executed as it is; it ends with this outcome. */
export class RunRefusedError extends Error {
  override readonly name = 'RunRefusedError';
  constructor(readonly outcome: RunOutcome) {
    super(outcome.message);
  }
}

export interface RunInputsOptions {
  api: Pick<KubeApi, 'get'>;
  store: RunStore;
  agents: Pick<Cache<GatewayAgent>, 'get'>;
  boxes: Pick<Cache<GatewayBox>, 'get'>;
  clock: Clock;
  /** Absent when the installation has none. */
  archive?: ArchiveReader | undefined;
}

export class RunInputs {
  readonly #options: RunInputsOptions;

  constructor(options: RunInputsOptions) {
    this.#options = options;
  }

  /** Rejects with {@link RunRefusedError} when agent or message are not there any more. */
  async gather(run: AgentRun, previousRun: string | undefined): Promise<RunInput> {
    const agent = await this.#agentOf(run);
    const box = await this.boxOf(run.metadata.namespace ?? '');
    const message = await this.#messageOf(run);
    const files = await this.#filesOf(run);
    const scope = { workspace: box.workspace, box: box.name, agentUid: agent.uid };
    const earlier = await EarlierRuns.of(this.#options, run, { scope, previousRun });
    const { previous } = earlier;
    const pending = previous?.status?.pending;
    const untrusted = startsUntrusted({ run, previous, isIncomplete: earlier.isIncomplete });
    const approvedBefore = previous?.status?.approvals?.always ?? [];
    const { messages: history, warnings } = await historyOf(earlier, pending?.callId);
    const input = { agent, box, message, files, history, warnings, untrusted, approvedBefore };
    // A transcript that was cut may have lost the call: then the answer is a message like any other.
    if (pending === undefined || !hasOpenCall(history, pending.callId)) return input;
    return { ...input, resume: resumeOf(pending, message, run.spec.actor) };
  }

  /** The Box of a namespace. Rejects with 503 when it is not there. */
  async boxOf(namespace: string): Promise<GatewayBox> {
    const name = boxOfNamespace(namespace);
    if (name === undefined) throw new GatewayError(403, `namespace ${namespace} is not one of a Box`);
    const cached = this.#options.boxes.get(name);
    if (cached !== undefined) return cached;
    try {
      return projectGatewayBox(await this.#options.api.get(Boxes, { name }));
    } catch (error) {
      if (isNotFound(error)) throw tryAgain(`Box ${name} is not there`, 10);
      throw error;
    }
  }

  async #agentOf(run: AgentRun): Promise<GatewayAgent> {
    const ref = { namespace: run.metadata.namespace ?? '', name: run.spec.agent };
    const agent = this.#options.agents.get(objectKey(ref)) ?? (await this.#liveAgent(ref));
    const expected = run.spec.agentUid ?? run.status?.agentUid;
    if (agent === undefined && expected === undefined) {
      throw refuse('AgentNotFound', `There is no Agent ${ref.name} in namespace ${ref.namespace}.`);
    }
    if (agent === undefined || (expected !== undefined && agent.uid !== expected)) {
      throw refuse('AgentDeleted', `Agent ${ref.name} was deleted before the run started.`);
    }
    return withModelOf(run, agent);
  }

  async #liveAgent(ref: { namespace: string; name: string }): Promise<GatewayAgent | undefined> {
    const live = await orUndefined(this.#options.api.get(Agents, ref));
    return live === undefined ? undefined : projectGatewayAgent(live);
  }

  /** Those of the case of an AgentEval, which keeps them: a run does not carry them. */
  async #filesOf({ metadata: { namespace = '' }, spec: { trigger } }: AgentRun): Promise<readonly EvalFile[]> {
    if (trigger?.origin !== 'eval' || trigger.case === undefined) return [];
    const { name = '', uid } = trigger;
    const found = await orUndefined(this.#options.api.get(AgentEvals, { namespace, name }));
    const own = found?.metadata.uid === uid ? found?.spec.cases.find((one) => one.name === trigger.case) : undefined;
    if (own === undefined) throw refuse('InvalidRun', `AgentEval ${name} has no case ${trigger.case} any more.`);
    return own.files ?? [];
  }

  async #messageOf(run: AgentRun): Promise<string> {
    const ref = { namespace: run.metadata.namespace ?? '', name: run.metadata.name };
    // The informer drops compressed inputs: they are read once, here.
    const { spec } = run.spec.input === undefined ? run : await this.#options.store.fetch(ref);
    try {
      return await messageOf(spec);
    } catch (error) {
      if (error instanceof DamagedInputError)
        throw refuse('InvalidRun', `The message cannot be read: ${error.message}.`);
      throw error;
    }
  }
}

/** What a run that replays a recording shows as its model. */
const RECORDING = { provider: 'boxwright', name: 'recording' } as const;

/** The agent with the model that its run asks for, and no other one: what answers is what is evaluated. */
function withModelOf({ spec: { model, recording } }: AgentRun, agent: GatewayAgent): GatewayAgent {
  const chosen = recording === undefined ? model : RECORDING;
  if (chosen === undefined) return agent;
  const { provider = agent.spec.provider, name } = chosen;
  const { fallbackModels: _others, ...spec } = agent.spec;
  return { ...agent, spec: { ...spec, provider, model: name } };
}

function refuse(reason: RunOutcome['reason'], what: string): RunRefusedError {
  return new RunRefusedError(outcomeOf(reason, what));
}

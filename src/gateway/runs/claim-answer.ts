/** The answer to a claim, made from what was gathered: pure. */
import { originOf } from '../../api/names.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { PROTOCOL_VERSION, type ClaimAnswer } from '../../protocol/run.js';
import { defaultModelOf } from '../../models/catalog.js';
import { fallbacksOf } from '../../models/fallbacks.js';
import type { ModelAccess } from '../providers/model-access.js';
import { isProvider, PROVIDER_APIS } from '../providers/providers.js';
import type { RunInput } from './run-inputs.js';
import { sessionIdOf } from '../../run/session/key.js';
import type { GatewayAgent } from '../../projections/agent.js';
import type { GatewayBox } from '../../projections/box.js';

/** Steps of a run whose agent names no limit (spec 2, stepLimit). */
const DEFAULT_STEP_LIMIT = 50;
/** A cancellation rides back on the answer to a heartbeat, which costs no write: this bounds how late it can come. */
const MAX_HEARTBEAT_SECONDS = 4;
/** Seconds between two reports at the beginning of a run. */
const REPORT_SECONDS = 5;
/** What `status.model` and requests say when the agent names no model. */
const DEFAULT_MODEL = 'default';

/** Lower of the limits of agent and run; an agent that was deleted meanwhile counts with the default. */
export function stepLimitOf(agent: GatewayAgent | undefined, run: AgentRun): number {
  return Math.min(agent?.spec.stepLimit ?? DEFAULT_STEP_LIMIT, run.spec.limits?.stepLimit ?? Infinity);
}

/** The model of an agent in a Box: what the agent names, else what the Box has behind its provider. */
export function modelOf(agent: GatewayAgent, box: GatewayBox): string {
  if (agent.spec.model !== undefined) return agent.spec.model;
  const { provider } = agent.spec;
  if (provider === 'boxwright') return box.engine ?? box.endpoint?.model ?? DEFAULT_MODEL;
  return defaultModelOf(provider) ?? DEFAULT_MODEL;
}

/** Tokens that the model can read, where that is known. Never rejects. */
export async function contextWindowOf(
  { agent, box }: Pick<RunInput, 'agent' | 'box'>,
  catalog: ModelAccess['catalog'],
): Promise<number | undefined> {
  const { provider } = agent.spec;
  if (provider !== 'boxwright') return await catalog.contextWindowOf(provider, modelOf(agent, box));
  return box.engine === undefined ? box.endpoint?.contextWindow : undefined;
}

/** What the run goes on with when its model does not serve. Never rejects. */
export async function fallbacksIn(
  { agent, box }: Pick<RunInput, 'agent' | 'box'>,
  catalog: ModelAccess['catalog'],
): Promise<Pick<ClaimAnswer, 'fallbacks'>> {
  const { fallbackModels = [] } = agent.spec;
  if (fallbackModels.length === 0) return {};
  const fallbacks = fallbacksOf(fallbackModels, agent.spec.provider).map(async ({ provider, model }) => {
    const spec = { ...agent.spec, provider, model };
    const contextWindow = await contextWindowOf({ agent: { ...agent, spec }, box }, catalog);
    const known = contextWindow === undefined ? {} : { contextWindow };
    return { provider, model, basePath: basePathOf(provider), ...known };
  });
  return { fallbacks: await Promise.all(fallbacks) };
}

/** Base URL of a provider's SDK, as a path on the gateway. */
export function basePathOf(provider: string): string {
  return `/gateway/${provider}/${isProvider(provider) ? PROVIDER_APIS[provider].version : 'v1'}`;
}

/** Everything that the runner needs. `run` is the claimed run. */
export function answerOf(run: AgentRun, input: RunInput, contextWindow: number | undefined): ClaimAnswer {
  const { agent, box } = input;
  const claim = run.status?.claim;
  if (claim === undefined) throw new Error(`run ${run.metadata.name} is not claimed`);
  const { temperature, reasoning, maxOutputTokens, compactAt, provider } = agent.spec;
  return {
    protocol: PROTOCOL_VERSION,
    epoch: claim.epoch,
    gatewayAddress: claim.gatewayAddress,
    run: {
      namespace: run.metadata.namespace ?? '',
      name: run.metadata.name,
      sessionId: sessionIdOf(run),
      origin: originOf(run),
    },
    agent: {
      handle: agent.spec.handle ?? agent.name,
      name: agent.spec.name,
      description: agent.spec.description,
      soul: agent.spec.soul,
      tools: { ...agent.spec.tools },
    },
    model: {
      provider,
      model: modelOf(agent, box),
      basePath: basePathOf(provider),
      ...(temperature === undefined ? {} : { temperature }),
      ...(reasoning === undefined ? {} : { reasoning }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      ...(compactAt === undefined ? {} : { compactAt }),
      ...(contextWindow === undefined ? {} : { contextWindow }),
    },
    ...outputSchemaOf(agent),
    message: input.message,
    ...(input.files.length === 0 ? {} : { files: [...input.files] }),
    history: input.history,
    ...(input.resume === undefined ? {} : { opening: input.resume.opening }),
    ...(input.resume?.approved === undefined ? {} : { approved: input.resume.approved }),
    limits: {
      stepLimit: stepLimitOf(agent, run),
      executionSeconds: Math.min(box.executionSeconds, run.spec.limits?.executionSeconds ?? Infinity),
    },
    intervals: {
      heartbeatSeconds: Math.max(1, Math.min(MAX_HEARTBEAT_SECONDS, Math.floor(box.heartbeatSeconds / 3))),
      reportSeconds: REPORT_SECONDS,
    },
  };
}

/** A text in the place of a schema says why there is none. */
function outputSchemaOf({ outputSchema }: GatewayAgent): Pick<ClaimAnswer, 'outputSchema'> {
  if (outputSchema === undefined) return {};
  return { outputSchema: 'text' in outputSchema ? outputSchema.text : JSON.stringify(outputSchema.problem) };
}

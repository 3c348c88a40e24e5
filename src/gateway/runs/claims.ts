/**
 * The claim of a run by its pod: a compare-and-swap on the status, answered with the whole input of the run. The same pod
 * gets the same answer again; another pod 409; an ended run 410.
 */
import { invalidStatusFields } from '../../kube/errors.js';
import { outcomeOf, type RunOutcome } from '../../run/outcome.js';
import { formatMicroUsd } from '../../run/usage/money.js';
import { isCancelRequested, isTerminal } from '../../run/status.js';
import { withWarnings } from '../../run/warnings.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { ClaimAnswer, ClaimRequest } from '../../protocol/run.js';
import { isoNow, type Clock } from '../../runtime/clock.js';
import { approvalsOf } from '../tools/approvals.js';
import type { AbilitiesReader } from '../tools/abilities.js';
import type { RunIdentity } from '../auth/run-authenticator.js';
import { GatewayError, runEnded } from '../errors.js';
import type { ClaimServers } from '../mcp/claim-servers.js';
import type { GatewayMetrics } from '../metrics.js';
import type { ModelAccess } from '../providers/model-access.js';
import { answerOf, contextWindowOf, fallbacksIn, modelOf } from './claim-answer.js';
import { RunRefusedError, type RunInput, type RunInputs } from './run-inputs.js';
import type { RunFinisher } from './finishes.js';
import type { GatewaySelf, Ownership } from './ownership.js';
import type { RunStore } from './run-store.js';
import type { ServedRuns } from './served-runs.js';

export interface ClaimsOptions {
  self: GatewaySelf;
  clock: Clock;
  store: RunStore;
  served: ServedRuns;
  ownership: Pick<Ownership, 'resolve'>;
  inputs: Pick<RunInputs, 'gather'>;
  finisher: Pick<RunFinisher, 'refuse'>;
  abilities: Pick<AbilitiesReader, 'of'>;
  mcpServers: Pick<ClaimServers, 'of'>;
  catalog: ModelAccess['catalog'];
  metrics: Pick<GatewayMetrics, 'claimed'>;
}

export class Claims {
  readonly #options: ClaimsOptions;

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  /** Rejects with 403, 409, 410 or 421; a run that cannot be executed is finished and answers 410. */
  async claim(identity: RunIdentity, request: ClaimRequest): Promise<ClaimAnswer> {
    if (request.podUid !== identity.podUid) throw new GatewayError(403, 'the token belongs to another pod');
    if (request.protocol < 1) throw new GatewayError(400, 'the protocol version must be 1 or higher');
    const { store } = this.#options;
    const ref = { namespace: identity.namespace, name: identity.runName };
    const known = await store.find(ref);
    if (known.status?.claim === undefined) expectClaimable(known);
    else await this.#options.ownership.resolve(identity);
    const input = await this.#inputOf(known, identity);
    // Before the claim: a Secret that cannot be read now must not leave a claimed run behind.
    const mcp = await this.#options.mcpServers.of(input.agent);
    const { warnings: lacks = [] } = mcp;
    const warnings = [...input.warnings, ...lacks];
    const claimedNow =
      known.status?.claim === undefined &&
      (await this.#takeOwnership(identity, { ...input, warnings, hasBrowser: request.hasBrowser }));
    const served = await this.#options.ownership.resolve(identity);
    if (claimedNow) this.#options.served.startLog(served);
    const run = await store.find(ref);
    // A recording is not compacted: its answers do not follow from what is read.
    const contextWindow =
      run.spec.recording === undefined ? await contextWindowOf(input, this.#options.catalog) : undefined;
    const abilities = this.#options.abilities.of(run, input.agent, input.box);
    return {
      ...answerOf(run, input, contextWindow),
      ...(await fallbacksIn(input, this.#options.catalog)),
      abilities,
      ...mcp,
      warnings,
      lacks,
    };
  }

  /** True when this call claimed the run; otherwise somebody else did meanwhile, and the claim says who. */
  async #takeOwnership(identity: RunIdentity, input: RunInput & Pick<ClaimRequest, 'hasBrowser'>): Promise<boolean> {
    const { store, self, clock, metrics } = this.#options;
    const ref = { namespace: identity.namespace, name: identity.runName };
    const { isWritten } = await store
      .update(ref, (run) => {
        expectClaimable(run);
        const now = isoNow(clock);
        const withoutBrowser = input.hasBrowser === false && input.agent.spec.tools.browser;
        const lacks = withoutBrowser ? { withoutBrowser } : {};
        const claim = { podUid: identity.podUid, podName: identity.podName, at: now, ...self, epoch: 1, ...lacks };
        const { provider } = input.agent.spec;
        const facts = {
          provider,
          model: modelOf(input.agent, input.box),
          ...(input.untrusted ? { untrusted: true } : {}),
          ...(input.warnings.length === 0 ? {} : { warnings: [...withWarnings([], input.warnings)] }),
          ...(input.agent.outputSchema === undefined ? {} : { structured: true }),
          ...approvalsOf(input),
          ...budgetOf(identity),
        };
        return { type: 'claimed', claim, facts, now };
      })
      .catch(async (error: unknown) => {
        const invalid = [...invalidStatusFields(error)];
        if (invalid.length === 0) throw error;
        // It would be refused again and again until the deadline.
        const what = `Kubernetes found the claim of the run invalid: ${invalid.join(', ')}.`;
        return await this.#refuse(await store.find(ref), outcomeOf('InvalidRun', what));
      });
    if (isWritten) metrics.claimed();
    return isWritten;
  }

  async #inputOf(run: AgentRun, identity: RunIdentity): Promise<RunInput> {
    try {
      return await this.#options.inputs.gather(run, identity.previousRun);
    } catch (error) {
      if (!(error instanceof RunRefusedError)) throw error;
      return await this.#refuse(run, error.outcome);
    }
  }

  async #refuse(run: AgentRun, outcome: RunOutcome): Promise<never> {
    await this.#options.finisher.refuse(run, outcome);
    throw runEnded('error');
  }
}

/** Throws 410 for a run that must not start any more. */
function expectClaimable(run: AgentRun): void {
  if (isTerminal(run)) throw runEnded(run.status?.phase);
  // Nothing was executed yet: the controller writes the outcome.
  if (isCancelRequested(run)) throw runEnded('cancelled');
}

/** What the controller granted at the admission, as it wrote it on the Job. */
function budgetOf({ grant }: RunIdentity): Pick<NonNullable<AgentRun['status']>, 'budget'> {
  if (grant === undefined) return {};
  const { at, tokens, microUsd } = grant;
  const granted = {
    ...(tokens === undefined ? {} : { tokens }),
    ...(microUsd === undefined ? {} : { usd: formatMicroUsd(microUsd) }),
  };
  return { budget: { at, granted } };
}

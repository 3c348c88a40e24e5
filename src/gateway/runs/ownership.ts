/**
 * Which gateway pod serves a run: the one in its claim. Others send the caller there, unless that pod
 * is gone, unready or being deleted; then one of them takes over by compare-and-swap with the next
 * fencing token (`claim.epoch`).
 * See docs/architecture.md#run-reports-and-ownership.
 */
import { isTerminal } from '../../run/status.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import type { RunIdentity } from '../auth/run-authenticator.js';
import { GatewayError, misdirected, runEnded } from '../errors.js';
import type { GatewayMetrics } from '../metrics.js';
import type { RunStore } from './run-store.js';
import type { ServedRun, ServedRuns } from './served-runs.js';
import type { PeerPod } from '../../projections/pod.js';

/** This gateway pod, as a claim names it. */
export interface GatewaySelf {
  gatewayPod: string;
  gatewayUid: string;
  /** host:port */
  gatewayAddress: string;
}

export interface OwnershipOptions {
  self: GatewaySelf;
  clock: Clock;
  store: RunStore;
  served: ServedRuns;
  /** The gateway pods of the installation. */
  gateways: { values(): Iterable<PeerPod> };
  metrics: Pick<GatewayMetrics, 'tookOver'>;
  log: Logger;
}

export class Ownership {
  readonly #options: OwnershipOptions;

  constructor(options: OwnershipOptions) {
    this.#options = options;
  }

  /**
   * The run, served by this pod. `toldToken` is the fencing token that the caller was told last. Rejects with 409 (not claimed, or claimed by
   * another pod), 410 (ended), 421 (another gateway pod serves it).
   */
  async resolve(identity: RunIdentity, toldToken = 0): Promise<ServedRun> {
    const served = await this.#resolve(identity, toldToken);
    // Every call of the run's own pod is a sign of life.
    served.heardAt = this.#options.clock.monotonic();
    return served;
  }

  async #resolve(identity: RunIdentity, toldToken: number): Promise<ServedRun> {
    const { store, served, self } = this.#options;
    const ref = { namespace: identity.namespace, name: identity.runName };
    let run = await store.find(ref);
    // The caller has met a newer owner than our watch.
    if (toldToken > (run.status?.claim?.epoch ?? 0)) run = await store.fetch(ref);
    const claim = expectClaimOf(run, identity);
    if (claim.gatewayUid === self.gatewayUid) return served.take(run);
    if (this.#isServing(claim.gatewayUid)) throw misdirected(claim);
    return this.#takeOver(identity, claim);
  }

  async #takeOver(identity: RunIdentity, claimed: Claim): Promise<ServedRun> {
    const { store, served, self, metrics, log } = this.#options;
    const ref = { namespace: identity.namespace, name: identity.runName };
    const { run } = await store.update(ref, (current) => {
      expectClaimOf(current, identity);
      return { type: 'taken-over', from: claimed.gatewayUid, by: self };
    });
    const claim = expectClaimOf(run, identity);
    if (claim.gatewayUid !== self.gatewayUid) throw misdirected(claim);
    metrics.tookOver();
    log.info({ namespace: ref.namespace, run: ref.name, epoch: claim.epoch }, 'took over a run');
    return served.take(run);
  }

  #isServing(uid: string): boolean {
    for (const pod of this.#options.gateways.values()) if (pod.uid === uid) return pod.serving;
    return false;
  }
}

type Claim = NonNullable<NonNullable<AgentRun['status']>['claim']>;

/** The claim of a live run by the caller's pod; throws 409 or 410. */
export function expectClaimOf(run: AgentRun, identity: Pick<RunIdentity, 'podUid'>): Claim {
  if (isTerminal(run)) throw runEnded(run.status?.phase);
  const claim = run.status?.claim;
  if (claim === undefined)
    throw new GatewayError(409, 'the run is not claimed: claim it first', { type: 'NotClaimed' });
  if (claim.podUid !== identity.podUid) {
    throw new GatewayError(409, 'another pod holds the run', { type: 'ClaimedByOther' });
  }
  return claim;
}

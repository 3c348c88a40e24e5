/**
 * Finds the UIDs in `folding` whose runs are gone from etcd for good, or have lost our finalizer for good: those count no more,
 * however long others hold them. "Not in my cache" is no proof, since a cache may be older than the run. So the position of the API server is read after the UIDs were seen; once the cache of runs has reached that
 * position and has no such run, the run is gone, as UIDs never come back. No names of runs are needed, so what a crash left
 * behind is found too, and one small read serves all UIDs of an owner.
 */
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { Informer, KubeApi } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import type { ControllerRun } from '../../projections/agent-run.js';

export interface SweepDependencies {
  api: Pick<KubeApi, 'list'>;
  clock: Pick<Clock, 'after'>;
  runs: Pick<Informer<ControllerRun>, 'waitForResourceVersion'> & {
    /** Whether it shows a run of this UID that is not released. */
    holds(uid: string): boolean;
  };
  /** The namespace in which the position is read; it needs no runs in it. */
  namespace: string;
}

/** A quiet watch moves on with the API server's bookmarks, about once a minute: too long to wait for. */
const POSITION_WAIT_MS = 1_000;

interface Pending {
  /** Position of the API server after `uids` were in `folding`. */
  version: string;
  uids: readonly string[];
}

export class RollUpSweep {
  readonly #pending = new Map<string, Pending>();

  constructor(private readonly deps: SweepDependencies) {}

  /** The UIDs of an owner's `folding` that are confirmed to be gone; empty while the cache is not far enough. */
  async confirmGone(owner: string, folding: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    const candidates = folding.filter((uid) => !this.deps.runs.holds(uid));
    if (candidates.length === 0) {
      this.#pending.delete(owner);
      return new Set();
    }
    const pending = this.#pending.get(owner) ?? (await this.#read(owner, candidates, signal));
    if (!(await this.#isReached(pending.version, signal))) return new Set();
    this.#pending.delete(owner);
    return new Set(pending.uids.filter((uid) => !this.deps.runs.holds(uid)));
  }

  /** An empty list still tells the position. */
  async #read(owner: string, uids: readonly string[], signal: AbortSignal): Promise<Pending> {
    const { namespace } = this.deps;
    const list = await this.deps.api.list(AgentRuns, { namespace, fieldSelector: 'metadata.name=-', signal });
    const pending = { version: list.resourceVersion, uids };
    this.#pending.set(owner, pending);
    return pending;
  }

  async #isReached(version: string, signal: AbortSignal): Promise<boolean> {
    const timeUp = new AbortController();
    const cancel = this.deps.clock.after(POSITION_WAIT_MS, () => timeUp.abort());
    try {
      return await this.deps.runs.waitForResourceVersion(version, AbortSignal.any([signal, timeUp.signal]));
    } finally {
      cancel();
    }
  }
}

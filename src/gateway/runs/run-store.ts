/**
 * AgentRuns as this process knows them: the informer's projections, overlaid with the answers of own writes until the watch
 * brings them. All status writes of the gateway go through here.
 * See docs/architecture.md#status-ownership.
 */
import { objectKey } from '../../api/meta.js';
import { AgentRuns, type AgentRun } from '../../api/v1alpha1/agent-run.js';
import { isConflict, isNotFound } from '../../kube/errors.js';
import type { Informer, KubeApi, ObjectRef } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import { GatewayError, tryAgain } from '../errors.js';
import { RunStatusWriter } from '../../run/status-writer.js';
import type { StatusEvent } from '../../run/transition.js';
import { sessionKeyOf } from '../../run/session/key.js';
import { BY_SESSION, projectGatewayRun } from '../../projections/agent-run.js';

const MAX_TRIES = 6;

export interface RunStoreOptions {
  api: Pick<KubeApi, 'get' | 'patch'>;
  cache: Pick<Informer<AgentRun>, 'get' | 'byIndex' | 'onChange' | 'waitForResourceVersion'>;
  log: Pick<Logger, 'warn'>;
}

/** What happened to a run, or undefined to write nothing. Called again with the newer run after a conflict. */
export type DecideEvent = (run: AgentRun) => StatusEvent | undefined;

export interface Updated {
  /** The run as it then is. */
  run: AgentRun;
  /** Whether the event changed it. */
  isWritten: boolean;
}

export interface UpdateOptions {
  /** Starts with a live read: for runs of which the cache keeps only a part. */
  live?: boolean;
}

export class RunStore {
  readonly #options: RunStoreOptions;
  readonly #status: RunStatusWriter;
  readonly #newer = new Map<string, AgentRun>();

  constructor(options: RunStoreOptions) {
    this.#options = options;
    this.#status = new RunStatusWriter(options.api, 'gateway', options.log);
    options.cache.onChange(({ key, current }) => {
      const own = this.#newer.get(key);
      if (own !== undefined && (current === undefined || !isNewer(own, current))) this.#newer.delete(key);
    });
  }

  /** The newest known version, without its compressed input; of a finished run only a part (see projectGatewayRun). */
  get(ref: ObjectRef): AgentRun | undefined {
    const key = objectKey(ref);
    return this.#newer.get(key) ?? this.#options.cache.get(key);
  }

  /** The known run, else one live GET. Rejects with 404. */
  async find(ref: ObjectRef): Promise<AgentRun> {
    return this.get(ref) ?? projectGatewayRun(await this.fetch(ref));
  }

  /** The whole run from the API server. Rejects with 404. */
  async fetch(ref: ObjectRef): Promise<AgentRun> {
    try {
      const run = await this.#options.api.get(AgentRuns, ref);
      this.#remember(run);
      return run;
    } catch (error) {
      if (isNotFound(error)) throw notThere();
      throw error;
    }
  }

  /** Known runs of the same session. */
  ofSession(run: AgentRun): readonly AgentRun[] {
    return this.#options.cache.byIndex(BY_SESSION, sessionKeyOf(run));
  }

  /** Compare-and-swap of the status; a conflict reads the run again and decides again. */
  async update(ref: ObjectRef, decide: DecideEvent, options: UpdateOptions = {}): Promise<Updated> {
    let run = options.live === true ? await this.fetch(ref) : await this.find(ref);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const event = decide(run);
      try {
        const written = event === undefined ? undefined : await this.#status.apply(run, event);
        return written === undefined ? { run, isWritten: false } : { run: this.#remember(written), isWritten: true };
      } catch (error) {
        if (isNotFound(error)) throw notThere();
        if (!isConflict(error)) throw error;
      }
      run = await this.fetch(ref);
    }
    throw tryAgain('the status of the run changes too often');
  }

  #remember(run: AgentRun): AgentRun {
    const projected = projectGatewayRun(run);
    const key = objectKey(run.metadata);
    const cached = this.#options.cache.get(key);
    // The watch may be ahead of the answer.
    if (cached !== undefined && !isNewer(projected, cached)) return projected;
    this.#newer.set(key, projected);
    if (cached === undefined) void this.#forgetIfGone(key, projected);
    return projected;
  }

  /** A run that a watch at or past the answer does not know was deleted meanwhile, and no event will tell so any more. */
  async #forgetIfGone(key: string, answered: AgentRun): Promise<void> {
    const { cache } = this.#options;
    const version = answered.metadata.resourceVersion ?? '';
    const isReached = await cache.waitForResourceVersion(version, new AbortController().signal);
    if (isReached && cache.get(key) === undefined && this.#newer.get(key) === answered) this.#newer.delete(key);
  }
}

function notThere(): GatewayError {
  return new GatewayError(404, 'the run is not there any more', { type: 'RunNotFound' });
}

/** Versions of one kind are numbers that rise (Kubernetes 1.35 says so; etcd always did). */
function isNewer(one: AgentRun, other: AgentRun): boolean {
  const a = one.metadata.resourceVersion ?? '';
  const b = other.metadata.resourceVersion ?? '';
  return a.length === b.length ? a > b : a.length > b.length;
}

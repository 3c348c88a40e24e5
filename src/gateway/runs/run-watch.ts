/**
 * Keeps the served runs equal to what the API server says, stores their progress, and ends runs that are silent for
 * longer than their Box allows. The clock of a run starts anew when this process starts or takes it over, and stands
 * still while the API server cannot check tokens: a run must not pay for an outage of ours.
 */
import { boxOfNamespace } from '../../api/names.js';
import { isTerminal } from '../../run/status.js';
import { parseObjectKey } from '../../api/meta.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { Cache, CacheChange } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import { GatewayError } from '../errors.js';
import type { RunFinisher } from './finishes.js';
import type { GatewaySelf } from './ownership.js';
import type { Progress } from './progress.js';
import { logFields, type ServedRun, type ServedRuns } from './served-runs.js';
import type { GatewayBox } from '../../projections/box.js';

const TICK_MS = 1_000;
/** A tick this late means that the process itself stood still. */
const LATE_MS = 10_000;
/** Used until the Box is in the cache. */
const DEFAULT_HEARTBEAT_SECONDS = 90;

export interface RunWatchOptions {
  self: Pick<GatewaySelf, 'gatewayUid'>;
  clock: Clock;
  runs: Pick<Cache<AgentRun>, 'get' | 'values' | 'onChange'>;
  boxes: Pick<Cache<GatewayBox>, 'get'>;
  served: ServedRuns;
  finisher: Pick<RunFinisher, 'lose' | 'settle'>;
  progress: Progress;
  /** When the API server last could not check a token, on the monotonic clock. */
  outage: { readonly failedAt: number };
  log: Logger;
}

export class RunWatch {
  readonly name = 'run watch';
  readonly #options: RunWatchOptions;
  readonly #busy = new Set<ServedRun>();
  readonly #stops: (() => void)[] = [];
  #stopped = false;
  #tickedAt = 0;
  #stoodStillAt = -Infinity;

  constructor(options: RunWatchOptions) {
    this.#options = options;
  }

  /** To be called when the caches are filled. */
  start(): void {
    const { runs, clock } = this.#options;
    this.#stops.push(runs.onChange((change) => this.#changed(change)));
    for (const run of runs.values()) this.#look(run);
    this.#tickedAt = clock.monotonic();
    this.#schedule();
  }

  stop(): Promise<void> {
    this.#stopped = true;
    for (const stop of this.#stops) stop();
    return Promise.resolve();
  }

  #changed({ key, current }: CacheChange<AgentRun>): void {
    if (current !== undefined) return this.#look(current);
    const { namespace = '', name } = parseObjectKey(key);
    const served = this.#options.served.get({ namespace, name });
    if (served !== undefined) this.#options.served.drop(served);
  }

  #look(run: AgentRun): void {
    const { served, self } = this.#options;
    const known = served.get({ namespace: run.metadata.namespace ?? '', name: run.metadata.name });
    if (known !== undefined && known.uid !== run.metadata.uid) return served.drop(known);
    const { claim, usageFinal } = run.status ?? {};
    if (claim === undefined) return;
    if (isTerminal(run)) {
      if (known !== undefined && usageFinal === true) served.drop(known);
      // Without usageFinal somebody else wrote the outcome; the next tick adds what this pod knows.
      return;
    }
    if (claim.gatewayUid === self.gatewayUid) served.take(run);
    else if (known !== undefined && known.fencingToken < claim.epoch) served.drop(known);
  }

  #schedule(): void {
    this.#stops.push(
      this.#options.clock.after(TICK_MS, () => {
        this.#stops.length = 1;
        if (this.#stopped) return;
        this.#tick();
        this.#schedule();
      }),
    );
  }

  #tick(): void {
    const { clock, served, runs } = this.#options;
    const now = clock.monotonic();
    if (now - this.#tickedAt > LATE_MS) this.#stoodStillAt = now;
    this.#tickedAt = now;
    for (const one of served.list()) {
      if (this.#busy.has(one)) continue;
      const run = runs.get(`${one.ref.namespace}/${one.ref.name}`);
      if (run !== undefined && isTerminal(run)) void this.#act(one, () => this.#options.finisher.settle(one));
      else if (this.#isLost(one, now)) void this.#act(one, () => this.#options.finisher.lose(one, this.#boundOf(one)));
      else if (this.#options.progress.isDue(one)) void this.#act(one, () => this.#options.progress.save(one));
    }
  }

  /** Stores what this pod alone knows, before another one takes its runs over. */
  async flush(): Promise<void> {
    const { served, progress } = this.#options;
    await Promise.all(served.list().map((one) => this.#act(one, () => progress.save(one))));
  }

  #isLost(served: ServedRun, now: number): boolean {
    const since = Math.max(served.heardAt, this.#options.outage.failedAt, this.#stoodStillAt);
    return now - since >= this.#boundOf(served) * 1000;
  }

  #boundOf(served: ServedRun): number {
    const box = this.#options.boxes.get(boxOfNamespace(served.ref.namespace) ?? '');
    return box?.heartbeatSeconds ?? DEFAULT_HEARTBEAT_SECONDS;
  }

  /** One at a time for each run; a failure is logged, and the next tick tries again. */
  async #act(served: ServedRun, work: () => Promise<void>): Promise<void> {
    this.#busy.add(served);
    try {
      await work();
    } catch (err) {
      // Deleted while a call of its pod was under way: the event that said so came before the run was served.
      if (err instanceof GatewayError && err.type === 'RunNotFound') return this.#options.served.drop(served);
      this.#options.log.warn({ err, ...logFields(served) }, 'the status of a run was not written; trying again');
    } finally {
      this.#busy.delete(served);
    }
  }
}

/** Reports and heartbeats of a run: idempotent by (run, seq); cancel rides back on the answers. */
import { isCancelRequested, isTerminal } from '../../run/status.js';
import { warningsIn, withWarnings } from '../../run/warnings.js';
import type { EventsAnswer, EventsRequest } from '../../protocol/run.js';
import { SequenceConflictError } from '../../transcript/log.js';
import type { RunIdentity } from '../auth/run-authenticator.js';
import { GatewayError, runEnded } from '../errors.js';
import type { KeyedLock } from '../keyed-lock.js';
import type { GatewayMetrics } from '../metrics.js';
import type { Ownership } from './ownership.js';
import type { RunStore } from './run-store.js';
import type { ServedRun, ServedRuns } from './served-runs.js';
import type { Steering } from './steering.js';

export interface ReportsOptions {
  store: RunStore;
  served: ServedRuns;
  ownership: Pick<Ownership, 'resolve'>;
  lock: KeyedLock;
  steering: Pick<Steering, 'waitingFor' | 'taken'>;
  metrics: Pick<GatewayMetrics, 'reported'>;
}

export class Reports {
  readonly #options: ReportsOptions;

  constructor(options: ReportsOptions) {
    this.#options = options;
  }

  /** Stores the events; what is only told, and a heartbeat, write nothing. Rejects with 409, 410 or 421. */
  async report(identity: RunIdentity, request: EventsRequest): Promise<EventsAnswer> {
    const { lock, store, metrics } = this.#options;
    const served = await this.#options.ownership.resolve(identity, request.epoch);
    const { events, live = [] } = request;
    if (events.length > 0) await lock.run(served.uid, () => this.#store(served, request));
    served.live.tell(live);
    metrics.reported(events.length > 0 ? 'stored' : live.length > 0 ? 'live' : 'heartbeat');
    const run = await store.find(served.ref);
    if (isTerminal(run)) throw runEnded(run.status?.phase);
    const ack = served.log?.ack ?? 0;
    const answer = { ack, cancel: isCancelRequested(run), epoch: served.fencingToken, live: served.live.last };
    return { ...answer, steer: await this.#options.steering.waitingFor(run) };
  }

  async #store(served: ServedRun, { events }: EventsRequest): Promise<void> {
    const { store, metrics } = this.#options;
    const run = store.get(served.ref);
    // It may have ended while this report waited for the one before it.
    if (run !== undefined && isTerminal(run)) throw runEnded(run.status?.phase);
    const log = await this.#options.served.logOf(served, run);
    served.warnings = withWarnings(served.warnings, warningsIn(events));
    try {
      // Whoever follows the run is told everything, also what is stored before it was told.
      served.live.tell(events);
      await log.append(events);
      served.live.stored(log.ack);
      await this.#options.steering.taken(served.ref, events);
    } catch (error) {
      if (!(error instanceof SequenceConflictError)) throw error;
      metrics.reported('conflict');
      throw new GatewayError(409, error.message, { type: 'SequenceConflict' });
    }
  }
}

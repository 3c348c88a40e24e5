/**
 * Messages to runs that work. Each is an AgentRun of the session, stored before the caller is answered, that waits like any
 * other. While it waits, the gateway offers its message to the run that works; when the transcript of that one says that it
 * took it, it ends as Delivered. Else it is executed when its turn comes: so no message is lost.
 * See docs/architecture.md#messages-to-a-working-run.
 */
import { objectKey } from '../../api/meta.js';
import { acceptedAt } from '../../api/names.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { ObjectRef } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { RunEvent, SteerMessage } from '../../protocol/run.js';
import { DamagedInputError, messageOf } from '../../run/message.js';
import { outcomeOf } from '../../run/outcome.js';
import { sessionKeyOf } from '../../run/session/key.js';
import { isCancelRequested, isClaimed, isTerminal } from '../../run/status.js';
import { isoNow, type Clock } from '../../runtime/clock.js';
import { compare } from '../../runtime/compare.js';
import { orMissing } from '../errors.js';
import type { GatewayMetrics } from '../metrics.js';
import type { RunStore } from './run-store.js';

/** Offered at once; the next ones follow when these are taken. */
const MAX_OFFERED = 4;

/** Compressed messages that are held; each has at most 128 KiB. */
const MAX_TEXTS = 64;

export interface SteeringOptions {
  store: Pick<RunStore, 'find' | 'ofSession' | 'fetch' | 'update'>;
  clock: Clock;
  metrics: Pick<GatewayMetrics, 'finished'>;
  log: Pick<Logger, 'info' | 'warn'>;
}

export class Steering {
  readonly #options: SteeringOptions;
  /** Texts that are stored compressed, by UID: each is read once for as long as it waits. */
  readonly #texts = new Map<string, string>();

  constructor(options: SteeringOptions) {
    this.#options = options;
  }

  /** What this run should be told before its next step, the oldest first. */
  async waitingFor(run: AgentRun): Promise<SteerMessage[]> {
    const waiting = this.#options.store
      .ofSession(run)
      .filter((other) => isFor(run, other))
      .sort((a, b) => compare(acceptedAt(a), acceptedAt(b)) || compare(a.metadata.name, b.metadata.name))
      .slice(0, MAX_OFFERED);
    const messages: SteerMessage[] = [];
    for (const one of waiting) {
      const text = await this.#textOf(one);
      if (text !== undefined) messages.push({ run: one.metadata.name, text });
    }
    return messages;
  }

  /** These events of the run are stored: what it took of the messages is done with. May be repeated. */
  async taken(ref: ObjectRef, events: readonly RunEvent[]): Promise<void> {
    const names = events.flatMap((event) => {
      if (event.type !== 'message' || event.message.role !== 'user') return [];
      return event.message.steered ?? [];
    });
    if (names.length === 0) return;
    const by = await this.#options.store.find(ref);
    for (const name of names) await this.#deliver({ ...ref, name }, by);
  }

  async #deliver(ref: ObjectRef, by: AgentRun): Promise<void> {
    const { store, clock, metrics, log } = this.#options;
    const outcome = outcomeOf('Delivered', `The message was given to run ${by.metadata.name}, which was at work.`);
    const updated = await orMissing(
      store.update(ref, (run) => {
        // The runner named it: only what it was offered is its to end.
        if (!isFor(by, run)) return undefined;
        return { type: 'finished', by: 'gateway', outcome, now: isoNow(clock) };
      }),
    );
    if (updated?.isWritten !== true) return;
    this.#texts.delete(updated.run.metadata.uid ?? '');
    metrics.finished('done', outcome.reason);
    log.info(
      { namespace: ref.namespace, run: by.metadata.name, from: ref.name },
      'a message was given to a run at work',
    );
  }

  /** Undefined for one that cannot be read: it ends with the reason when its turn comes. */
  async #textOf(run: AgentRun): Promise<string | undefined> {
    if (run.spec.message !== undefined) return run.spec.message;
    const { uid = '', namespace = '', name } = run.metadata;
    const known = this.#texts.get(uid);
    if (known !== undefined) return known;
    try {
      const text = await messageOf((await this.#options.store.fetch({ namespace, name })).spec);
      this.#texts.set(uid, text);
      const [oldest] = this.#texts.keys();
      if (this.#texts.size > MAX_TEXTS && oldest !== undefined) this.#texts.delete(oldest);
      return text;
    } catch (error) {
      if (!(error instanceof DamagedInputError)) throw error;
      this.#options.log.warn({ run: objectKey(run.metadata) }, 'a message to a run at work cannot be read');
      return undefined;
    }
  }
}

/** Whether a run is a message to this one with which nobody has begun. */
function isFor(working: AgentRun, other: AgentRun): boolean {
  const waits = !isTerminal(other) && !isClaimed(other) && !isCancelRequested(other);
  const isOfSession = sessionKeyOf(other) === sessionKeyOf(working) && other.spec.agent === working.spec.agent;
  return other.spec.steer === true && waits && isOfSession;
}

/**
 * The runs that wait and work, kept up to date from cache events, and the reservations that limits-and-fairness.ts makes.
 * In memory only: after a restart it is rebuilt from runs and Jobs. A reservation counts as a working run at once, before
 * the informer shows its Job, so that a lagging cache never lets more runs start than a limit allows.
 */
import type { QueueReason } from '../../../run/reasons.js';
import type { Clock } from '../../../runtime/clock.js';
import { admit, goesBehind, isBefore, isBehindNewPods, waitReason } from './limits-and-fairness.js';
import type { AgentQueue, BoxQueue, Gate, QueueState, Share, Turn, WaitingRun } from './limits-and-fairness.js';

export interface QueuedRun extends WaitingRun {
  uid: string;
  /** Whether it holds a Job or a pod. */
  working: boolean;
  /** It works, and its pod has no node yet. */
  placing?: boolean;
  /** Its parent waits for it: it counts towards no limit of running runs, so that agents that call agents cannot block each other. */
  exempt?: boolean;
}

/** What the queue asks about Boxes and agents; undefined = not there. */
export interface QueueFacts {
  box(box: string): BoxFacts | undefined;
  agentGate(box: string, agent: string): Gate | undefined;
  /** Whether a budget holds the agent's runs back. Runs that a parent waits for start anyway; their gateway enforces the budget. */
  hasNoBudget(box: string, agent: string): boolean;
  /** Whether there is more than one Box. */
  hasManyBoxes(): boolean;
  /** Other Boxes that have a pod for which no node has room, where the pods of this Box ask for as much or more. */
  boxesInNeed(box: string): readonly string[];
}

/** What a Box says about its runs. */
export type BoxFacts = Pick<BoxQueue, 'gate' | 'maxRunning' | 'maxRunningPerAgent' | 'weight'>;

export interface RunQueueOptions {
  /** Runs of the installation that may work at once. */
  maxRunning: number;
  facts: QueueFacts;
  clock: Pick<Clock, 'monotonic'>;
}

interface Reservation {
  uid: string;
  /** On the monotonic clock. */
  until: number;
  /** The Job was created, the cache does not show it yet. */
  created: boolean;
}

interface AgentState {
  running: number;
  waiting: WaitingRun[];
}

/** After a sign that a Box cannot take runs, nothing is admitted there for this long; each new sign restarts the clock. */
export const BOX_PAUSE_MS = 30_000;
/** A reservation ends when its Job has not shown up by then; as Jobs are named after runs, a second attempt is harmless. */
const RESERVED_MS = 60_000;
/** One place in so many is for Boxes in which no run works, so that a first run never waits for the end of another Box's burst. */
const PLACES_PER_RESERVED = 10;

export class RunQueue {
  readonly #options: RunQueueOptions;
  readonly #runs = new Map<string, QueuedRun>();
  readonly #boxes = new Map<string, Map<string, AgentState>>();
  readonly #boxRunning = new Map<string, number>();
  readonly #boxPlacing = new Map<string, number>();
  readonly #busy = new Map<string, number>();
  /** Runs that count towards no limit, waiting or working. */
  readonly #exempt = new Map<string, QueuedRun>();
  readonly #reservations = new Map<string, Reservation>();
  readonly #pauses = new Map<string, { gate: Gate; until: number }>();
  readonly #listeners = new Set<(box: string) => void>();
  #running = 0;
  #turn: Turn | undefined;

  constructor(options: RunQueueOptions) {
    this.#options = options;
  }

  /** A run as the caches show it now; undefined when it is gone, has ended or will not be started. */
  update(key: string, run: QueuedRun | undefined): void {
    const reservation = this.#reservations.get(key);
    if (reservation !== undefined && (run === undefined || run.working || run.uid !== reservation.uid)) {
      this.#reservations.delete(key);
    }
    const next = run === undefined || !this.#reservations.has(key) ? run : admitted(run);
    const known = this.#runs.get(key);
    if (known !== undefined && next !== undefined && isSame(known, next)) return;
    if (known !== undefined) this.#take(known);
    if (next !== undefined) this.#put(next);
    this.#changed(next ?? known);
  }

  /** Calls back with the Box in which a run started or stopped waiting or working. Returns unsubscribe. */
  onChange(listener: (box: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Makes all reservations that the limits allow and returns the keys of the runs that got one now. */
  admitNext(): string[] {
    this.#dropExpired();
    const exempt = this.#admitExempt();
    const result = admit({
      running: this.#running,
      maxRunning: this.#options.maxRunning,
      reserved: this.#reservedPlaces(),
      boxes: this.#boxQueues(),
      busySessions: this.#busy,
      turn: this.#turn,
    });
    this.#turn = result.turn;
    for (const { key } of result.admitted) this.#reserve(key);
    return [...exempt, ...result.admitted.map(({ key }) => key)];
  }

  /** Whether the run has a reservation: it may have its Job, which the cache does not show yet. */
  hasReservation(key: string, uid: string): boolean {
    return this.#reservations.get(key)?.uid === uid;
  }

  /** Notes that the Job exists, so that nobody creates it again before the cache shows it. */
  jobCreated(key: string): void {
    const reservation = this.#reservations.get(key);
    if (reservation !== undefined) reservation.created = true;
  }

  isJobCreated(key: string): boolean {
    return this.#reservations.get(key)?.created === true;
  }

  /** Ends a reservation: the Job could not be created. */
  release(key: string): void {
    this.#reservations.delete(key);
    const run = this.#runs.get(key);
    if (run !== undefined) this.update(key, { ...run, working: false, placing: false });
  }

  /** The cluster takes no pods of this Box, for the given reason: admit nothing there for a while. */
  pause(box: string, gate: Gate): void {
    this.#pauses.set(box, { gate, until: this.#options.clock.monotonic() + BOX_PAUSE_MS });
  }

  /** Milliseconds until the next pause or reservation ends; undefined when there is none. */
  nextChangeMs(): number | undefined {
    const times = [...this.#pauses.values(), ...this.#reservations.values()].map(({ until }) => until);
    if (times.length === 0) return undefined;
    return Math.max(1, Math.min(...times) - this.#options.clock.monotonic());
  }

  /** Why the run waits; undefined when it does not. */
  reasonFor(key: string): QueueReason | undefined {
    const run = this.#runs.get(key);
    if (run === undefined || run.working) return undefined;
    if (run.exempt === true) return this.#gateOf(run) ?? 'SessionBusy';
    return waitReason(this.#stateOf(run));
  }

  /** Whether the run waits for nothing but the nodes of pods that its Box has got just now. */
  isBehindNewPods(key: string): boolean {
    const run = this.#runs.get(key);
    return run !== undefined && !run.working && run.exempt !== true && isBehindNewPods(this.#stateOf(run));
  }

  /** When the oldest run that waits was accepted, in milliseconds since the epoch; undefined when none waits. */
  oldestWaiting(): number | undefined {
    let oldest: number | undefined;
    for (const agents of this.#boxes.values()) {
      for (const { waiting } of agents.values()) {
        const [first] = waiting;
        if (first !== undefined && (oldest === undefined || first.acceptedAt < oldest)) oldest = first.acceptedAt;
      }
    }
    return oldest;
  }

  /** Runs of a Box: how many work and how many wait. */
  counts(box: string): { running: number; queued: number } {
    let queued = 0;
    for (const { waiting } of this.#boxes.get(box)?.values() ?? []) queued += waiting.length;
    const exempt = [...this.#exempt.values()].filter((run) => run.box === box);
    const working = exempt.filter((run) => run.working).length;
    return { running: (this.#boxRunning.get(box) ?? 0) + working, queued: queued + exempt.length - working };
  }

  #stateOf(run: QueuedRun): QueueState {
    const state = this.#boxes.get(run.box)?.get(run.agent);
    const older = (state?.waiting ?? []).find((other) => other.session === run.session);
    return {
      box: this.#boxLimits(run.box),
      agent: { gate: this.#waitingGate(run.box, run.agent), running: state?.running ?? 0 },
      sessionBusy: this.#busy.has(run.session) || (older !== undefined && older.key !== run.key),
    };
  }

  #admitExempt(): string[] {
    const admitted: string[] = [];
    for (const run of this.#exempt.values()) {
      if (run.working || this.#gateOf(run) !== undefined || this.#busy.has(run.session)) continue;
      admitted.push(run.key);
    }
    for (const key of admitted) this.#reserve(key);
    return admitted;
  }

  /** No limit holds it back, and no other Box, since its parent holds a node meanwhile; a paused agent or a full cluster does. */
  #gateOf({ box, agent }: QueuedRun): Gate | undefined {
    return this.#options.facts.agentGate(box, agent) ?? this.#gateOfBox(box);
  }

  #waitingGate(box: string, agent: string): Gate | undefined {
    const { facts } = this.#options;
    return facts.agentGate(box, agent) ?? (facts.hasNoBudget(box, agent) ? 'WaitingForBudget' : undefined);
  }

  #boxQueues(): BoxQueue[] {
    const queues: BoxQueue[] = [];
    for (const [box, agents] of this.#boxes) {
      const waiting: AgentQueue[] = [];
      for (const [agent, state] of agents) {
        if (state.waiting.length === 0) continue;
        waiting.push({ agent, gate: this.#waitingGate(box, agent), ...state });
      }
      if (waiting.length > 0) queues.push({ box, ...this.#boxLimits(box), agents: waiting });
    }
    return queues;
  }

  #boxLimits(box: string): Omit<BoxQueue, 'box' | 'agents'> {
    const { maxRunning = 0, maxRunningPerAgent = 0 } = this.#options.facts.box(box) ?? {};
    const gate = this.#gateOfBox(box) ?? (this.#leavesRoom(box) ? 'NoCapacity' : undefined);
    return { gate, placing: this.#boxPlacing.get(box) ?? 0, maxRunning, maxRunningPerAgent, ...this.#shareOf(box) };
  }

  #gateOfBox(box: string): Gate | undefined {
    const facts = this.#options.facts.box(box);
    return facts === undefined ? 'BoxNotReady' : (facts.gate ?? this.#pauseOf(box));
  }

  #shareOf(box: string): Share {
    return { running: this.#boxRunning.get(box) ?? 0, weight: this.#options.facts.box(box)?.weight ?? 1 };
  }

  /**
   * What becomes free in a full cluster is for the Box that has less of it: to the scheduler a new pod comes before one that it
   * could not place, so the pods of a burst would pass that Box's pod again and again.
   */
  #leavesRoom(box: string): boolean {
    const share = this.#shareOf(box);
    return this.#options.facts.boxesInNeed(box).some((other) => goesBehind(share, this.#shareOf(other)));
  }

  #reservedPlaces(): number {
    const { facts, maxRunning } = this.#options;
    return facts.hasManyBoxes() ? Math.floor(maxRunning / PLACES_PER_RESERVED) : 0;
  }

  #pauseOf(box: string): Gate | undefined {
    const pause = this.#pauses.get(box);
    return pause !== undefined && pause.until > this.#options.clock.monotonic() ? pause.gate : undefined;
  }

  #reserve(key: string): void {
    const run = this.#runs.get(key);
    if (run === undefined) return;
    this.#reservations.set(key, { uid: run.uid, until: this.#options.clock.monotonic() + RESERVED_MS, created: false });
    this.#take(run);
    this.#put(admitted(run));
    this.#changed(run);
  }

  #dropExpired(): void {
    const now = this.#options.clock.monotonic();
    for (const [key, { until }] of this.#reservations) if (until <= now) this.release(key);
    for (const [box, { until }] of this.#pauses) if (until <= now) this.#pauses.delete(box);
  }

  #changed(run: QueuedRun | undefined): void {
    if (run !== undefined) for (const listener of this.#listeners) listener(run.box);
  }

  #put(run: QueuedRun): void {
    this.#runs.set(run.key, run);
    if (run.exempt === true) {
      this.#exempt.set(run.key, run);
      if (run.working) add(this.#busy, run.session, 1);
      return;
    }
    const agents = this.#boxes.get(run.box) ?? new Map<string, AgentState>();
    this.#boxes.set(run.box, agents);
    const state = agents.get(run.agent) ?? { running: 0, waiting: [] };
    agents.set(run.agent, state);
    if (!run.working) {
      state.waiting.splice(positionOf(state.waiting, run), 0, run);
      return;
    }
    state.running += 1;
    this.#count(run, 1);
  }

  #take(run: QueuedRun): void {
    this.#runs.delete(run.key);
    if (run.exempt === true) {
      this.#exempt.delete(run.key);
      if (run.working) add(this.#busy, run.session, -1);
      return;
    }
    const agents = this.#boxes.get(run.box);
    const state = agents?.get(run.agent);
    if (agents === undefined || state === undefined) return;
    if (run.working) {
      state.running -= 1;
      this.#count(run, -1);
    } else state.waiting.splice(positionOf(state.waiting, run), 1);
    if (state.running === 0 && state.waiting.length === 0) agents.delete(run.agent);
    if (agents.size === 0) this.#boxes.delete(run.box);
  }

  #count(run: QueuedRun, by: 1 | -1): void {
    this.#running += by;
    add(this.#boxRunning, run.box, by);
    if (run.placing === true) add(this.#boxPlacing, run.box, by);
    add(this.#busy, run.session, by);
  }
}

/** Until the caches show its Job. */
function admitted(run: QueuedRun): QueuedRun {
  return { ...run, working: true, placing: true };
}

function add(counts: Map<string, number>, key: string, by: number): void {
  const next = (counts.get(key) ?? 0) + by;
  if (next === 0) counts.delete(key);
  else counts.set(key, next);
}

/** Where the run stands, or would stand, in the ordered list. */
function positionOf(list: readonly WaitingRun[], run: WaitingRun): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = list[middle];
    if (at !== undefined && isBefore(at, run)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function isSame(a: QueuedRun, b: QueuedRun): boolean {
  return (
    a.uid === b.uid &&
    a.working === b.working &&
    a.placing === b.placing &&
    a.exempt === b.exempt &&
    a.session === b.session &&
    a.agent === b.agent &&
    a.box === b.box &&
    a.acceptedAt === b.acceptedAt
  );
}

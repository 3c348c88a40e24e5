/**
 * Which waiting runs get a Job now. Pure. Free places go round the Boxes by deficit round robin: in
 * its turn a Box takes as many places as its weight says, so that one with 10,000 waiting runs delays another one by its
 * weight in places and no more; inside a Box the oldest run that may start goes first. So that this holds behind a burst too,
 * a Box has few pods without a node at a time, and some places are only for Boxes in which nothing works.
 * See docs/architecture.md#admission.
 */
import type { QueueReason } from '../../../run/reasons.js';

export interface WaitingRun {
  /** namespace/name. */
  key: string;
  box: string;
  agent: string;
  /** namespace/sessionId. */
  session: string;
  /** Acceptance in milliseconds since the epoch; equal times are ordered by key. */
  acceptedAt: number;
}

/** Why none of the runs of an agent or Box may start, whatever the limits say. */
export type Gate = Extract<
  QueueReason,
  | 'AgentInactive'
  | 'AgentInstalling'
  | 'AgentPaused'
  | 'BoxPaused'
  | 'WorkspacePaused'
  | 'BoxNotReady'
  | 'WorkspaceNotReady'
  | 'NoCapacity'
  | 'JobRefused'
  | 'JobNotCreated'
  | 'WaitingForBudget'
>;

export interface AgentQueue {
  agent: string;
  gate: Gate | undefined;
  /** Runs that hold a Job. */
  running: number;
  /** In order of acceptance. */
  waiting: readonly WaitingRun[];
}

export interface BoxQueue {
  box: string;
  gate: Gate | undefined;
  running: number;
  /** Of these, runs whose pod has no node yet. */
  placing: number;
  maxRunning: number;
  maxRunningPerAgent: number;
  /** Places that the Box takes in one turn. */
  weight: number;
  /** Agents with waiting runs. */
  agents: readonly AgentQueue[];
}

export interface AdmissionInput {
  running: number;
  maxRunning: number;
  /** How many of these places are for Boxes in which no run works. */
  reserved: number;
  /** Boxes with waiting runs. */
  boxes: readonly BoxQueue[];
  /** Sessions in which a run works. */
  busySessions: { has(session: string): boolean };
  /** Where the round stopped; undefined at the beginning. */
  turn: Turn | undefined;
}

/** The Box whose turn it was when no place was left, and the places that it may still take in this turn. */
export interface Turn {
  box: string;
  credit: number;
  /** Reserved places that Boxes took, to be paid for in their turns; negative: what is left of a turn, to be had in the next. */
  owed?: ReadonlyMap<string, number>;
}

export interface AdmissionResult {
  admitted: WaitingRun[];
  turn: Turn | undefined;
}

/**
 * How many pods without a node a Box of weight 1 may have. The scheduler knows pods and no Boxes: the pod of another Box waits
 * behind all of them when the cluster is full. Enough to keep the Job controller and the scheduler busy while there is room.
 */
export const PLACING_BY_WEIGHT = 5;
/**
 * How many turns a Box may owe for reserved places. Without a limit, one with so little weight that its share is below one place
 * would always have one, and more than its share for ever.
 */
export const MOST_TURNS_OWED = 10;

/** Gives out the free places. */
export function admit(input: AdmissionInput): AdmissionResult {
  return new Round(input).go();
}

class Round {
  readonly #input: AdmissionInput;
  readonly #admitted: WaitingRun[] = [];
  readonly #sessions = new Set<string>();
  readonly #owed: Map<string, number>;
  /** Boxes whose turn came when no place for everybody was left. */
  readonly #late: BoxCursor[] = [];
  #turn: Turn | undefined;

  constructor(input: AdmissionInput) {
    this.#input = input;
    this.#turn = input.turn;
    const names = new Set(input.boxes.map(({ box }) => box));
    this.#owed = new Map([...(input.turn?.owed ?? [])].filter(([box]) => names.has(box)));
  }

  go(): AdmissionResult {
    const { boxes, turn, busySessions } = this.#input;
    const isBusy = (session: string) => this.#sessions.has(session) || busySessions.has(session);
    let ring = roundFrom(boxes, turn).map((box) => new BoxCursor(box, isBusy));
    while (ring.length > 0) ring = ring.filter((cursor) => this.#serve(cursor));
    // Who has had least of the reserved places comes first, whatever its name.
    for (const cursor of this.#late.sort((a, b) => this.#turnsOwed(a) - this.#turnsOwed(b))) this.#serveFirst(cursor);
    const next = this.#turn;
    return { admitted: this.#admitted, turn: next === undefined ? undefined : { ...next, owed: this.#owed } };
  }

  /** Whether the Box took all that its turn allowed. */
  #serve(cursor: BoxCursor): boolean {
    if (!this.#hasPlace()) {
      this.#late.push(cursor);
      return false;
    }
    const { name } = cursor;
    // What is left of an interrupted turn comes first; a Box that has nothing to start saves nothing up, and owes nothing.
    let credit = this.#turn?.box === name && this.#turn.credit > 0 ? this.#turn.credit : this.#payOff(cursor);
    for (; credit > 0 && this.#hasPlace(); credit -= 1) {
      if (!this.#take(cursor)) {
        if (this.#turn?.box === name) this.#turn = { box: name, credit: 0 };
        // Pods that have no node yet cost it no more than a moment, and not its turn.
        if (cursor.isPlacing) this.#owed.set(name, Math.max((this.#owed.get(name) ?? 0) - credit, -cursor.weight));
        else this.#owed.delete(name);
        return false;
      }
      this.#turn = { box: name, credit: credit - 1 };
    }
    return credit === 0;
  }

  /** A reserved place, which the Box pays for in its next turn. */
  #serveFirst(cursor: BoxCursor): void {
    const { running, maxRunning } = this.#input;
    if (cursor.works || this.#turnsOwed(cursor) >= MOST_TURNS_OWED) return;
    if (running + this.#admitted.length >= maxRunning || !this.#take(cursor)) return;
    this.#owed.set(cursor.name, (this.#owed.get(cursor.name) ?? 0) + 1);
    this.#turn ??= { box: cursor.name, credit: 0 };
  }

  #turnsOwed({ name, weight }: BoxCursor): number {
    return (this.#owed.get(name) ?? 0) / weight;
  }

  /** Begins a turn: the places that it has after what the Box owes. */
  #payOff({ name, weight }: BoxCursor): number {
    const owed = this.#owed.get(name) ?? 0;
    if (owed === 0) return weight;
    this.#turn = { box: name, credit: 0 };
    if (owed > weight) this.#owed.set(name, owed - weight);
    else this.#owed.delete(name);
    return Math.max(0, weight - owed);
  }

  /** A place that is for everybody. */
  #hasPlace(): boolean {
    const { running, maxRunning, reserved } = this.#input;
    return running + this.#admitted.length < maxRunning - reserved;
  }

  #take(cursor: BoxCursor): boolean {
    const run = cursor.next();
    if (run === undefined) return false;
    this.#admitted.push(run);
    this.#sessions.add(run.session);
    return true;
  }
}

/** The Boxes by name, beginning with the one whose turn goes on, else after it. */
function roundFrom(boxes: readonly BoxQueue[], turn: Turn | undefined): BoxQueue[] {
  const sorted = [...boxes].sort((a, b) => (a.box < b.box ? -1 : 1));
  if (turn === undefined) return sorted;
  const start = sorted.findIndex(({ box }) => box > turn.box || (box === turn.box && turn.credit > 0));
  return start <= 0 ? sorted : [...sorted.slice(start), ...sorted.slice(0, start)];
}

/** Hands out the runs of one Box, oldest first, as long as its limits allow. */
class BoxCursor {
  readonly #agents: { queue: AgentQueue; running: number; position: number }[];
  #running: number;
  #placing: number;

  constructor(
    private readonly box: BoxQueue,
    private readonly isBusy: (session: string) => boolean,
  ) {
    this.#running = box.running;
    this.#placing = box.placing;
    this.#agents = box.agents.map((queue) => ({ queue, running: queue.running, position: 0 }));
  }

  get name(): string {
    return this.box.box;
  }

  get weight(): number {
    return this.box.weight;
  }

  /** Whether it has as many pods without a node as it may have. */
  get isPlacing(): boolean {
    return isPlacingEnough({ placing: this.#placing, weight: this.box.weight });
  }

  get works(): boolean {
    return this.#running > 0;
  }

  next(): WaitingRun | undefined {
    if (this.box.gate !== undefined || this.#running >= this.box.maxRunning) return undefined;
    if (this.isPlacing) return undefined;
    let best: { run: WaitingRun; agent: { running: number; position: number } } | undefined;
    for (const agent of this.#agents) {
      const run = this.#head(agent);
      if (run !== undefined && (best === undefined || isBefore(run, best.run))) best = { run, agent };
    }
    if (best === undefined) return undefined;
    best.agent.running += 1;
    best.agent.position += 1;
    this.#running += 1;
    this.#placing += 1;
    return best.run;
  }

  /** The agent's oldest run whose session is free. A skipped run stays skipped: its session stays busy in this pass. */
  #head(agent: { queue: AgentQueue; running: number; position: number }): WaitingRun | undefined {
    if (agent.queue.gate !== undefined || agent.running >= this.box.maxRunningPerAgent) return undefined;
    for (; agent.position < agent.queue.waiting.length; agent.position += 1) {
      const run = agent.queue.waiting[agent.position];
      if (run !== undefined && !this.isBusy(run.session)) return run;
    }
    return undefined;
  }
}

function isPlacingEnough({ placing, weight }: Pick<BoxQueue, 'placing' | 'weight'>): boolean {
  return placing >= PLACING_BY_WEIGHT * weight;
}

/** What a Box has of the cluster, and its right to it. */
export type Share = Pick<BoxQueue, 'running' | 'weight'>;

/** Whether a Box with one more run would have more than its share beside another one, of which a pod waits for room. */
export function goesBehind(box: Share, waiting: Share): boolean {
  return (box.running + 1) * waiting.weight > waiting.running * box.weight;
}

/** Order of runs: acceptance, then name. */
export function isBefore(a: WaitingRun, b: WaitingRun): boolean {
  return a.acceptedAt === b.acceptedAt ? a.key < b.key : a.acceptedAt < b.acceptedAt;
}

/** What one waiting run sees of the queues, after the places were given out. */
export interface QueueState {
  box: Omit<BoxQueue, 'box' | 'agents'>;
  agent: Pick<AgentQueue, 'gate' | 'running'>;
  /** A run of the same session works, or an older one waits. */
  sessionBusy: boolean;
}

/** Whether nothing but pods of its Box that were made just now holds a run back: usually they have their nodes in a moment. */
export function isBehindNewPods({ box, ...state }: QueueState): boolean {
  const others = { ...state, box: { ...box, placing: 0 } };
  return isPlacingEnough(box) && waitReason(others) === 'InstallationLimit';
}

/** Why a run that was not admitted waits. */
export function waitReason({ box, agent, sessionBusy }: QueueState): QueueReason {
  if (agent.gate !== undefined) return agent.gate;
  if (box.gate !== undefined) return box.gate;
  if (sessionBusy) return 'SessionBusy';
  if (agent.running >= box.maxRunningPerAgent) return 'AgentLimit';
  if (box.running >= box.maxRunning) return 'BoxLimit';
  if (isPlacingEnough(box)) return 'NoCapacity';
  return 'InstallationLimit';
}

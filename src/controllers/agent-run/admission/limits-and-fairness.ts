/**
 * Which waiting runs get a Job now. Pure. Free places go round the Boxes by deficit round robin: in
 * its turn a Box takes as many places as its weight says, so that one with 10,000 waiting runs delays another one by its
 * weight in places and no more; inside a Box the oldest run that may start goes first.
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
}

export interface AdmissionResult {
  admitted: WaitingRun[];
  turn: Turn | undefined;
}

/** Gives out the free places. */
export function admit(input: AdmissionInput): AdmissionResult {
  const admitted: WaitingRun[] = [];
  const taken = new Set<string>();
  const isBusy = (session: string) => taken.has(session) || input.busySessions.has(session);
  let ring = roundFrom(input.boxes, input.turn).map((box) => new BoxCursor(box, isBusy));
  let { turn } = input;
  while (ring.length > 0) {
    const served: BoxCursor[] = [];
    for (const cursor of ring) {
      // What is left of an interrupted turn comes first; a Box that has nothing to start saves nothing up.
      let credit = turn?.box === cursor.name && turn.credit > 0 ? turn.credit : cursor.weight;
      for (; credit > 0; credit -= 1) {
        if (input.running + admitted.length >= input.maxRunning) return { admitted, turn };
        const run = cursor.next();
        if (run === undefined) break;
        admitted.push(run);
        taken.add(run.session);
        turn = { box: cursor.name, credit: credit - 1 };
      }
      if (credit === 0) served.push(cursor);
      else if (turn?.box === cursor.name) turn = { box: cursor.name, credit: 0 };
    }
    ring = served;
  }
  return { admitted, turn };
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

  constructor(
    private readonly box: BoxQueue,
    private readonly isBusy: (session: string) => boolean,
  ) {
    this.#running = box.running;
    this.#agents = box.agents.map((queue) => ({ queue, running: queue.running, position: 0 }));
  }

  get name(): string {
    return this.box.box;
  }

  get weight(): number {
    return this.box.weight;
  }

  next(): WaitingRun | undefined {
    if (this.box.gate !== undefined || this.#running >= this.box.maxRunning) return undefined;
    let best: { run: WaitingRun; agent: { running: number; position: number } } | undefined;
    for (const agent of this.#agents) {
      const run = this.#head(agent);
      if (run !== undefined && (best === undefined || isBefore(run, best.run))) best = { run, agent };
    }
    if (best === undefined) return undefined;
    best.agent.running += 1;
    best.agent.position += 1;
    this.#running += 1;
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

/** Order of runs: acceptance, then name. */
export function isBefore(a: WaitingRun, b: WaitingRun): boolean {
  return a.acceptedAt === b.acceptedAt ? a.key < b.key : a.acceptedAt < b.acceptedAt;
}

/** What one waiting run sees of the queues, after the places were given out. */
export interface QueueState {
  box: Pick<BoxQueue, 'gate' | 'running' | 'maxRunning' | 'maxRunningPerAgent'>;
  agent: Pick<AgentQueue, 'gate' | 'running'>;
  /** A run of the same session works, or an older one waits. */
  sessionBusy: boolean;
}

/** Why a run that was not admitted waits. */
export function waitReason({ box, agent, sessionBusy }: QueueState): QueueReason {
  if (agent.gate !== undefined) return agent.gate;
  if (box.gate !== undefined) return box.gate;
  if (sessionBusy) return 'SessionBusy';
  if (agent.running >= box.maxRunningPerAgent) return 'AgentLimit';
  if (box.running >= box.maxRunning) return 'BoxLimit';
  return 'InstallationLimit';
}

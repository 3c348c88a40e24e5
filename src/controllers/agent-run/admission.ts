/**
 * Which waiting runs get a Job now (DESIGN 4, Admission). Pure. Free places go round the Boxes, so that a Box with 10,000
 * waiting runs delays another one by a single place; inside a Box the oldest run that may start goes first.
 */
import type { QueueReason } from '../../api/reasons.js';

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
export type Gate = Extract<QueueReason, 'AgentInactive' | 'AgentPaused' | 'BoxNotReady' | 'NoCapacity'>;

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
  /** The Box that got the last place: the round goes on after it. */
  lastBox: string | undefined;
}

export interface AdmissionResult {
  admitted: WaitingRun[];
  lastBox: string | undefined;
}

/** Gives out the free places. */
export function admit(input: AdmissionInput): AdmissionResult {
  const admitted: WaitingRun[] = [];
  const taken = new Set<string>();
  const isBusy = (session: string) => taken.has(session) || input.busySessions.has(session);
  let ring = roundAfter(input.boxes, input.lastBox).map((box) => new BoxCursor(box, isBusy));
  let lastBox = input.lastBox;
  while (ring.length > 0) {
    const served: BoxCursor[] = [];
    for (const cursor of ring) {
      if (input.running + admitted.length >= input.maxRunning) return { admitted, lastBox };
      const run = cursor.next();
      if (run === undefined) continue;
      admitted.push(run);
      taken.add(run.session);
      lastBox = run.box;
      served.push(cursor);
    }
    ring = served;
  }
  return { admitted, lastBox };
}

/** The Boxes by name, beginning after the one that was served last. */
function roundAfter(boxes: readonly BoxQueue[], last: string | undefined): BoxQueue[] {
  const sorted = [...boxes].sort((a, b) => (a.box < b.box ? -1 : 1));
  const start = last === undefined ? 0 : sorted.findIndex(({ box }) => box > last);
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

/** Order of runs: acceptance, then name (DESIGN 3). */
export function isBefore(a: WaitingRun, b: WaitingRun): boolean {
  return a.acceptedAt === b.acceptedAt ? a.key < b.key : a.acceptedAt < b.acceptedAt;
}

/** What one waiting run sees of the queues, after the places were given out. */
export interface WaitingView {
  box: Pick<BoxQueue, 'gate' | 'running' | 'maxRunning' | 'maxRunningPerAgent'>;
  agent: Pick<AgentQueue, 'gate' | 'running'>;
  /** A run of the same session works, or an older one waits. */
  sessionBusy: boolean;
}

/** Why a run that was not admitted waits. */
export function waitReason({ box, agent, sessionBusy }: WaitingView): QueueReason {
  if (agent.gate !== undefined) return agent.gate;
  if (box.gate !== undefined) return box.gate;
  if (sessionBusy) return 'SessionBusy';
  if (agent.running >= box.maxRunningPerAgent) return 'AgentLimit';
  if (box.running >= box.maxRunning) return 'BoxLimit';
  return 'InstallationLimit';
}

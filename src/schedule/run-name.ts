/** The name of a tick's run: the same one whoever computes it, and not to be guessed. */
import type { KeyObject } from 'node:crypto';
import { macOf } from '../api/keyring.js';
import { ulid } from '../api/ulid.js';

/** Part of the signed text, so that this HMAC never equals one that the same key makes for something else. */
const VERSION = 'boxwright-schedule-run-v1';
const ULID_RANDOM_BYTES = 10;

export interface TickRun {
  /** The Agent's object name. */
  agent: string;
  /** UID of the AgentSchedule. */
  scheduleUid: string;
  /** Milliseconds. */
  tick: number;
  /** Counts names of this tick that somebody else's run has; 0 at first. */
  attempt: number;
}

/** `<agent>-<ulid>`: the tick is the ULID's time, an HMAC of schedule, tick and attempt its random part. */
export function tickRunName(key: KeyObject, { agent, scheduleUid, tick, attempt }: TickRun): string {
  const mac = macOf(key, [VERSION, scheduleUid, String(tick), String(attempt)]);
  return `${agent}-${ulid(tick, mac.subarray(0, ULID_RANDOM_BYTES))}`;
}

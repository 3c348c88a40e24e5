/** Ends process groups that multiply: a fork bomb of the agent must not take its node along. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Clock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/clock.js';
import type { RunnerLog } from '../log.js';

export const MAX_PROCESSES_OF_GROUP = 512;
const LOOK_EVERY_MS = 500;

interface SupervisorOptions {
  clock: Clock;
  log: RunnerLog;
  /** Processes of each group of the container, but for the group of this process. */
  readGroups: () => Map<number, number>;
  kill: (group: number) => void;
  signal: AbortSignal;
}

/** Looks twice a second until the signal fires. */
export async function superviseProcesses({ clock, log, readGroups, kill, signal }: SupervisorOptions): Promise<void> {
  while (!signal.aborted) {
    for (const [group, processes] of readGroups()) {
      if (processes <= MAX_PROCESSES_OF_GROUP) continue;
      log.warn({ processes }, 'a process group with too many processes is killed');
      kill(group);
    }
    await sleep(clock, LOOK_EVERY_MS, signal);
  }
}

/**
 * Counts processes by group from /proc, which in a container shows that container alone. It does so in one go: with a
 * bomb in the container each wait for another thread is a turn in a queue of a thousand processes, and a look of a
 * thousand files took 20 s on a busy machine.
 */
export function readProcessGroups(): Map<number, number> {
  const groups = new Map<number, number>();
  const own = groupOf('self');
  for (const name of readdirSync('/proc')) {
    if (!/^[1-9]\d*$/.test(name)) continue;
    const group = groupOf(name);
    // Group 0 is of processes outside, group 1 of the container's first process.
    if (group === undefined || group <= 1 || group === own) continue;
    groups.set(group, (groups.get(group) ?? 0) + 1);
  }
  return groups;
}

function groupOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // `pid (name) state ppid pgrp …`: the name may hold anything, so count from its last parenthesis.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2]);
  } catch {
    return undefined;
  }
}

/** SIGKILL to a whole group; a group that is gone is fine. */
export function killGroup(group: number, signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): void {
  try {
    process.kill(-group, signal);
  } catch {
    // ESRCH: it ended by itself.
  }
}

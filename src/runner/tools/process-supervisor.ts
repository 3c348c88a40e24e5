/** Ends process groups that multiply: a fork bomb of the agent must not take its node along (DESIGN 7). */
import { readdir, readFile } from 'node:fs/promises';
import type { Clock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/clock.js';
import type { RunnerLog } from '../log.js';

export const MAX_PROCESSES_OF_GROUP = 512;
const LOOK_EVERY_MS = 500;

interface SupervisorOptions {
  clock: Clock;
  log: RunnerLog;
  /** Processes of each group of the container, but for the group of this process. */
  readGroups: () => Promise<Map<number, number>>;
  kill: (group: number) => void;
  signal: AbortSignal;
}

/** Looks twice a second until the signal fires. */
export async function superviseProcesses({ clock, log, readGroups, kill, signal }: SupervisorOptions): Promise<void> {
  while (!signal.aborted) {
    for (const [group, processes] of await readGroups()) {
      if (processes <= MAX_PROCESSES_OF_GROUP) continue;
      log.warn({ processes }, 'a process group with too many processes is killed');
      kill(group);
    }
    await sleep(clock, LOOK_EVERY_MS, signal);
  }
}

/** Counts processes by group from /proc, which in a container shows that container alone. */
export async function readProcessGroups(): Promise<Map<number, number>> {
  const groups = new Map<number, number>();
  const own = await groupOf('self');
  for (const name of await readdir('/proc')) {
    if (!/^[1-9]\d*$/.test(name)) continue;
    const group = await groupOf(name);
    // Group 0 is of processes outside, group 1 of the container's first process.
    if (group === undefined || group <= 1 || group === own) continue;
    groups.set(group, (groups.get(group) ?? 0) + 1);
  }
  return groups;
}

async function groupOf(pid: string): Promise<number | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
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

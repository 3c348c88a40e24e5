/**
 * The outputs of earlier runs in a workspace that outlives them (`.runs/<run>/<call>.log`): the newest stay, so that an agent
 * can look back, and the others go, so that they never fill the volume.
 */
import { lstat, readdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';

export const KEPT_RUNS = 20;
export const KEPT_BYTES = 512 * 1024 * 1024;
/** In the workspace. */
export const RUN_LOGS_DIR = '.runs';

export interface KeptLogs {
  runs: number;
  bytes: number;
}

/** The logs of one run. */
export interface RunLogs {
  name: string;
  /** Milliseconds since the epoch of the latest file. */
  changedAt: number;
  bytes: number;
}

/** The runs whose logs go: beyond the newest so many, or beyond so many bytes. The newest always stays. Pure. */
export function surplusLogs(all: readonly RunLogs[], keep: KeptLogs): string[] {
  const newestFirst = all.toSorted((a, b) => b.changedAt - a.changedAt || (a.name < b.name ? 1 : -1));
  let bytes = 0;
  return newestFirst
    .filter((logs, index) => {
      bytes += logs.bytes;
      return index > 0 && (index >= keep.runs || bytes > keep.bytes);
    })
    .map(({ name }) => name);
}

/**
 * Removes surplus logs and resolves with the names of their runs. The agent may have put anything there: links are removed,
 * never followed, and a `.runs` that is a link itself is left alone.
 */
export async function pruneRunLogs(
  workspace: string,
  keep: KeptLogs = { runs: KEPT_RUNS, bytes: KEPT_BYTES },
): Promise<string[]> {
  const directory = join(await realpath(workspace), RUN_LOGS_DIR);
  const names = await namesIn(directory);
  if (names.length === 0 || (await realpath(directory)) !== directory) return [];
  const logs: RunLogs[] = [];
  for (const name of names) logs.push(await measure(join(directory, name), name));
  const surplus = surplusLogs(logs, keep);
  for (const name of surplus) await rm(join(directory, name), { recursive: true, force: true });
  return surplus;
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch {
    // Not there, or not a directory: nothing to prune.
    return [];
  }
}

/** One level deep: that is where logs are. */
async function measure(path: string, name: string): Promise<RunLogs> {
  const own = await lstat(path);
  const logs = { name, changedAt: own.mtimeMs, bytes: own.size };
  if (!own.isDirectory()) return logs;
  for (const file of await namesIn(path)) {
    const { mtimeMs, size } = await lstat(join(path, file));
    logs.changedAt = Math.max(logs.changedAt, mtimeMs);
    logs.bytes += size;
  }
  return logs;
}

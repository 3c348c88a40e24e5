import { mkdir, readdir, symlink, utimes, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectories } from '../../../test/builders/workspace.js';
import { pruneRunLogs, surplusLogs } from './run-logs.js';

const temporary = temporaryDirectories();
const logs = (name: string, changedAt: number, bytes = 1) => ({ name, changedAt, bytes });

describe('which logs go', () => {
  test('those of the oldest runs beyond the number', () => {
    expect(surplusLogs([logs('b', 2), logs('d', 4), logs('a', 1), logs('c', 3)], { runs: 2, bytes: 100 })).toEqual([
      'b',
      'a',
    ]);
  });

  test('those of the oldest runs beyond the bytes, but never of the newest', () => {
    expect(surplusLogs([logs('a', 1, 10), logs('b', 2, 60), logs('c', 3, 40)], { runs: 9, bytes: 100 })).toEqual(['a']);
    expect(surplusLogs([logs('a', 1, 10), logs('b', 2, 500)], { runs: 9, bytes: 100 })).toEqual(['a']);
  });

  test('none while all fit', () => {
    expect(surplusLogs([logs('a', 1, 50), logs('b', 2, 50)], { runs: 2, bytes: 100 })).toEqual([]);
  });
});

describe('pruning a workspace', () => {
  let workspace: string;

  beforeEach(async () => {
    workspace = await temporary('workspace');
  });

  async function run(name: string, second: number): Promise<void> {
    const directory = join(workspace, '.runs', name);
    await mkdir(directory, { recursive: true });
    const log = join(directory, '1.log');
    await writeFile(log, 'output');
    await utimes(log, second, second);
    await utimes(directory, second, second);
  }

  test('keeps the newest runs and everything else', async () => {
    for (const second of [1, 2, 3]) await run(`r${second}`, second);
    await writeFile(join(workspace, 'notes.md'), 'mine');
    expect(await pruneRunLogs(workspace, { runs: 2, bytes: 1e9 })).toEqual(['r1']);
    expect(await readdir(join(workspace, '.runs'))).toEqual(['r2', 'r3']);
    expect(existsSync(join(workspace, 'notes.md'))).toBe(true);
  });

  test('counts a run that wrote a moment ago as new, however old its directory is', async () => {
    await run('long', 1);
    await run('short', 2);
    await utimes(join(workspace, '.runs', 'long', '1.log'), 9, 9);
    expect(await pruneRunLogs(workspace, { runs: 1, bytes: 1e9 })).toEqual(['short']);
  });

  test('follows no link that the agent planted', async () => {
    const outside = await temporary('outside');
    await mkdir(join(outside, 'run'));
    await writeFile(join(outside, 'run', 'kept'), 'x');
    await run('new', 9e9);
    await symlink(outside, join(workspace, '.runs', 'link'));
    expect(await pruneRunLogs(workspace, { runs: 1, bytes: 1e9 })).toEqual(['link']);
    expect(existsSync(join(outside, 'run', 'kept'))).toBe(true);

    const other = await temporary('workspace');
    await symlink(outside, join(other, '.runs'));
    expect(await pruneRunLogs(other, { runs: 0, bytes: 0 })).toEqual([]);
    expect(existsSync(join(outside, 'run', 'kept'))).toBe(true);
  });

  test('does nothing in a workspace without logs', async () => {
    expect(await pruneRunLogs(workspace)).toEqual([]);
  });
});

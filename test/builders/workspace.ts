/** Temporary directories for tests that use real files; removed after each test file. */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';

/** Makes directories that vanish when the tests of the file are done. Call it at the top of a test file. */
export function temporaryDirectories(): (name: string) => Promise<string> {
  const made: string[] = [];
  afterAll(async () => {
    await Promise.all(made.map((path) => rm(path, { recursive: true, force: true })));
  });
  return async (name) => {
    const path = await realpath(await mkdtemp(join(tmpdir(), `boxwright-${name}-`)));
    made.push(path);
    return path;
  };
}

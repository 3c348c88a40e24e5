// After the end-to-end tests: everything that they made goes away, and nothing keeps it. The tests themselves only ask for it.
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Only a hang meets it. */
const DEADLINE_MS = 300_000;

/** Workspaces, Boxes and namespaces of tests; they all have this in their names. */
async function left() {
  const { stdout } = await run('hack/cluster/cluster.sh', [
    'kubectl',
    'get',
    'workspaces,boxes,namespaces',
    '-o',
    'name',
  ]);
  return stdout.split('\n').filter((name) => /[/-]e2e-/.test(name));
}

export default async function globalTeardown() {
  const end = Date.now() + DEADLINE_MS;
  let names = await left();
  while (names.length > 0) {
    if (Date.now() > end) throw new Error(`not removed ${DEADLINE_MS / 1000} s after the tests: ${names.join(', ')}`);
    await sleep(1_000);
    names = await left();
  }
}

import { spawn } from 'node:child_process';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { createRunnerLog } from '../log.js';
import { killGroup, readProcessGroups, superviseProcesses } from './process-supervisor.js';

test('a group above 512 processes is killed, the others are left alone, at every look', async () => {
  const clock = new FakeClock();
  const end = new AbortController();
  const killed: number[] = [];
  let groups = new Map([
    [40, 512],
    [41, 513],
  ]);
  const supervising = superviseProcesses({
    clock,
    log: createRunnerLog('tools', clock, () => undefined),
    readGroups: () => groups,
    kill: (group) => killed.push(group),
    signal: end.signal,
  });
  await clock.advance(0);
  expect(killed).toEqual([41]);
  groups = new Map([[40, 700]]);
  await clock.advance(500);
  expect(killed).toEqual([41, 40]);
  end.abort();
  await supervising;
  expect(clock.pending).toBe(0);
});

test('groups are counted from /proc, without our own', async () => {
  const child = spawn('/bin/sh', ['-c', 'sleep 30 & sleep 30 & echo ready; wait'], { detached: true });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const group = child.pid as number;
  expect(readProcessGroups().get(group)).toBe(3);
  const exited = new Promise((resolve) => child.once('exit', (_code, signal) => resolve(signal)));
  killGroup(group);
  expect(await exited).toBe('SIGKILL');
});

test('a group that is gone is no error', () => {
  expect(() => killGroup(2 ** 22 + 5)).not.toThrow();
});

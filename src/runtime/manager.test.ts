import { EventEmitter } from 'node:events';
import { FakeClock } from '../../test/builders/fake-clock.js';
import { recordingLog } from '../../test/builders/log.js';
import { Manager } from './manager.js';
import type { Runnable } from './manager.js';

function newManager() {
  const clock = new FakeClock();
  const process = new EventEmitter();
  const { log, messages } = recordingLog();
  const events: string[] = [];
  const manager = new Manager({ log, clock, process, stopTimeoutMs: 10_000 });
  const runnable = (name: string, parts: Partial<Runnable> = {}): Runnable => ({
    name,
    start: () => {
      events.push(`start ${name}`);
    },
    stop: () => {
      events.push(`stop ${name}`);
      return Promise.resolve();
    },
    ...parts,
  });
  return { manager, clock, process, messages, events, runnable };
}

test('groups start in order, the next when the last is up, and SIGTERM stops them in reverse', async () => {
  const { manager, clock, process, events, runnable } = newManager();
  let up: () => void = () => undefined;
  const slow = runnable('caches', { start: () => new Promise<void>((resolve) => (up = resolve)) });
  manager.addGroup('probes', [runnable('probes')]);
  manager.addGroup('caches', [slow]);
  manager.addGroup('servers', [runnable('mcp'), runnable('webhook')]);
  const running = manager.run();
  await clock.advance(0);
  const beforeCaches = [...events];
  up();
  await clock.advance(0);

  process.emit('SIGTERM');

  expect(await running).toBe(0);
  expect(beforeCaches).toEqual(['start probes']);
  expect(events.slice(1)).toEqual([
    'start mcp',
    'start webhook',
    'stop mcp',
    'stop webhook',
    'stop caches',
    'stop probes',
  ]);
  expect(process.eventNames()).toEqual([]);
  expect(clock.pending).toBe(0);
});

test.each(['unhandledRejection', 'uncaughtException'])(
  '%s is logged, everything is stopped, the exit code is 1',
  async (event) => {
    const { manager, clock, process, events, messages, runnable } = newManager();
    manager.addGroup('servers', [runnable('mcp')]);
    const running = manager.run();
    await clock.advance(0);

    process.emit(event, new Error('a bug'));

    expect(await running).toBe(1);
    expect(events).toEqual(['start mcp', 'stop mcp']);
    expect(messages()).toContain('error process cannot go on');
  },
);

test('a log that cannot be written ends the process instead of failing for ever', async () => {
  const { clock, process, runnable, events } = newManager();
  let lines = 0;
  const broken = () => {
    lines += 1;
    if (lines < 1000) process.emit('uncaughtException', new Error('write EPIPE'));
  };
  const log = { ...recordingLog().log, error: broken };
  const manager = new Manager({ log, clock, process });
  manager.addGroup('servers', [runnable('mcp')]);
  const running = manager.run();
  await clock.advance(0);

  process.emit('uncaughtException', new Error('write EPIPE'));

  expect(await running).toBe(1);
  expect(events).toEqual(['start mcp', 'stop mcp']);
  expect(lines).toBeLessThan(20);
});

test('a start that fails stops what was started, and the exit code is 1', async () => {
  const { manager, events, runnable } = newManager();
  manager.addGroup('probes', [runnable('probes')]);
  manager.addGroup('servers', [runnable('mcp', { start: () => Promise.reject(new Error('port in use')) })]);
  manager.addGroup('leader', [runnable('leader')]);

  expect(await manager.run()).toBe(1);
  expect(events).toEqual(['start probes', 'stop mcp', 'stop probes']);
});

test('a start that hangs does not keep the process from stopping', async () => {
  const { manager, clock, process, events, runnable } = newManager();
  manager.addGroup('caches', [runnable('caches', { start: () => new Promise<void>(() => undefined) })]);
  manager.addGroup('servers', [runnable('mcp')]);
  const running = manager.run();
  await clock.advance(0);

  process.emit('SIGTERM');

  expect(await running).toBe(0);
  expect(events).toEqual(['stop caches']);
});

test('a stop that hangs is given up at the bound, and the others are stopped', async () => {
  const { manager, clock, process, events, messages, runnable } = newManager();
  manager.addGroup('probes', [runnable('probes')]);
  manager.addGroup('servers', [
    runnable('hangs', { stop: () => new Promise<void>(() => undefined) }),
    runnable('fails', { stop: () => Promise.reject(new Error('no')) }),
  ]);
  const running = manager.run();
  await clock.advance(0);

  events.length = 0;
  process.emit('SIGINT');
  await clock.advance(10_000);

  expect(await running).toBe(0);
  expect(events).toEqual(['stop probes']);
  expect(messages()).toEqual(['info stopping', 'error could not be stopped', 'warn did not stop in time']);
});

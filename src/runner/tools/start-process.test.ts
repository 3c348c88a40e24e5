import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { startWhenPossible } from './start-process.js';

/** A start that fails as Node tells it: without a pid, and with an event later. */
function failing(code: string): ChildProcess {
  const child = Object.assign(new EventEmitter(), { pid: undefined });
  setImmediate(() => child.emit('error', Object.assign(new Error(`spawn ${code}`), { code })));
  return child as unknown as ChildProcess;
}
const running = () => Object.assign(new EventEmitter(), { pid: 7 }) as unknown as ChildProcess;

async function tried(codes: (string | undefined)[], options: { signal?: AbortSignal; advanceMs?: number } = {}) {
  const clock = new FakeClock();
  let starts = 0;
  const start = () => {
    const code = codes[Math.min(starts++, codes.length - 1)];
    return code === undefined ? running() : failing(code);
  };
  const { signal = new AbortController().signal, advanceMs = 20_000 } = options;
  const starting = startWhenPossible({ start, clock, signal }).then(
    ({ pid }) => pid,
    (error: Error) => error.message,
  );
  for (let ms = 0; ms < advanceMs; ms += 500) {
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(500);
  }
  return { outcome: await starting, starts };
}

test('a process that starts is given at once', async () => {
  expect(await tried([undefined])).toEqual({ outcome: 7, starts: 1 });
});

test('while the container is full of processes the start is tried again', async () => {
  expect(await tried(['EAGAIN', 'EAGAIN', undefined])).toEqual({ outcome: 7, starts: 3 });
});

test('a container that stays full is given up after 15 seconds', async () => {
  expect(await tried(['EAGAIN'])).toEqual({ outcome: 'spawn EAGAIN', starts: 31 });
});

test.each(['ENOENT', 'EACCES', 'E2BIG'])('%s is final', async (code) => {
  expect(await tried([code])).toEqual({ outcome: `spawn ${code}`, starts: 1 });
});

test('nobody waits any more: it is not tried again', async () => {
  expect(await tried(['EAGAIN'], { signal: AbortSignal.abort() })).toEqual({ outcome: 'spawn EAGAIN', starts: 1 });
});

/** Connecting to the tools container: all that the runner ever does with what `tools` can write. */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { sleep } from '../runtime/clock.js';
import type { Clock } from '../runtime/clock.js';

/** `tools` starts beside the runner and is started again after it ran out of memory. */
const CONNECT_MS = 10_000;
const CONNECT_PAUSE_MS = 50;

/** A connection; undefined when there is none after 10 s or `withinMs`, or when the signal fires. Never rejects. */
export async function connectTools(
  options: { socketPath: string; clock: Clock; withinMs?: number },
  signal: AbortSignal,
): Promise<Socket | undefined> {
  const giveUpAt = options.clock.monotonic() + (options.withinMs ?? CONNECT_MS);
  while (!signal.aborted && options.clock.monotonic() < giveUpAt) {
    const socket = await tryConnect(options.socketPath);
    if (socket !== undefined) return socket;
    await sleep(options.clock, CONNECT_PAUSE_MS, signal);
  }
  return undefined;
}

/** A unix socket connects or fails at once; a full backlog is a failure as well. */
function tryConnect(path: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('error', () => resolve(undefined));
    socket.once('connect', () => resolve(socket));
  });
}

/** What the tools container can do: asked before the claim, because its image is the Box's to choose. */
import type { Socket } from 'node:net';
import { encodeFrame, FrameDecoder, ToolsOffer } from '../protocol/tools-socket.js';
import type { ToolName } from '../protocol/tools-socket.js';
import type { Clock } from '../runtime/clock.js';
import { connectTools } from './tools-connection.js';

/** `tools` starts before the runner. On a node under load it may need long all the same. */
export const OFFER_SECONDS = 30;

/** Names of tools; `unknown`: an image from before this question, whose tools are taken for granted. */
export type OfferedTools = readonly string[] | 'unknown';

/** `silent`: nothing answered in time, so this is no image of ours. Never rejects; also ends when the signal fires. */
export async function askForTools(
  options: { socketPath: string; clock: Clock },
  signal: AbortSignal,
): Promise<OfferedTools | 'silent'> {
  const giveUpAt = options.clock.monotonic() + OFFER_SECONDS * 1000;
  const socket = await connectTools({ ...options, withinMs: OFFER_SECONDS * 1000 }, signal);
  if (socket === undefined) return 'silent';
  return exchange(socket, { ms: giveUpAt - options.clock.monotonic(), clock: options.clock, signal });
}

/** Whether there is a tool; undefined when that is not known. */
export function offers(offered: OfferedTools | 'silent', tool: ToolName): boolean | undefined {
  return typeof offered === 'string' ? undefined : offered.includes(tool);
}

interface ExchangeOptions {
  ms: number;
  clock: Clock;
  signal: AbortSignal;
}

function exchange(socket: Socket, { ms, clock, signal }: ExchangeOptions): Promise<OfferedTools | 'silent'> {
  return new Promise((resolve) => {
    const decoder = new FrameDecoder();
    const settle = (offered: OfferedTools | 'silent') => {
      cancelTimer();
      signal.removeEventListener('abort', silent);
      socket.destroy();
      resolve(offered);
    };
    const silent = () => settle('silent');
    const cancelTimer = clock.after(ms, silent);
    // Older tools drop a connection whose first frame they do not know.
    socket.on('error', () => settle('unknown'));
    socket.on('close', () => settle('unknown'));
    socket.on('data', (chunk: Buffer) => {
      try {
        const [frame] = decoder.push(chunk);
        if (frame !== undefined) settle(ToolsOffer.parse(frame).tools);
      } catch {
        settle('unknown');
      }
    });
    if (signal.aborted) silent();
    else signal.addEventListener('abort', silent, { once: true });
    socket.write(encodeFrame({ type: 'hello' }));
  });
}

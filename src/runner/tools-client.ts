/**
 * The runner's side of the tools socket (src/protocol/tools-socket.ts). Connecting is all that the runner ever does with
 * what `tools` can write. Whatever comes back is bounded; a side that hangs, floods or lies costs one failed tool call.
 */
import type { Socket } from 'node:net';
import type { Clock } from '../runtime/clock.js';
import { picturesIn } from '../protocol/pictures.js';
import {
  BROWSER_SECONDS,
  encodeFrame,
  FETCH_SECONDS,
  FILES_SECONDS,
  FrameDecoder,
  MAX_FRAME_BYTES,
  SHELL_DEFAULT_SECONDS,
  TOOL_DEFINITIONS,
  ToolsResult,
} from '../protocol/tools-socket.js';
import type { PodToolFamily, ToolName } from '../protocol/tools-socket.js';
import type { ToolResult } from './engine.js';
import { bounded, failed, withPictures } from './results.js';
import { connectTools } from './tools-connection.js';

/** What a model is shown of a result, in bytes of JSON: the tools' own limits are below it, a hostile side is cut here. */
export const MAX_MODEL_RESULT_BYTES = 96 * 1024;
/** What `tools` needs beyond the time of the tool itself: to stop a command that ignores TERM, and to answer. */
const GRACE_SECONDS = 10;
/** What a tool that is stopped has to end its processes and to answer with what there is. */
const STOP_SECONDS = 4;

export interface ToolCall {
  tool: ToolName;
  input: Record<string, unknown>;
}

export interface ToolsClient {
  /**
   * Executes one call. A failure of any kind is a result with `isError`. The signal stops the tool, whose result then has
   * what there was until then. Never rejects.
   */
  call(call: ToolCall, signal: AbortSignal): Promise<ToolResult>;
}

/** A client for the tools of one run; calls are numbered. */
export function createToolsClient(options: { socketPath: string; run: string; clock: Clock }): ToolsClient {
  let calls = 0;
  return {
    async call(call, signal) {
      calls += 1;
      let frame: Buffer;
      try {
        frame = encodeFrame({ type: 'call', run: options.run, call: calls, tool: call.tool, input: call.input });
      } catch {
        return failed('The input of the tool is too large; send less at a time.');
      }
      const socket = await connectTools(options, signal);
      if (signal.aborted) {
        socket?.destroy();
        return failed('The run was stopped before the tool began.');
      }
      if (socket === undefined) return failed('The tools container does not answer; it may be starting again.');
      const result = await exchange(socket, frame, { clock: options.clock, seconds: secondsFor(call), signal });
      const { pictures = [], ...rest } = result;
      // Bytes of a file are for the runner, and no model is shown them.
      const maxBytes = call.tool === 'read_bytes' ? MAX_FRAME_BYTES : MAX_MODEL_RESULT_BYTES;
      return withPictures(bounded(rest, maxBytes), picturesIn(pictures));
    },
  };
}

const SECONDS: Record<Exclude<PodToolFamily, 'shell'>, number> = {
  files: FILES_SECONDS,
  web: FETCH_SECONDS,
  browser: BROWSER_SECONDS,
};

function secondsFor({ tool, input }: ToolCall): number {
  const { family } = TOOL_DEFINITIONS[tool];
  if (family !== 'shell') return SECONDS[family] + GRACE_SECONDS;
  const asked = input['timeoutSeconds'];
  return (typeof asked === 'number' ? asked : SHELL_DEFAULT_SECONDS) + GRACE_SECONDS;
}

interface ExchangeOptions {
  clock: Clock;
  seconds: number;
  signal: AbortSignal;
}

function exchange(socket: Socket, frame: Buffer, { clock, seconds, signal }: ExchangeOptions): Promise<ToolResult> {
  return new Promise((resolve) => {
    const decoder = new FrameDecoder();
    let cancelStop = () => {};
    const settle = (result: ToolResult) => {
      cancelTimer();
      cancelStop();
      signal.removeEventListener('abort', abort);
      socket.destroy();
      resolve(result);
    };
    const cancelTimer = clock.after(seconds * 1000, () => {
      settle(failed(`The tool gave no answer within ${seconds} seconds and was given up.`));
    });
    const stopped = failed('The run was stopped, and the tool did not say what it came to.');
    const abort = () => {
      cancelStop = clock.after(STOP_SECONDS * 1000, () => settle(stopped));
      socket.end();
    };
    socket.on('error', () =>
      settle(failed('The tools container broke the connection; it may have run out of memory.')),
    );
    socket.on('close', () =>
      settle(
        signal.aborted
          ? stopped
          : failed('The tools container ended without an answer; it may have run out of memory.'),
      ),
    );
    socket.on('data', (chunk: Buffer) => {
      const result = decode(decoder, chunk);
      if (result !== undefined) settle(result);
    });
    socket.write(frame);
    signal.addEventListener('abort', abort, { once: true });
  });
}

/** The result once it is complete; a peer that breaks the protocol has failed the call. */
function decode(decoder: FrameDecoder, chunk: Buffer): ToolResult | undefined {
  try {
    const [frame] = decoder.push(chunk);
    return frame === undefined ? undefined : ToolsResult.parse(frame);
  } catch {
    return failed('The tools container broke the protocol of the tools socket.');
  }
}

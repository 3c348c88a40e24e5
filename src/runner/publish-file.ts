/** The content of a file that the agent publishes, read by the tools container: the runner opens nothing of the workspace. */
import { z } from 'zod';
import { MAX_PUBLISHED_BYTES } from '../protocol/gateway-tools.js';
import type { ToolResult } from './engine.js';
import { failed } from './results.js';
import type { ToolsClient } from './tools-client.js';

const Piece = z.object({ content: z.base64(), bytes: z.int().min(0) });

/** All of the file in base64, or the failure that the model is told. */
export async function readToPublish(
  path: unknown,
  { tools, signal }: { tools: ToolsClient; signal: AbortSignal },
): Promise<{ content: string } | { failure: ToolResult }> {
  const pieces: Buffer[] = [];
  for (let offset = 0; ;) {
    const read = await tools.call({ tool: 'read_bytes', input: { path, offset } }, signal);
    if (read.isError) return { failure: read };
    const piece = Piece.safeParse(read.result);
    if (!piece.success) return { failure: failed('The tools container did not answer with the file.') };
    const { bytes } = piece.data;
    if (bytes > MAX_PUBLISHED_BYTES) return { failure: failed(tooLarge(bytes)) };
    const content = Buffer.from(piece.data.content, 'base64');
    pieces.push(content);
    offset += content.length;
    if (offset > MAX_PUBLISHED_BYTES) return { failure: failed(tooLarge(offset)) };
    if (offset >= bytes || content.length === 0) break;
  }
  return { content: Buffer.concat(pieces).toString('base64') };
}

function tooLarge(bytes: number): string {
  const most = MAX_PUBLISHED_BYTES / 1024;
  return `The file has ${bytes} bytes; at most ${most} KiB can be published. Compress it, or publish it in parts.`;
}

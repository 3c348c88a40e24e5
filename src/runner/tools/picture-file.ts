/** The tool `read`: a text file, or a picture for models that see. */
import { constants } from 'node:fs';
import { MAX_PICTURE_BYTES, PICTURE_HEAD_BYTES, pictureOf, pictureTypeOf } from '../../protocol/pictures.js';
import type { ToolInput } from '../../protocol/tools-socket.js';
import type { ToolResult } from '../engine.js';
import type { ToolContext } from './executor.js';
import { openRegular, readTextFile } from './files.js';
import { ToolFailure } from './tool-failure.js';
import { displayPath, resolveInWorkspace } from './workspace-path.js';

/** What is told of a picture, with the picture itself; of any other file its lines. */
export async function readTextOrPicture(input: ToolInput<'read'>, context: ToolContext): Promise<ToolResult> {
  const path = await resolveInWorkspace(context.workspace, input.path);
  const bytes = await pictureBytes(path);
  if (bytes === undefined) return { isError: false, result: await readTextFile(input, context) };
  const picture = pictureOf(bytes);
  if (picture === undefined) {
    throw new ToolFailure(
      `The picture is too large to be shown: at most ${MAX_PICTURE_BYTES / 1024} KiB and 8000 pixels in each direction. Make a smaller copy.`,
    );
  }
  const text = `${await displayPath(context.workspace, path)}: ${picture.mediaType}, ${bytes.length} bytes`;
  return { isError: false, result: { text }, pictures: [picture] };
}

/** All of a file that is a picture, and one byte more than may be shown; undefined for other files. */
async function pictureBytes(path: string): Promise<Buffer | undefined> {
  const handle = await openRegular(path, constants.O_RDONLY);
  try {
    const buffer = Buffer.alloc(MAX_PICTURE_BYTES + 1);
    let length = 0;
    let end = PICTURE_HEAD_BYTES;
    while (length < end) {
      const { bytesRead } = await handle.read(buffer, length, end - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
      if (length < PICTURE_HEAD_BYTES) continue;
      if (pictureTypeOf(buffer) === undefined) return undefined;
      end = buffer.length;
    }
    return length < PICTURE_HEAD_BYTES ? undefined : buffer.subarray(0, length);
  } finally {
    await handle.close();
  }
}

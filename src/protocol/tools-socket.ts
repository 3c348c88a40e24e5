/**
 * The protocol between the containers `runner` and `tools` of a run pod: a unix socket, one connection for each
 * tool call, and one for each MCP server of transport stdio. The image of `tools` may be older or newer than the runner.
 *
 * - A question: the runner writes one `hello` frame, `tools` answers with one `offer` frame that lists what it can do.
 * - A call: the runner writes one `call` frame, `tools` answers with one `result` frame.
 * - A server: the runner writes one `open` frame, `tools` starts the program and answers with `started`; from then on both
 *   write `message` frames, each one JSON-RPC message. `tools` ends with one `ended` frame, whether it started or not.
 *
 * Closing the connection cancels the call or ends the server, so a runner that is gone stops its tools. A runner that closes
 * its own half alone stops the call too, and still gets the result, with what there was until then. The side behind
 * `tools` is hostile: sizes, depth and number of frames are bounded before anything is parsed, and both sides check the
 * schema.
 *
 * A frame is a 4-byte big-endian length, then that many bytes of UTF-8 JSON.
 */
import { z } from 'zod';
import { boundedRecord } from './bounded-parse.js';
import { JsonLimitError, parseJson } from './json-limits.js';
import { MAX_PICTURES, Picture } from './pictures.js';
import { Text } from './sizes.js';

/** Largest frame, without its length. */
export const MAX_FRAME_BYTES = 1024 * 1024;
/** Deepest nesting of arrays and objects in a frame. */
export const MAX_FRAME_DEPTH = 32;
/** Frames of each side on the connection of a call or a question: one, and its answer. */
export const MAX_FRAMES = 1;
/** Of a server: frames and bytes that one side may write before the connection is closed. */
export const MAX_SERVER_FRAMES = 20_000;
export const MAX_SERVER_BYTES = 64 * 1024 * 1024;

export const SHELL_DEFAULT_SECONDS = 120;
export const SHELL_MAX_SECONDS = 600;
/** Bounds of calls in `tools`, by family; the runner waits a little longer. */
export const FILES_SECONDS = 30;
export const FETCH_SECONDS = 30;
export const BROWSER_SECONDS = 60;

const Path = z.string().min(1).max(4096);
const Ref = z
  .string()
  .max(13)
  .regex(/^(f\d{1,4})?e\d{1,7}$/)
  .describe('Ref of the thing in the latest snapshot, for example e12.');

const BackgroundId = z.string().min(1).max(16).describe('Name of the command, for example b1.');

/** One replacement of `edit`. */
const Edit = z.object({
  oldText: z
    .string()
    .min(1)
    .max(MAX_FRAME_BYTES)
    .describe('Text to replace, exactly as in the file, without line numbers.'),
  newText: z.string().max(MAX_FRAME_BYTES).describe('Text to put in its place.'),
  replaceAll: z.boolean().optional().describe('True replaces every occurrence.'),
});

/**
 * The tools, with what a model is told about each. The input schema is checked by the runner (through the model's SDK)
 * and again in `tools`.
 */
export const TOOL_DEFINITIONS = {
  shell: {
    family: 'shell',
    description:
      'Runs a command with the shell and returns its exit code and output (standard output and errors together). The first command begins in the workspace; the directory and the exported variables that a command ends with are kept for the next one. Long output is cut in the middle; the whole of it is then in the file named by logPath. With `background` the command goes on beside your other calls, until it ends, you stop it with shell_stop, or the run ends; read its output with shell_output.',
    input: z.object({
      command: z.string().min(1).max(65_536).describe('The command line.'),
      timeoutSeconds: z
        .int()
        .min(1)
        .max(SHELL_MAX_SECONDS)
        .optional()
        .describe(`Seconds until the command is stopped; ${SHELL_DEFAULT_SECONDS} when absent.`),
      cwd: Path.optional().describe('Directory in the workspace to run in instead of the one that is kept.'),
      background: z
        .boolean()
        .optional()
        .describe('True for servers, watchers and what takes long. It has no time limit.'),
    }),
  },
  shell_output: {
    family: 'shell',
    description: 'Returns what a background command wrote since you last looked, and whether it still runs.',
    input: z.object({
      id: BackgroundId,
      waitSeconds: z.int().min(0).max(60).optional().describe('Waits so long for the end of the command.'),
    }),
  },
  shell_stop: {
    family: 'shell',
    description: 'Stops a background command with all its processes, and returns what it wrote since you last looked.',
    input: z.object({ id: BackgroundId }),
  },
  read: {
    family: 'files',
    description:
      'Reads a text file of the workspace: at most 2000 lines or 50 KiB at a time; or shows a picture (PNG, JPEG, GIF, WebP). Each line comes behind its number and a tab, which are not in the file.',
    input: z.object({
      path: Path.describe('File, relative to the workspace.'),
      offset: z.int().min(1).max(1_000_000_000).optional().describe('First line to read, counted from 1.'),
      limit: z.int().min(1).max(2000).optional().describe('Most lines to read.'),
    }),
  },
  write: {
    family: 'files',
    description: 'Writes a text file of the workspace, replacing it when it exists. Missing directories are made.',
    input: z.object({
      path: Path.describe('File, relative to the workspace.'),
      content: z.string().max(MAX_FRAME_BYTES),
    }),
  },
  edit: {
    family: 'files',
    description:
      'Replaces an exact piece of text in a file of the workspace. The text must occur exactly once. With `edits` in the place of oldText and newText it makes several replacements, one after the other, all or none.',
    input: z.object({
      path: Path.describe('File, relative to the workspace.'),
      oldText: Edit.shape.oldText.optional(),
      newText: Edit.shape.newText.optional(),
      replaceAll: Edit.shape.replaceAll,
      edits: z.array(Edit).max(100).optional().describe('Several replacements.'),
    }),
  },
  put_skill_file: {
    family: 'files',
    description: 'Writes a file of a skill.',
    input: z.object({
      slug: z
        .string()
        .max(63)
        .regex(/^[a-z0-9][-a-z0-9]*$/),
      path: Path,
      content: z.base64().max(MAX_FRAME_BYTES),
    }),
  },
  read_bytes: {
    family: 'files',
    description: 'Reads bytes of a file.',
    input: z.object({ path: Path, offset: z.int().min(0).max(1_000_000_000) }),
  },
  list: {
    family: 'files',
    description:
      'Lists a directory of the workspace: directories end with /, links with @, files come with their size.',
    input: z.object({ path: Path.optional().describe('Directory; the workspace itself when absent.') }),
  },
  grep: {
    family: 'files',
    description:
      'Searches the text files of the workspace with a regular expression (that of ripgrep); at most 100 matches. What .gitignore names is left out.',
    input: z.object({
      pattern: z.string().min(1).max(1024).describe('Regular expression, such as \\bclass\\s+\\w+ or foo|bar.'),
      path: Path.optional().describe('File or directory; the workspace itself when absent.'),
      include: z
        .string()
        .min(1)
        .max(256)
        .optional()
        .describe(
          'Only files whose path matches, for example *.ts, also those of another type or that .gitignore names.',
        ),
      type: z
        .string()
        .max(32)
        .regex(/^[a-z0-9]+$/)
        .optional()
        .describe('Only files of a type that ripgrep knows, for example ts, py, go or md.'),
      ignoreCase: z.boolean().optional(),
      context: z.int().min(0).max(20).optional().describe('Lines to show before and after each match.'),
      ignored: z.boolean().optional().describe('True searches what .gitignore names as well.'),
    }),
  },
  glob: {
    family: 'files',
    description: 'Finds files of the workspace by a pattern such as src/**/*.ts; at most 1000.',
    input: z.object({
      pattern: z.string().min(1).max(512).describe('Wildcards *, ?, ** and {a,b}.'),
      path: Path.optional().describe('Directory to start in; the workspace itself when absent.'),
    }),
  },
  fetch: {
    family: 'web',
    description:
      'Fetches a page, PDF or text of the public web and returns what a person would read of it, as markdown. Long text is cut; all of it is then in the file named by wholeTextPath.',
    input: z.object({ url: z.string().min(1).max(4096).describe('Address, http or https.') }),
  },
  browser_navigate: {
    family: 'browser',
    description:
      'Opens an address of the public web in a headless browser and returns what the page consists of, with a ref for each thing that can be clicked or typed into.',
    input: z.object({ url: z.string().min(1).max(4096).describe('Address, http or https.') }),
  },
  browser_snapshot: {
    family: 'browser',
    description: 'Returns what the open page of the browser consists of now, with refs.',
    input: z.object({}),
  },
  browser_click: {
    family: 'browser',
    description: 'Clicks a thing on the open page of the browser and returns the page as it is then.',
    input: z.object({ ref: Ref }),
  },
  browser_type: {
    family: 'browser',
    description: 'Replaces the text of a field on the open page of the browser and returns the page as it is then.',
    input: z.object({
      ref: Ref,
      text: z.string().max(65_536).describe('Text of the field.'),
      submit: z.boolean().optional().describe('True presses Enter afterwards.'),
    }),
  },
  browser_screenshot: {
    family: 'browser',
    description:
      'Saves a picture of the open page of the browser as a PNG file in the workspace, returns its path and shows it.',
    input: z.object({
      fullPage: z.boolean().optional().describe('True for all of the page, not only what is in view.'),
    }),
  },
} as const satisfies Record<string, { family: string; description: string; input: z.ZodType }>;
export type ToolName = keyof typeof TOOL_DEFINITIONS;
export type PodToolFamily = (typeof TOOL_DEFINITIONS)[ToolName]['family'];
export type ToolInput<Name extends ToolName> = z.output<(typeof TOOL_DEFINITIONS)[Name]['input']>;

/** Where the files of skills lie, in the workspace. */
export const SKILLS_DIR = '.skills';

/** Tools that the runner calls by itself; no model is told of them. */
export const RUNNER_TOOLS: readonly ToolName[] = ['put_skill_file', 'read_bytes'];

/** Of one answer of `read_bytes`, so that it fits a frame in base64. */
export const READ_BYTES = 512 * 1024;

/** Names of all tools. */
export const TOOL_NAMES = Object.keys(TOOL_DEFINITIONS) as [ToolName, ...ToolName[]];

const RunName = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);

export const ToolsCall = z.object({
  type: z.literal('call'),
  /** Name of the run and number of the call in it: where long output is kept. */
  run: RunName,
  call: z.int().min(1).max(1_000_000),
  tool: z.enum(TOOL_NAMES),
  input: boundedRecord(Text, z.unknown(), 10_000),
});
export type ToolsCall = z.output<typeof ToolsCall>;

export const ToolsResult = z.object({
  type: z.literal('result'),
  isError: z.boolean(),
  result: boundedRecord(Text, z.unknown(), 10_000),
  /** Of a file or a page, for models that see. */
  pictures: z.array(Picture).max(MAX_PICTURES).optional(),
});
export type ToolsResult = z.output<typeof ToolsResult>;

/** Starts an MCP server beside the tools. */
export const ToolsOpen = z.object({
  type: z.literal('open'),
  run: RunName,
  server: z.object({
    name: z
      .string()
      .max(63)
      .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/),
    command: z.string().min(1).max(1024),
    args: z.array(z.string().max(4096)).max(64),
    /** What its environment has besides PATH, HOME and LANG. */
    env: boundedRecord(
      z
        .string()
        .max(128)
        .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/),
      z.string().max(64 * 1024),
      1000,
    ),
  }),
});
export type ToolsOpen = z.output<typeof ToolsOpen>;

/** Asks which tools there are. */
export const ToolsHello = z.object({ type: z.literal('hello') });

/** The tools of this image, also such that the runner does not know. */
export const ToolsOffer = z.object({ type: z.literal('offer'), tools: z.array(z.string().max(64)).max(200) });
export type ToolsOffer = z.output<typeof ToolsOffer>;

/** The first frame of a connection. */
export const ToolsRequest = z.discriminatedUnion('type', [ToolsCall, ToolsOpen, ToolsHello]);
export type ToolsRequest = z.output<typeof ToolsRequest>;

/** One JSON-RPC message of either side. */
export const ServerMessage = z.object({
  type: z.literal('message'),
  message: boundedRecord(Text, z.unknown(), 10_000),
});
export type ServerMessage = z.output<typeof ServerMessage>;

/** What `tools` writes on the connection of a server. */
export const ServerFrame = z.discriminatedUnion('type', [
  z.object({ type: z.literal('started') }),
  ServerMessage,
  /** For a person. */
  z.object({ type: z.literal('ended'), reason: z.string().max(4096) }),
]);
export type ServerFrame = z.output<typeof ServerFrame>;

/** The other side broke the protocol; the connection must be closed. The message never repeats what it sent. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/** One frame. Throws {@link FrameError} when the value is too large. */
export function encodeFrame(value: ToolsRequest | ToolsResult | ToolsOffer | ServerFrame): Buffer {
  const body = Buffer.from(JSON.stringify(value), 'utf8');
  if (body.length > MAX_FRAME_BYTES) throw new FrameError(`a frame holds at most ${MAX_FRAME_BYTES} bytes of JSON`);
  const frame = Buffer.allocUnsafe(4 + body.length);
  frame.writeUInt32BE(body.length, 0);
  body.copy(frame, 4);
  return frame;
}

/**
 * Takes the bytes of one side of a connection and gives its frames. Holds at most one frame and one chunk; throws
 * {@link FrameError} at the first byte that breaks a bound, and must then be thrown away.
 */
export class FrameDecoder {
  #chunks: Buffer[] = [];
  #buffered = 0;
  #frames = 0;
  #bytes = 0;
  #max = { frames: MAX_FRAMES, bytes: Infinity };

  /** From now on as much as the connection of a server carries. */
  allowServer(): void {
    this.#max = { frames: MAX_SERVER_FRAMES, bytes: MAX_SERVER_BYTES };
  }

  /** Adds bytes; returns the frames that are complete now, as unchecked JSON. */
  push(chunk: Buffer): unknown[] {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#max.bytes) throw new FrameError('more bytes than the protocol allows');
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    const frames: unknown[] = [];
    for (;;) {
      const body = this.#take();
      if (body === undefined) return frames;
      frames.push(parseBody(body));
    }
  }

  #take(): Buffer | undefined {
    if (this.#buffered === 0) return undefined;
    if (this.#frames >= this.#max.frames) throw new FrameError('more frames than the protocol allows');
    if (this.#buffered < 4) return undefined;
    let first = this.#chunks[0] as Buffer;
    if (first.length < 4) first = this.#join();
    const length = first.readUInt32BE(0);
    if (length === 0 || length > MAX_FRAME_BYTES) throw new FrameError('a frame of a size that is not allowed');
    if (this.#buffered < 4 + length) return undefined;
    const all = this.#join();
    this.#chunks = all.length === 4 + length ? [] : [all.subarray(4 + length)];
    this.#buffered -= 4 + length;
    this.#frames += 1;
    return all.subarray(4, 4 + length);
  }

  #join(): Buffer {
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }
}

function parseBody(body: Buffer): unknown {
  try {
    return parseJson(body, { depth: MAX_FRAME_DEPTH });
  } catch (error) {
    throw new FrameError(error instanceof JsonLimitError ? `JSON that ${error.message}` : 'a frame that is not JSON');
  }
}

/**
 * The tool `publish_file`: takes the bytes that the runner read in the workspace, stores them, and lists the file in the
 * status of its run. The list is there, empty, before the first piece is: so whoever removes the run knows that there may be
 * pieces, also when this pod is lost at any write.
 */
import { isTerminal } from '../../run/status.js';
import type { AgentRun, RunFile } from '../../api/v1alpha1/agent-run.js';
import { MAX_FILE_DESCRIPTION_BYTES, MAX_RUN_FILES } from '../../api/v1alpha1/agent-run.js';
import { MAX_FILE_BYTES, MAX_RUN_FILE_BYTES } from '../../api/v1alpha1/agent-run-file-part.js';
import { digestOfFile } from '../../files/cluster-file-store.js';
import { baseName, mediaTypeOfName, whyNoFileName } from '../../files/file-name.js';
import { FilesFullError, type FileOwner, type FilePlace, type FileStore } from '../../files/file-store.js';
import { isForbidden, isNotFound } from '../../kube/errors.js';
import type { GatewayToolInput } from '../../protocol/gateway-tools.js';
import type { ToolAnswer } from '../../protocol/run.js';
import { cutUtf8 } from '../../runtime/text.js';
import { runEnded } from '../errors.js';
import type { RunStore } from '../runs/run-store.js';
import type { ServedRun } from '../runs/served-runs.js';
import { ToolRefusal, answer, type ToolContext } from './tool-context.js';

export interface FileToolsOptions {
  files: Pick<FileStore, 'put'>;
  store: Pick<RunStore, 'update'>;
}

const FULL = `a run publishes at most ${MAX_RUN_FILES} files and ${MAX_RUN_FILE_BYTES / 1024 / 1024} MiB in all`;

export class FileTools {
  readonly #options: FileToolsOptions;

  constructor(options: FileToolsOptions) {
    this.#options = options;
  }

  async publish(input: GatewayToolInput<'publish_file'>, context: ToolContext): Promise<ToolAnswer> {
    const name = input.name ?? baseName(input.path);
    const refused = whyNoFileName(name);
    if (refused !== undefined) throw new ToolRefusal(`${refused}: pass another one as "name"`);
    const content = contentOf(context);
    const { description } = input;
    const file = {
      name,
      mediaType: mediaTypeOfName(name),
      bytes: content.length,
      sha256: digestOfFile(content),
      ...(description === undefined ? {} : { description: cutUtf8(description, MAX_FILE_DESCRIPTION_BYTES) }),
    };
    const { name: _name, description: _description, ...told } = file;
    const known = filesOf(context.run);
    if (!known.some((one) => isSame(one, file))) await this.#store(context, file, content);
    return answer({ name, ...told });
  }

  async #store(context: ToolContext, file: Omit<RunFile, keyof FilePlace>, content: Buffer): Promise<void> {
    const { run, served } = context;
    const files = filesOf(run);
    if (!hasRoom(files, file)) throw new ToolRefusal(FULL);
    if (run.status?.files === undefined) await this.#list(served, undefined);
    const stored = files.find(({ sha256 }) => sha256 === file.sha256);
    const place = stored ?? (await this.#put({ ...served.ref, uid: served.uid }, content, nextPlace(files)));
    await this.#list(served, { ...file, part: place.part, parts: place.parts });
  }

  async #put(owner: FileOwner, content: Buffer, from: number): Promise<FilePlace> {
    try {
      return await this.#options.files.put(owner, content, from);
    } catch (error) {
      if (error instanceof FilesFullError) throw new ToolRefusal(FULL);
      if (isForbidden(error) || isNotFound(error)) {
        throw new ToolRefusal('the namespace of the Box takes no more objects: a person has to look at its quota');
      }
      throw error;
    }
  }

  /** Adds a file to the list, or only makes the list. Rejects with 410 when the run has ended or is another pod's. */
  async #list(served: ServedRun, file: RunFile | undefined): Promise<void> {
    const { fencingToken } = served;
    const { run } = await this.#options.store.update(served.ref, (current) => {
      const files = filesOf(current);
      if (isTerminal(current) || (file === undefined ? current.status?.files : find(files, file)) !== undefined) return;
      return { type: 'published', fencingToken, files: file === undefined ? files : [...files, file] };
    });
    const isListed = file === undefined ? run.status?.files !== undefined : find(filesOf(run), file) !== undefined;
    if (isTerminal(run) || !isListed) throw runEnded(run.status?.phase);
  }
}

function contentOf({ content }: ToolContext): Buffer {
  if (content === undefined) throw new ToolRefusal('the file did not come with the call: the runner is too old for it');
  const bytes = Buffer.from(content, 'base64');
  if (bytes.length > MAX_FILE_BYTES) {
    throw new ToolRefusal(`a file has at most ${MAX_FILE_BYTES / 1024} KiB; compress it, or publish it in parts`);
  }
  return bytes;
}

function filesOf({ status }: AgentRun): readonly RunFile[] {
  return status?.files ?? [];
}

function isSame(one: Pick<RunFile, 'name' | 'sha256'>, other: Pick<RunFile, 'name' | 'sha256'>): boolean {
  return one.name === other.name && one.sha256 === other.sha256;
}

function find(files: readonly RunFile[], file: RunFile): RunFile | undefined {
  return files.find((one) => isSame(one, file));
}

/** The same content is stored once, under however many names. */
function hasRoom(files: readonly RunFile[], file: Pick<RunFile, 'sha256' | 'bytes'>): boolean {
  const sizes = new Map([...files, file].map(({ sha256, bytes }) => [sha256, bytes]));
  const bytes = [...sizes.values()].reduce((sum, one) => sum + one, 0);
  return files.length < MAX_RUN_FILES && bytes <= MAX_RUN_FILE_BYTES;
}

function nextPlace(files: readonly FilePlace[]): number {
  return files.reduce((next, { part, parts }) => Math.max(next, part + parts), 0);
}

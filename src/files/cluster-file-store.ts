/**
 * Published files in the cluster: pieces at numbered positions of their run, as the chunks of a transcript are. Positions are
 * taken in order and without gaps, and pieces go from the last to the first, so that reading by name from 0 on finds all that
 * there is, whatever process was lost at whatever write. A position that holds something else is passed over, never replaced:
 * a former owner of the run may still be writing.
 */
import { createHash } from 'node:crypto';
import { API_VERSION } from '../api/define-resource.js';
import { LABEL_MANAGED_BY, LABEL_RUN, MANAGED_BY } from '../api/labels.js';
import { filePartName } from '../api/names.js';
import {
  AgentRunFileParts,
  MAX_FILE_PART_BYTES,
  MAX_FILE_PARTS,
  type AgentRunFilePart,
} from '../api/v1alpha1/agent-run-file-part.js';
import type { RunFile } from '../api/v1alpha1/agent-run.js';
import { isAlreadyExists, isConflict, isNotFound, orUndefined } from '../kube/errors.js';
import { ownedBy } from '../kube/owner-references.js';
import type { KubeApi } from '../kube/types.js';
import { FilesFullError, type FileOwner, type FilePlace, type FileStore } from './file-store.js';

type FileApi = Pick<KubeApi, 'get' | 'create' | 'delete'>;

/** SHA-256 in hex. */
export function digestOfFile(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

export class ClusterFileStore implements FileStore {
  constructor(private readonly api: FileApi) {}

  async put(owner: FileOwner, content: Buffer, from: number): Promise<FilePlace> {
    const file = digestOfFile(content);
    const pieces = piecesOf(content);
    for (let first = from; first + pieces.length <= MAX_FILE_PARTS;) {
      const taken = await this.#putFrom(owner, { file, pieces, first });
      if (taken === undefined) return { part: first, parts: pieces.length };
      first = taken + 1;
    }
    throw new FilesFullError(`run ${owner.name} has no place for more files`);
  }

  async read(owner: FileOwner, file: RunFile, signal: AbortSignal): Promise<Buffer | undefined> {
    const positions = Array.from({ length: file.parts }, (_, index) => file.part + index);
    const pieces = await Promise.all(
      positions.map((position) => orUndefined(this.api.get(AgentRunFileParts, refOf(owner, position), { signal }))),
    );
    const content = Buffer.concat(
      pieces.flatMap((piece) => (piece?.spec.runUid === owner.uid ? [Buffer.from(piece.spec.data, 'base64')] : [])),
    );
    return content.length === file.bytes && digestOfFile(content) === file.sha256 ? content : undefined;
  }

  async remove(owner: FileOwner, signal: AbortSignal): Promise<void> {
    const uids: string[] = [];
    for (let position = 0; position < MAX_FILE_PARTS; position++) {
      const options = { metadataOnly: true, signal } as const;
      const piece = await orUndefined(this.api.get(AgentRunFileParts, refOf(owner, position), options));
      const uid = piece?.metadata.uid;
      if (piece === undefined || uid === undefined || !ownedBy(piece, owner.uid)) break;
      uids.push(uid);
    }
    for (const [position, uid] of [...uids.entries()].reverse()) {
      await ignoreGone(this.api.delete(AgentRunFileParts, refOf(owner, position), { uid, signal }));
    }
  }

  /** Undefined when all pieces are stored from there on; else the position that holds something else. */
  async #putFrom(owner: FileOwner, file: Pieces): Promise<number | undefined> {
    for (const index of file.pieces.keys()) {
      if (!(await this.#putPiece(owner, file, index))) return file.first + index;
    }
    return undefined;
  }

  async #putPiece(owner: FileOwner, file: Pieces, index: number): Promise<boolean> {
    const piece = pieceObject(owner, file, index);
    try {
      await this.api.create(AgentRunFileParts, piece);
      return true;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const { spec } = await this.api.get(AgentRunFileParts, refOf(owner, file.first + index));
    if (spec.runUid !== owner.uid) {
      throw new Error(`files of an earlier run with the name ${owner.name} are being removed`);
    }
    return spec.file === file.file && spec.index === index;
  }
}

/** A file on its way into the cluster. */
interface Pieces {
  /** SHA-256 of all of it. */
  file: string;
  pieces: readonly Buffer[];
  first: number;
}

/** An empty file is one empty piece. */
function piecesOf(content: Buffer): Buffer[] {
  const count = Math.max(1, Math.ceil(content.length / MAX_FILE_PART_BYTES));
  return Array.from({ length: count }, (_, index) =>
    content.subarray(index * MAX_FILE_PART_BYTES, (index + 1) * MAX_FILE_PART_BYTES),
  );
}

function refOf({ namespace, name }: FileOwner, position: number) {
  return { namespace, name: filePartName(name, position) };
}

function pieceObject(owner: FileOwner, { file, pieces, first }: Pieces, index: number): AgentRunFilePart {
  const content = pieces[index] ?? Buffer.alloc(0);
  const { namespace, name, uid } = owner;
  return {
    apiVersion: API_VERSION,
    kind: AgentRunFileParts.kind,
    metadata: {
      ...refOf(owner, first + index),
      namespace,
      labels: { [LABEL_RUN]: name, [LABEL_MANAGED_BY]: MANAGED_BY },
      // The backstop: retention removes pieces before their run.
      ownerReferences: [{ apiVersion: API_VERSION, kind: 'AgentRun', name, uid, controller: true }],
    },
    spec: {
      run: name,
      runUid: uid,
      position: first + index,
      file,
      index,
      bytes: content.length,
      data: content.toString('base64'),
    },
  };
}

/** The piece is gone, or has been replaced by one of a new run of the name. */
async function ignoreGone(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}

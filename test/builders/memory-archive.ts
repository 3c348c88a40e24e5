/** The archive in memory, with the rules of the real one; unavailable when a test says so. */
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { parseHead, parseRun, toRow } from '../../src/archive/rows.js';
import type { RunRow } from '../../src/archive/rows.js';
import { ArchiveUnavailableError, MAX_SESSION_RUNS } from '../../src/archive/types.js';
import type {
  ArchiveEntry,
  ArchiveReader,
  ArchiveScope,
  ArchiveWriter,
  ArchivedChunk,
  ArchivedSession,
  PutResult,
  SessionsQuery,
} from '../../src/archive/types.js';

export class MemoryArchive implements ArchiveReader, ArchiveWriter {
  readonly #rows = new Map<string, RunRow>();
  readonly #chunks = new Map<string, readonly ArchivedChunk[]>();
  readonly #purged = new Set<string>();
  /** Every call by its name. */
  readonly calls: string[] = [];
  available = true;
  /** For retryInMs. */
  resting = false;

  get names(): string[] {
    return [...this.#rows.values()].map(({ name }) => name).sort();
  }

  put(entry: ArchiveEntry): Promise<PutResult> {
    return this.#call('put', () => {
      if (this.#purged.has(entry.agentUid)) return 'purged';
      const row = toRow(entry);
      this.#rows.set(row.uid, row);
      if (entry.chunks.length > 0) this.#chunks.set(row.uid, entry.chunks);
      return 'stored';
    });
  }

  purge(agentUid: string): Promise<void> {
    return this.#call('purge', () => {
      this.#purged.add(agentUid);
      for (const row of this.#rows.values()) if (row.agentUid === agentUid) this.#rows.delete(row.uid);
    });
  }

  retryInMs(): number {
    return this.resting ? 5_000 : 0;
  }

  list(scope: ArchiveScope, limit: number): Promise<AgentRun[]> {
    return this.#call('list', () => this.#of(scope).slice(0, limit).map(headOf));
  }

  session(
    scope: ArchiveScope,
    sessionId: string,
    _signal?: AbortSignal,
    limit = MAX_SESSION_RUNS,
  ): Promise<AgentRun[]> {
    return this.#call('session', () =>
      this.#of(scope)
        .filter((row) => row.sessionId === sessionId)
        .slice(0, limit)
        .map(headOf)
        .reverse(),
    );
  }

  sessions(scope: ArchiveScope, { except, waiting, limit }: SessionsQuery): Promise<ArchivedSession[]> {
    return this.#call('sessions', () =>
      [...Map.groupBy(this.#of(scope), (row) => row.sessionId)]
        .filter(([sessionId]) => !except.includes(sessionId))
        .filter(([, rows]) => !waiting || rows.find((row) => row.claimed)?.waits === true)
        .map(([, rows]) => sessionOf(rows))
        .sort((a, b) => order(b.updatedAt, a.updatedAt))
        .slice(0, limit),
    );
  }

  partsOf(
    scope: ArchiveScope,
    { sessionIds, exceptUids }: { sessionIds: readonly string[]; exceptUids: readonly string[] },
  ): Promise<ArchivedSession[]> {
    return this.#call('parts', () => {
      const rows = this.#of(scope).filter((row) => sessionIds.includes(row.sessionId) && !exceptUids.includes(row.uid));
      return [...Map.groupBy(rows, (row) => row.sessionId).values()].map(sessionOf);
    });
  }

  find(scope: ArchiveScope, by: { name: string } | { uid: string }): Promise<AgentRun | undefined> {
    return this.#call('find', () => {
      const row = this.#of(scope).find((one) => ('uid' in by ? one.uid === by.uid : one.name === by.name));
      return row === undefined ? undefined : parseRun(row.head, row.texts);
    });
  }

  chunks(scope: ArchiveScope, uid: string): Promise<ArchivedChunk[]> {
    return this.#call('chunks', () => {
      const isThere = this.#of(scope).some((row) => row.uid === uid);
      return isThere ? [...(this.#chunks.get(uid) ?? [])] : [];
    });
  }

  /** Newest first. */
  #of({ workspace, box, agentUid }: ArchiveScope): RunRow[] {
    return [...this.#rows.values()]
      .filter((row) => row.workspace === workspace && row.box === box && row.agentUid === agentUid)
      .sort((a, b) => (a.createdAt === b.createdAt ? order(b.name, a.name) : order(b.createdAt, a.createdAt)));
  }

  async #call<T>(name: string, work: () => T): Promise<T> {
    this.calls.push(name);
    await Promise.resolve();
    if (!this.available) throw new ArchiveUnavailableError('ECONNREFUSED');
    return work();
  }
}

/** `rows` are those of one session, newest first. */
function sessionOf(rows: readonly RunRow[]): ArchivedSession {
  const [newest, oldest] = [rows[0], rows.at(-1)];
  if (newest === undefined || oldest === undefined) throw new Error('a session has at least one run');
  const last = rows.find((row) => row.claimed);
  return {
    sessionId: newest.sessionId,
    runs: rows.length,
    createdAt: oldest.createdAt,
    updatedAt:
      rows
        .flatMap((row) => [row.createdAt, row.finishedAt ?? ''])
        .toSorted(order)
        .at(-1) ?? '',
    first: headOf(oldest),
    last: last === undefined ? undefined : headOf(last),
  };
}

function headOf(row: RunRow): AgentRun {
  return parseHead(row.head);
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

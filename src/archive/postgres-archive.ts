/** The archive on PostgreSQL. All SQL with values is parameterised; every read names workspace, Box and agent. */
import type { PoolClient } from 'pg';
import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import { sleep } from '../runtime/clock.js';
import type { Clock } from '../runtime/clock.js';
import { Database, NoTablesError } from './database.js';
import type { DatabaseOptions } from './database.js';
import { parseHead, parseRun, toRow } from './rows.js';
import type { RunRow } from './rows.js';
import { LATEST_SESSIONS, OF_AGENT, SESSION_PARTS, WAITING_SESSIONS, toSession } from './session-queries.js';
import type { SessionRow } from './session-queries.js';
import { ArchiveUnavailableError, MAX_SESSION_RUNS } from './types.js';
import type {
  ArchiveEntry,
  ArchiveReader,
  ArchiveScope,
  ArchiveWriter,
  ArchivedChunk,
  ArchivedSession,
  PutResult,
  SessionsQuery,
} from './types.js';

/** Runs that are removed in one transaction, with their chunks of up to 3 MiB each. */
const PURGE_BATCH = 200;

/** Time between two attempts to create the tables. */
const PREPARE_AGAIN_MS = 10_000;

const LATEST_FIRST = 'created_at desc, name desc';

const SQL = {
  // put and purge of one agent exclude each other; puts do not.
  lockForPut: 'select pg_advisory_xact_lock_shared(hashtextextended($1, 0))',
  lockForPurge: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
  isPurged: 'select 1 from boxwright_purged_agents where agent_uid = $1',
  putRun: `
    insert into boxwright_runs (uid, workspace, box, agent, agent_uid, name, session_id, created_at, finished_at,
      phase, resource_version, head, texts, has_input, claimed, waits)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
    on conflict (uid) do update set
      finished_at = excluded.finished_at, phase = excluded.phase, resource_version = excluded.resource_version,
      head = excluded.head, claimed = excluded.claimed, waits = excluded.waits,
      texts = case when boxwright_runs.has_input and not excluded.has_input then boxwright_runs.texts
        else excluded.texts end,
      has_input = boxwright_runs.has_input or excluded.has_input
    where excluded.resource_version >= boxwright_runs.resource_version`,
  putChunk: `
    insert into boxwright_run_chunks (run_uid, seq, bytes, sha256, data) values ($1, $2, $3, $4, $5)
    on conflict (run_uid, seq) do nothing`,
  notePurge: 'insert into boxwright_purged_agents (agent_uid) values ($1) on conflict (agent_uid) do nothing',
  purgeSome: `delete from boxwright_runs
    where uid in (select uid from boxwright_runs where agent_uid = $1 limit ${PURGE_BATCH})`,
  list: `select head from boxwright_runs where ${OF_AGENT} order by ${LATEST_FIRST} limit $4`,
  session: `select head from boxwright_runs where ${OF_AGENT} and session_id = $4
    order by ${LATEST_FIRST} limit $5`,
  findByName: `select head, texts from boxwright_runs where ${OF_AGENT} and name = $4 order by ${LATEST_FIRST} limit 1`,
  findByUid: `select head, texts from boxwright_runs where ${OF_AGENT} and uid = $4`,
  chunks: `select r.name, c.seq, c.bytes, c.sha256, c.data
    from boxwright_run_chunks c join boxwright_runs r on r.uid = c.run_uid
    where ${OF_AGENT} and r.uid = $4 order by c.seq`,
} as const;

export class PostgresArchive implements ArchiveReader, ArchiveWriter {
  constructor(private readonly database: Pick<Database, 'transaction' | 'retryInMs' | 'close'>) {}

  /** Connects when it is first used, so that a process starts while PostgreSQL is unavailable. */
  static open(options: DatabaseOptions): PostgresArchive {
    return new PostgresArchive(new Database(options));
  }

  /** Creates or updates the tables; retries until that succeeds or `signal` fires. Never rejects. */
  async prepare(clock: Clock, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.database.transaction({ operation: 'prepare', readOnly: true, signal }, () => Promise.resolve());
        return;
      } catch (error) {
        if (!(error instanceof ArchiveUnavailableError)) throw error;
      }
      await sleep(clock, PREPARE_AGAIN_MS, signal);
    }
  }

  put(entry: ArchiveEntry, signal: AbortSignal): Promise<PutResult> {
    const row = toRow(entry);
    return this.database.transaction({ operation: 'put', readOnly: false, signal }, async (client) => {
      await client.query(SQL.lockForPut, [row.agentUid]);
      const purged = await client.query(SQL.isPurged, [row.agentUid]);
      if (purged.rows.length > 0) return 'purged';
      await client.query(SQL.putRun, valuesOf(row));
      for (const chunk of entry.chunks.filter(isWhole)) await putChunk(client, chunk);
      return 'stored';
    });
  }

  async purge(agentUid: string, signal: AbortSignal): Promise<void> {
    const call = { operation: 'purge', readOnly: false, signal };
    // From the first transaction on nothing is added, so the others come to an end.
    await this.database.transaction(call, async (client) => {
      await client.query(SQL.lockForPurge, [agentUid]);
      await client.query(SQL.notePurge, [agentUid]);
    });
    for (let removed = PURGE_BATCH; removed === PURGE_BATCH;) {
      const result = await this.database.transaction(call, (client) => client.query(SQL.purgeSome, [agentUid]));
      removed = result.rowCount ?? 0;
    }
  }

  retryInMs(): number {
    return this.database.retryInMs();
  }

  /** Waits for calls that are under way. */
  close(): Promise<void> {
    return this.database.close();
  }

  async list(scope: ArchiveScope, limit: number, signal: AbortSignal): Promise<AgentRun[]> {
    const rows = await this.#read<{ head: string }>('list', SQL.list, [...keyOf(scope), limit], signal);
    return rows.map(({ head }) => parseHead(head));
  }

  async session(
    scope: ArchiveScope,
    sessionId: string,
    signal: AbortSignal,
    limit = MAX_SESSION_RUNS,
  ): Promise<AgentRun[]> {
    const values = [...keyOf(scope), sessionId, limit];
    const rows = await this.#read<{ head: string }>('session', SQL.session, values, signal);
    return rows.map(({ head }) => parseHead(head)).reverse();
  }

  async sessions(scope: ArchiveScope, query: SessionsQuery, signal: AbortSignal): Promise<ArchivedSession[]> {
    const sql = query.waiting ? WAITING_SESSIONS : LATEST_SESSIONS;
    const values = [...keyOf(scope), query.except, query.limit];
    const rows = await this.#read<{ session_id: string }>('sessions', sql, values, signal);
    return await this.partsOf(scope, { sessionIds: rows.map((row) => row.session_id), exceptUids: [] }, signal);
  }

  async partsOf(
    scope: ArchiveScope,
    { sessionIds, exceptUids }: { sessionIds: readonly string[]; exceptUids: readonly string[] },
    signal: AbortSignal,
  ): Promise<ArchivedSession[]> {
    if (sessionIds.length === 0) return [];
    const values = [...keyOf(scope), sessionIds, exceptUids];
    return (await this.#read<SessionRow>('parts', SESSION_PARTS, values, signal)).map(toSession);
  }

  async find(
    scope: ArchiveScope,
    by: { name: string } | { uid: string },
    signal: AbortSignal,
  ): Promise<AgentRun | undefined> {
    const [sql, value] = 'uid' in by ? [SQL.findByUid, by.uid] : [SQL.findByName, by.name];
    const [row] = await this.#read<{ head: string; texts: string }>('find', sql, [...keyOf(scope), value], signal);
    return row === undefined ? undefined : parseRun(row.head, row.texts);
  }

  async chunks(scope: ArchiveScope, uid: string, signal: AbortSignal): Promise<ArchivedChunk[]> {
    const rows = await this.#read<Omit<ArchivedChunk, 'run' | 'runUid' | 'data'> & { name: string; data: Buffer }>(
      'chunks',
      SQL.chunks,
      [...keyOf(scope), uid],
      signal,
    );
    return rows.map(({ name, data, ...chunk }) => ({
      ...chunk,
      run: name,
      runUid: uid,
      data: data.toString('base64'),
    }));
  }

  async #read<R extends object>(
    operation: string,
    sql: string,
    values: readonly unknown[],
    signal: AbortSignal,
  ): Promise<R[]> {
    const call = { operation, readOnly: true, signal };
    try {
      return (await this.database.transaction(call, (client) => client.query<R>(sql, [...values]))).rows;
    } catch (error) {
      // Nothing was archived yet.
      if (error instanceof NoTablesError) return [];
      throw error;
    }
  }
}

function keyOf({ workspace, box, agentUid }: ArchiveScope): string[] {
  return [workspace, box, agentUid];
}

function valuesOf(row: RunRow): unknown[] {
  return [
    row.uid,
    row.workspace,
    row.box,
    row.agent,
    row.agentUid,
    row.name,
    row.sessionId,
    row.createdAt,
    row.finishedAt,
    row.phase,
    row.resourceVersion,
    row.head,
    row.texts,
    row.hasInput,
    row.claimed,
    row.waits,
  ];
}

/** A chunk whose digest cannot be one was damaged before; it must not hold up the rest. */
function isWhole(chunk: ArchivedChunk): boolean {
  return /^[0-9a-f]{64}$/.test(chunk.sha256);
}

async function putChunk(client: PoolClient, { runUid, seq, bytes, sha256, data }: ArchivedChunk): Promise<void> {
  await client.query(SQL.putChunk, [runUid, seq, bytes, sha256, Buffer.from(data, 'base64')]);
}

/**
 * Connections to PostgreSQL: few, with a deadline for every wait, and quick to fail while the server is unavailable.
 * Knows no runs. Settings are made inside the transaction, so that poolers which share connections (PgBouncer) work as well.
 */
import { DatabaseError, Pool } from 'pg';
import type { PoolClient, QueryConfig } from 'pg';
import type { Logger } from '../observability/logger.js';
import type { Clock } from '../runtime/clock.js';
import type { ArchiveMetrics } from './metrics.js';
import { MIGRATIONS, MIGRATIONS_TABLE, TABLES_VERSION } from './migrations.js';
import { ArchiveUnavailableError } from './types.js';

/** Longest wait for a connection, a free one of the pool or a new one. */
const CONNECT_MS = 3_000;
/** Longest statement, as the server counts; `BEGIN` below has the same number. */
const STATEMENT_MS = 10_000;
/** Longest wait for an answer when the server or the network is silent. */
const ANSWER_MS = STATEMENT_MS + 2_000;
const IDLE_MS = 30_000;
/** How long calls fail at once after a failure. */
const REST_MS = 5_000;
/** Longest step of a migration: an index of a large table takes its time, and only archiving waits for it. */
const MIGRATION_MS = 30 * 60_000;
/** Any number that nobody else uses: two processes never migrate at once. */
const MIGRATION_LOCK = 7_021_310_451_827;

const BEGIN = `begin; set local statement_timeout = ${STATEMENT_MS}; set local lock_timeout = ${STATEMENT_MS}`;
const BEGIN_READ = `begin read only; set local statement_timeout = ${STATEMENT_MS}`;

/** Classes of SQLSTATE that are about one statement and its values; the server itself is well. */
const STATEMENT_CLASSES: ReadonlySet<string> = new Set(['22', '23', '40']);

export interface DatabaseOptions {
  url: string;
  clock: Clock;
  log: Logger;
  metrics: ArchiveMetrics;
  /** Most connections. */
  connections: number;
  /** Whether this process makes and updates the tables; the others only read, with the rights of a user who may do no more. */
  makesTables: boolean;
}

/** The tables are not there yet: nothing was archived. */
export class NoTablesError extends Error {
  override readonly name = 'NoTablesError';
}

export interface Call {
  /** For the metrics. */
  operation: string;
  readOnly: boolean;
  signal: AbortSignal;
}

export class Database {
  readonly #options: DatabaseOptions;
  readonly #pool: Pool;
  #hasTables = false;
  #reachable = true;
  /** On the monotonic clock. */
  #restUntil = -Infinity;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#pool = new Pool({
      connectionString: options.url,
      application_name: 'boxwright',
      max: options.connections,
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: ANSWER_MS,
      idleTimeoutMillis: IDLE_MS,
      keepAlive: true,
    });
    // A connection that breaks while nobody uses it: the pool drops it, and the next call tells whether the server is there.
    this.#pool.on('error', (error) => options.log.debug({ code: codeOf(error) }, 'archive connection lost'));
    // One that breaks under a call tells so twice: the statement rejects, which is how the call hears of it, and this event would
    // end the process if nobody listened.
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  /**
   * Runs `work` in one transaction. Rejects with {@link ArchiveUnavailableError}, and with {@link NoTablesError} in a process
   * that does not make them.
   */
  async transaction<T>(call: Call, work: (client: PoolClient) => Promise<T>): Promise<T> {
    if (this.retryInMs() > 0) throw new ArchiveUnavailableError('the last call failed a moment ago');
    const { clock, metrics, makesTables } = this.#options;
    const started = clock.monotonic();
    const seconds = () => (clock.monotonic() - started) / 1000;
    try {
      if (!this.#hasTables) await (makesTables ? this.#migrate(call.signal) : this.#expectTables(call.signal));
      const result = await this.#inTransaction(call, work);
      metrics.called(call.operation, 'ok', seconds());
      this.#noteReachable();
      return result;
    } catch (error) {
      if (error instanceof NoTablesError) {
        this.#noteReachable();
        throw error;
      }
      metrics.called(call.operation, 'failed', seconds());
      throw this.#failed(error, call);
    }
  }

  /** Milliseconds for which calls fail at once. */
  retryInMs(): number {
    return Math.max(0, this.#restUntil - this.#options.clock.monotonic());
  }

  /** Waits for calls that are under way. */
  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #inTransaction<T>({ readOnly, signal }: Omit<Call, 'operation'>, work: (client: PoolClient) => Promise<T>) {
    signal.throwIfAborted();
    const client = await this.#pool.connect();
    let finished = false;
    try {
      const result = await unlessAborted(signal, async () => {
        await client.query(readOnly ? BEGIN_READ : BEGIN);
        const value = await work(client);
        await client.query('commit');
        return value;
      });
      finished = true;
      return result;
    } finally {
      // A connection in an unknown state is closed: that also rolls back.
      client.release(!finished);
    }
  }

  /** Once per process; the tables may have been made by another one. */
  async #migrate(signal: AbortSignal): Promise<void> {
    await this.#inTransaction({ readOnly: false, signal }, async (client) => {
      await client.query(`set local statement_timeout = ${MIGRATION_MS}; set local lock_timeout = ${MIGRATION_MS}`);
      await migrationStep(client, 'select pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
      const found = await tablesVersion(client);
      if (found === undefined) await client.query(MIGRATIONS_TABLE);
      for (const { version, sql } of MIGRATIONS.filter((one) => one.version > (found ?? 0))) {
        await migrationStep(client, sql);
        await client.query('insert into boxwright_migrations (version) values ($1)', [version]);
      }
    });
    this.#hasTables = true;
  }

  /** During an upgrade the tables may be older than this release: they are updated within moments. */
  async #expectTables(signal: AbortSignal): Promise<void> {
    const version = await this.#inTransaction({ readOnly: true, signal }, tablesVersion);
    if (version === undefined || version === 0) throw new NoTablesError('the archive has no tables yet');
    if (version < TABLES_VERSION) throw new ArchiveUnavailableError('its tables are not updated yet');
    this.#hasTables = true;
  }

  #noteReachable(): void {
    if (!this.#reachable) this.#options.log.info({}, 'the archive can be used again');
    this.#reachable = true;
    this.#options.metrics.reachable(true);
  }

  #failed(error: unknown, { operation, signal }: Call): ArchiveUnavailableError {
    const code = codeOf(error);
    const { log, metrics, clock } = this.#options;
    if (error instanceof ArchiveUnavailableError) return error;
    if (signal.aborted) return new ArchiveUnavailableError('the call was given up');
    if (error instanceof DatabaseError && STATEMENT_CLASSES.has((error.code ?? '').slice(0, 2))) {
      log.warn({ operation, code }, 'the archive refused a statement');
      return new ArchiveUnavailableError(code);
    }
    this.#restUntil = clock.monotonic() + REST_MS;
    metrics.reachable(false);
    if (this.#reachable) log.error({ operation, code }, 'the archive cannot be used');
    this.#reachable = false;
    return new ArchiveUnavailableError(code);
  }
}

/** The last migration that was made; undefined before the first. */
async function tablesVersion(client: PoolClient): Promise<number | undefined> {
  const { rows: found } = await client.query<{ there: boolean }>(
    "select to_regclass('boxwright_migrations') is not null as there",
  );
  if (found[0]?.there !== true) return undefined;
  const { rows } = await client.query<{ version: number }>(
    'select coalesce(max(version), 0)::integer as version from boxwright_migrations',
  );
  return rows[0]?.version ?? 0;
}

/** Without the deadline that other statements have at the client. */
async function migrationStep(client: PoolClient, text: string, values: unknown[] = []): Promise<void> {
  const query: QueryConfig & { query_timeout: number } = { text, values, query_timeout: MIGRATION_MS };
  await client.query(query);
}

/** SQLSTATE or the name of a system error; never the message, which may quote addresses, users and values. */
function codeOf(error: unknown): string {
  if (error instanceof DatabaseError) return `SQLSTATE ${error.code ?? 'unknown'}`;
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : 'the connection was lost, or there was no answer in time';
}

async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(new Error('aborted'));
  signal.addEventListener('abort', onAbort, { once: true });
  const working = work();
  try {
    return await Promise.race([working, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    // Given up: the caller closes the connection, which ends the work; how it ends no longer matters.
    working.catch(() => undefined);
  }
}

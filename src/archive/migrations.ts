/**
 * The tables of the archive. A migration that was released is never changed; later ones only add, so that an older
 * release works on the tables of a newer one during an upgrade and after a rollback.
 */

export interface Migration {
  readonly version: number;
  readonly sql: string;
}

/** Created first, under the lock. */
export const MIGRATIONS_TABLE = `
  create table boxwright_migrations (
    version integer primary key,
    applied_at timestamptz not null default now()
  )`;

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    sql: `
      create table boxwright_runs (
        uid text primary key,
        workspace text not null,
        box text not null,
        agent text not null,
        agent_uid text not null,
        name text collate "C" not null,
        session_id text not null,
        created_at timestamptz not null,
        finished_at timestamptz,
        phase text not null,
        resource_version numeric not null,
        head text not null,
        texts text not null,
        has_input boolean not null,
        archived_at timestamptz not null default now()
      );
      create index boxwright_runs_of_agent on boxwright_runs (agent_uid, created_at desc, name desc);
      create index boxwright_runs_of_session on boxwright_runs (agent_uid, session_id, created_at desc, name desc);
      create index boxwright_runs_by_name on boxwright_runs (agent_uid, name);
      create index boxwright_runs_by_end on boxwright_runs (finished_at);
      create table boxwright_run_chunks (
        run_uid text not null references boxwright_runs (uid) on delete cascade,
        seq integer not null,
        bytes integer not null,
        sha256 text not null,
        data bytea not null,
        primary key (run_uid, seq)
      );
      create table boxwright_purged_agents (
        agent_uid text primary key,
        purged_at timestamptz not null default now()
      )`,
  },
  {
    version: 2,
    sql: `
      alter table boxwright_runs
        add column claimed boolean not null default true,
        add column waits boolean not null default false;
      create index boxwright_runs_of_agent_by_end on boxwright_runs (agent_uid, finished_at desc, uid desc);
      create index boxwright_runs_that_wait on boxwright_runs (agent_uid) where waits`,
  },
];

/** What the queries of this release need. */
export const TABLES_VERSION = MIGRATIONS.at(-1)?.version ?? 0;

/** SQL about whole sessions. $1 to $3 are workspace, Box and agent, as in every read. */
import { parseHead } from './rows.js';
import type { ArchivedSession } from './types.js';

/** The runs of one agent. */
export const OF_AGENT = 'workspace = $1 and box = $2 and agent_uid = $3';

/**
 * Ids of the $5 sessions that ended last, without $4. It walks the index from the newest run and jumps over the sessions that
 * it has seen: an agent may have millions of runs.
 */
export const LATEST_SESSIONS = `
  with recursive latest as (
    (select session_id, finished_at, uid, array[session_id] as seen from boxwright_runs
      where ${OF_AGENT} and finished_at is not null and session_id <> all($4::text[])
      order by finished_at desc, uid desc limit 1)
    union all
    select next.session_id, next.finished_at, next.uid, latest.seen || next.session_id
    from latest cross join lateral (
      select session_id, finished_at, uid from boxwright_runs
      where ${OF_AGENT} and (finished_at, uid) < (latest.finished_at, latest.uid)
        and session_id <> all($4::text[]) and session_id <> all(latest.seen)
      order by finished_at desc, uid desc limit 1
    ) next
    where cardinality(latest.seen) < $5
  )
  select session_id from latest`;

/** Ids of the sessions without $4 whose latest claimed run waits for an answer; at most $5, the latest first. */
export const WAITING_SESSIONS = `
  select session_id from boxwright_runs run
  where ${OF_AGENT} and waits and session_id <> all($4::text[]) and not exists (
    select 1 from boxwright_runs later
    where later.agent_uid = run.agent_uid and later.session_id = run.session_id and later.claimed
      and (later.created_at, later.name) > (run.created_at, run.name)
  )
  order by finished_at desc, uid desc limit $5`;

/** What is there of the sessions $4, in this order, without the runs $5. */
export const SESSION_PARTS = `
  select wanted.session_id, known.runs, known.created_at, known.updated_at, opening.head as first, closing.head as last
  from unnest($4::text[]) with ordinality as wanted (session_id, place)
  cross join lateral (
    select count(*)::integer as runs, min(created_at) as created_at, max(greatest(created_at, finished_at)) as updated_at
    from boxwright_runs where ${OF_AGENT} and session_id = wanted.session_id and uid <> all($5::text[])
  ) known
  cross join lateral (
    select head from boxwright_runs
    where ${OF_AGENT} and session_id = wanted.session_id and uid <> all($5::text[])
    order by created_at, name limit 1
  ) opening
  left join lateral (
    select head from boxwright_runs
    where ${OF_AGENT} and session_id = wanted.session_id and uid <> all($5::text[]) and claimed
    order by created_at desc, name desc limit 1
  ) closing on true
  order by wanted.place`;

export interface SessionRow {
  session_id: string;
  runs: number;
  created_at: Date;
  updated_at: Date;
  first: string;
  last: string | null;
}

export function toSession(row: SessionRow): ArchivedSession {
  return {
    sessionId: row.session_id,
    runs: row.runs,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
    first: parseHead(row.first),
    last: row.last === null ? undefined : parseHead(row.last),
  };
}

/** The schedules of an agent: when they start it next, and what it is told. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from 'wouter';
import { callTool } from './api.js';
import type { Schedule } from './api.js';
import { Code, Empty, Moment, Problem, When, runHref } from './parts.js';
import { T } from './texts.js';

const text = T.schedules;

interface OfAgent {
  agentId: string;
  canWrite: boolean;
}

/** All schedules, by slug. */
export function Schedules({ agentId, canWrite }: OfAgent) {
  const schedules = useQuery({
    queryKey: ['live', 'schedules', agentId],
    queryFn: () => callTool<{ schedules: Schedule[] }>('list_schedules', { agentId }),
  });
  if (schedules.isPending) return <p>{T.loading}</p>;
  if (schedules.isError) return <Problem error={schedules.error} retry={() => void schedules.refetch()} />;
  if (schedules.data.schedules.length === 0) return <Empty>{text.none}</Empty>;
  return schedules.data.schedules.map((schedule) => (
    <ScheduleCard key={schedule.slug} agentId={agentId} schedule={schedule} canWrite={canWrite} />
  ));
}

function ScheduleCard({ agentId, schedule, canWrite }: OfAgent & { schedule: Schedule }) {
  const { slug, name, body, cron, runAt, timezone, enabled, nextRunAt, lastRunAt, lastRunId } = schedule;
  const client = useQueryClient();
  const settle = { onSettled: () => client.invalidateQueries({ queryKey: ['live'] }) };
  const start = useMutation({
    mutationFn: () => callTool<{ runId: string }>('run_schedule_now', { agentId, slug }),
    ...settle,
  });
  const turn = useMutation({
    mutationFn: () => callTool('upsert_schedule', { agentId, slug, enabled: !enabled }),
    ...settle,
  });
  return (
    <article className="card item" aria-label={name}>
      <div className="row">
        <h2>{name}</h2>
        <code>{cron === null ? (runAt ?? '') : `${cron} ${timezone}`}</code>
      </div>
      <p className="small muted">
        {nextRunAt === null ? (enabled ? text.never : text.disabled) : text.next}{' '}
        {nextRunAt === null ? null : <Moment at={nextRunAt} />}
        {lastRunAt === null || lastRunId === null ? null : (
          <>
            {' '}
            {text.last}{' '}
            <Link href={runHref(agentId, lastRunId)}>
              <When at={lastRunAt} />
            </Link>
          </>
        )}
      </p>
      <details>
        <summary>{text.body}</summary>
        <Code label={text.body}>{body}</Code>
      </details>
      {start.isError ? <Problem error={start.error} /> : null}
      {turn.isError ? <Problem error={turn.error} /> : null}
      {canWrite ? (
        <div className="row end">
          {start.data === undefined ? null : <Link href={runHref(agentId, start.data.runId)}>{text.started}</Link>}
          <button disabled={turn.isPending} onClick={() => turn.mutate()}>
            {enabled ? text.disable : text.enable}
          </button>
          <button disabled={start.isPending} onClick={() => start.mutate()}>
            {text.now}
          </button>
        </div>
      ) : null}
    </article>
  );
}

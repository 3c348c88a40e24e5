/** One run, as it happens: where it stands, what it said, thought and did, and what a person may do with it. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { Answer } from './answer.js';
import { callTool, readTimeline } from './api.js';
import type { FullRun, Run } from './api.js';
import { Files } from './files.js';
import { Message } from './message.js';
import { AgentText, Code, Problem, Status, When, agentHref, count, duration, money, runHref } from './parts.js';
import { T } from './texts.js';
import { Timeline } from './timeline.js';

const text = T.runPage;
/** How often a working run is read again; a page in the background reads nothing. */
const LOOK_MS = 1_500;

interface RunProps {
  agentId: string;
  runId: string;
  canWrite: boolean;
}

/** The page of a run. */
export function RunPage({ agentId, runId, canWrite }: RunProps) {
  const run = useQuery({
    queryKey: ['live', 'run', agentId, runId],
    queryFn: () => callTool<FullRun>('get_run', { agentId, runId }),
    refetchInterval: ({ state }) => (state.data?.status === 'running' ? LOOK_MS : false),
  });
  const works = run.data?.status === 'running';
  const timeline = useQuery({
    queryKey: ['live', 'timeline', agentId, runId],
    queryFn: () => readTimeline(agentId, runId),
    refetchInterval: works ? LOOK_MS : false,
  });
  if (run.isPending) return <p className="center">{T.loading}</p>;
  if (run.isError) return <Problem error={run.error} retry={() => void run.refetch()} />;
  return (
    <>
      <p className="small crumbs">
        <Link href={agentHref(agentId)}>{agentId}</Link> / {runId}
      </p>
      <Head run={run.data} agentId={agentId} canWrite={canWrite} />
      <Facts run={run.data} />
      <State run={run.data} agentId={agentId} canWrite={canWrite} />
      <section aria-label={text.input}>
        <h2 className="box">{text.input}</h2>
        <Code label={text.input}>{run.data.input ?? text.expired}</Code>
      </section>
      <section aria-label={text.timeline}>
        <h2 className="box">{text.timeline}</h2>
        {timeline.isError ? <Problem error={timeline.error} retry={() => void timeline.refetch()} /> : null}
        {timeline.data === undefined ? null : <Timeline timeline={timeline.data} startedAt={run.data.startedAt} />}
      </section>
      {works ? null : (
        <section aria-label={text.output}>
          <h2 className="box">{text.output}</h2>
          <div className="card">
            {run.data.output ? <AgentText text={run.data.output} /> : <p className="muted">{text.noOutput}</p>}
          </div>
        </section>
      )}
      {run.data.files.length === 0 ? null : (
        <section aria-label={text.files}>
          <h2 className="box">{text.files}</h2>
          <Files files={run.data.files} />
        </section>
      )}
      {canWrite && run.data.pending === null ? <Next run={run.data} agentId={agentId} /> : null}
    </>
  );
}

function Head({ run, agentId, canWrite }: { run: FullRun; agentId: string; canWrite: boolean }) {
  const [, navigate] = useLocation();
  const dialog = useRef<HTMLDialogElement>(null);
  const client = useQueryClient();
  const cancel = useMutation({
    mutationFn: () => callTool('cancel_run', { agentId, runId: run.runId }),
    onSettled: () => client.invalidateQueries({ queryKey: ['live'] }),
  });
  const again = useMutation({
    mutationFn: () => callTool<Run>('send_message', { agentId, message: run.input ?? '', waitSeconds: 0 }),
    onSuccess: ({ runId }) => navigate(runHref(agentId, runId)),
  });
  return (
    <>
      <div className="head">
        <h1>{run.runId}</h1>
        <Status value={run.status} />
        <span className="grow" />
        {canWrite && run.status === 'running' ? (
          <button className="danger" disabled={cancel.isPending} onClick={() => dialog.current?.showModal()}>
            {text.cancel}
          </button>
        ) : null}
        {canWrite && run.status !== 'running' && run.input !== null ? (
          <button title={text.againHint} disabled={again.isPending} onClick={() => again.mutate()}>
            {text.again}
          </button>
        ) : null}
      </div>
      {cancel.isError ? <Problem error={cancel.error} /> : null}
      {again.isError ? <Problem error={again.error} /> : null}
      <dialog ref={dialog} aria-labelledby="cancel-title">
        <form method="dialog">
          <h2 id="cancel-title">{text.cancel}</h2>
          <p>{text.cancelAsk}</p>
          <div className="row end">
            <button>{text.cancelNo}</button>
            <button className="danger" onClick={() => cancel.mutate()}>
              {text.cancelYes}
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
}

function Facts({ run }: { run: FullRun }) {
  const end = run.finishedAt === null ? Date.now() : Date.parse(run.finishedAt);
  const facts: [string, ReactNode][] = [
    [text.model, `${run.provider ?? ''} ${run.model ?? ''}`],
    [text.from, run.trigger],
    [text.started, <When key="started" at={run.startedAt} />],
    [text.duration, duration(Math.max(0, end - Date.parse(run.startedAt)))],
    [text.steps, count(run.steps)],
    [text.tokens, `${count(run.inputTokens)} / ${count(run.outputTokens)}`],
    [text.cached, count(run.cacheReadTokens)],
    [text.cost, costOf(run)],
  ];
  return (
    <dl className="facts card">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function costOf({ costUsd, status }: FullRun): string {
  if (costUsd !== null) return money(costUsd);
  return status === 'running' ? text.laterCost : text.unknownCost;
}

/** Why it waits, why it failed, or what it asks. */
function State({ run, agentId, canWrite }: { run: FullRun; agentId: string; canWrite: boolean }) {
  const { error, note, pending, warnings } = run;
  return (
    <>
      {note === undefined ? null : (
        <p className="card note" role="status">
          <b>{text.waiting}:</b> {note}
        </p>
      )}
      {error === null ? null : <Problem error={new Error(error)} />}
      {warnings.map((warning) => (
        <p key={warning} className="card note">
          <b>{text.warning}:</b> {warning}
        </p>
      ))}
      {pending === null ? null : (
        <div className="card item">
          <Answer agentId={agentId} sessionId={run.sessionId} pending={pending} canWrite={canWrite} />
        </div>
      )}
    </>
  );
}

/** A working run takes a message before its next step; a conversation goes on with a further run. */
function Next({ run, agentId }: { run: FullRun; agentId: string }) {
  const [, navigate] = useLocation();
  const client = useQueryClient();
  const steer = run.status === 'running';
  const send = async (message: string) => {
    const args = { agentId, message, sessionId: run.sessionId, steer, waitSeconds: 0 };
    const sent = await callTool<Run>('send_message', args);
    if (steer) await client.invalidateQueries({ queryKey: ['live'] });
    else navigate(runHref(agentId, sent.runId));
  };
  return <Message label={steer ? text.steer : text.go} action={steer ? text.steerSend : text.goSend} send={send} />;
}

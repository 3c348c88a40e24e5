/** All agents by Box: what they do now, and what they did today. */
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { FormEvent, RefObject } from 'react';
import { Link, useLocation } from 'wouter';
import { callTool, readBoard } from './api.js';
import type { Board, BoardAgent } from './api.js';
import { Empty, Problem, Status, When, agentHref, count, money, runHref } from './parts.js';
import { T } from './texts.js';

const text = T.boardPage;

/** The first page. */
export function BoardPage({ canWrite }: { canWrite: boolean }) {
  const board = useQuery({ queryKey: ['live', 'board'], queryFn: readBoard });
  const dialog = useRef<HTMLDialogElement>(null);
  const [filter, setFilter] = useState('');
  if (board.isPending) return <p className="center">{T.loading}</p>;
  if (board.isError) return <Problem error={board.error} retry={() => void board.refetch()} />;
  const { spaces, agents } = board.data;
  const wanted = agents.filter(({ name, id }) => `${name} ${id}`.toLowerCase().includes(filter.toLowerCase()));
  return (
    <>
      <div className="head">
        <h1>{T.board}</h1>
        <Totals agents={agents} />
        <input
          type="search"
          aria-label={text.filter}
          placeholder={text.filter}
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
        {canWrite ? (
          <button className="primary" onClick={() => dialog.current?.showModal()}>
            {text.newAgent}
          </button>
        ) : null}
      </div>
      {agents.length === 0 ? <Empty title={text.emptyTitle}>{text.empty}</Empty> : null}
      {agents.length > 0 && wanted.length === 0 ? <Empty>{text.none}</Empty> : null}
      {spaces.map(({ id, name }) => (
        <Box key={id} id={id} name={name} agents={wanted.filter(({ space_id }) => space_id === id)} />
      ))}
      <CreateAgent dialog={dialog} board={board.data} />
    </>
  );
}

function Totals({ agents }: { agents: BoardAgent[] }) {
  const sum = (of: (agent: BoardAgent) => number) => agents.reduce((total, agent) => total + of(agent), 0);
  const having = (status: string) => agents.filter((agent) => agent.status === status).length;
  const failed = sum((agent) => agent.failed);
  return (
    <ul className="totals">
      <li>
        <b>{having('running')}</b> {text.working}
      </li>
      <li>
        <b>{having('waiting')}</b> {text.asking}
      </li>
      <li>
        {text.today}: <b>{count(sum((agent) => agent.runs))}</b> {text.runs}
      </li>
      <li className={failed > 0 ? 'bad' : undefined}>
        <b>{count(failed)}</b> {text.failed}
      </li>
      <li>
        <b>{money(sum((agent) => agent.costUsd))}</b>
      </li>
    </ul>
  );
}

function Box({ id, name, agents }: { id: string; name: string; agents: BoardAgent[] }) {
  if (agents.length === 0) return null;
  return (
    <section aria-label={name}>
      <h2 className="box">
        {name} {name === id ? null : <code>{id}</code>}
      </h2>
      <ul className="cards">
        {agents.map((agent) => (
          <AgentCard key={agent.id} agent={agent} />
        ))}
      </ul>
    </section>
  );
}

function AgentCard({ agent }: { agent: BoardAgent }) {
  const { id, name, description, status, lastRun } = agent;
  return (
    <li className="card agent">
      <div className="row">
        <h3>
          <Link href={agentHref(id)}>{name}</Link>
        </h3>
        <Status value={status} />
      </div>
      <p className="description">{description || id}</p>
      <div className="row small">
        <span>
          {text.today}: {count(agent.runs)} {text.runs}
          {agent.failed > 0 ? (
            <span className="bad">
              , {count(agent.failed)} {text.failed}
            </span>
          ) : null}
        </span>
        <span title={`${count(agent.totalTokens)} ${text.tokens}`}>{money(agent.costUsd)}</span>
      </div>
      <div className="row small">
        {lastRun === null ? (
          <span className="muted">{text.never}</span>
        ) : (
          <>
            <Link href={runHref(id, lastRun.runId)}>{text.last}</Link>
            <span>
              {lastRun.status === 'error' ? <span className="bad">{lastRun.reason} · </span> : null}
              <When at={lastRun.at} />
            </span>
          </>
        )}
      </div>
    </li>
  );
}

function CreateAgent({ dialog, board }: { dialog: RefObject<HTMLDialogElement | null>; board: Board }) {
  const [, navigate] = useLocation();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = [...new FormData(event.currentTarget)].filter(([, value]) => value !== '');
    setBusy(true);
    setError(undefined);
    try {
      const { agentId } = await callTool<{ agentId: string }>('create_agent', Object.fromEntries(fields));
      navigate(agentHref(agentId));
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} aria-labelledby="create-title">
      <form onSubmit={(event) => void submit(event)}>
        <h2 id="create-title">{T.create.title}</h2>
        <label>
          {T.create.name}
          <input name="name" required maxLength={100} />
        </label>
        {board.spaces.length > 1 ? (
          <label>
            {T.create.box}
            <select name="spaceId">
              {board.spaces.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        ) : null}
        <label>
          {T.create.description}
          <input name="description" />
        </label>
        <label>
          {T.create.soul}
          <textarea name="soul" rows={8} placeholder={T.create.soulHint} />
        </label>
        {error === undefined ? null : <Problem error={error} />}
        <div className="row end">
          <button type="button" onClick={() => dialog.current?.close()}>
            {T.create.cancel}
          </button>
          <button className="primary" disabled={busy}>
            {T.create.submit}
          </button>
        </div>
      </form>
    </dialog>
  );
}

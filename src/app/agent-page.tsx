/** One agent: a message to it, its runs and instructions, its triggers and schedules. */
import { useQuery } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import { callTool } from './api.js';
import type { Agent, Run } from './api.js';
import { AgentText, Empty, Problem, Status, When, agentHref, count, duration, money, runHref } from './parts.js';
import { Chat } from './chat.js';
import { Message } from './message.js';
import { Schedules } from './schedules.js';
import { T } from './texts.js';
import { Triggers } from './triggers.js';

const text = T.agentPage;

interface AgentPageProps {
  agentId: string;
  /** Empty for the overview. */
  tab: string;
  /** What is open in the tab: a conversation. */
  part: string | undefined;
  canWrite: boolean;
}

/** What a person needs to use an agent. */
export function AgentPage({ agentId, tab, part, canWrite }: AgentPageProps) {
  const agent = useQuery({
    queryKey: ['live', 'agent', agentId],
    queryFn: () => callTool<Agent>('get_agent', { agentId }),
  });
  if (agent.isPending) return <p className="center">{T.loading}</p>;
  if (agent.isError) return <Problem error={agent.error} retry={() => void agent.refetch()} />;
  const { name, description, status, active, inactiveReason } = agent.data;
  return (
    <>
      <div className="head">
        <h1>{name}</h1>
        <Status value={status} />
        <code>{agentId}</code>
      </div>
      {description ? <p className="description">{description}</p> : null}
      {active ? null : <Problem error={new Error(`${text.inactive} ${inactiveReason ?? ''}`)} />}
      <nav className="tabs" aria-label={text.parts}>
        {Object.entries(text.tabs).map(([part, label]) => (
          <Link key={part} href={tabHref(agentId, part)} aria-current={part === tab ? 'page' : undefined}>
            {label}
          </Link>
        ))}
      </nav>
      {tab === 'chat' ? <Chat agentId={agentId} sessionId={part} canWrite={canWrite} /> : null}
      {tab === 'triggers' ? <Triggers agentId={agentId} canWrite={canWrite} /> : null}
      {tab === 'schedules' ? <Schedules agentId={agentId} canWrite={canWrite} /> : null}
      {tab === '' ? <Overview agent={agent.data} canWrite={canWrite} /> : null}
    </>
  );
}

function tabHref(agentId: string, tab: string): string {
  return tab === '' ? agentHref(agentId) : `${agentHref(agentId)}/${tab}`;
}

function Overview({ agent, canWrite }: { agent: Agent; canWrite: boolean }) {
  const { id: agentId, soul, provider, model } = agent;
  return (
    <>
      {canWrite ? <Talk agentId={agentId} /> : null}
      <section aria-label={text.runs}>
        <h2 className="box">{text.runs}</h2>
        <Runs agentId={agentId} />
      </section>
      <section aria-label={text.instructions}>
        <h2 className="box">{text.instructions}</h2>
        <div className="card">
          <p className="small muted">
            {text.model}: {provider} {model ?? text.defaultModel}
          </p>
          {soul === '' ? <p>{text.noInstructions}</p> : <AgentText text={soul} />}
        </div>
      </section>
    </>
  );
}

function Talk({ agentId }: { agentId: string }) {
  const [, navigate] = useLocation();
  return (
    <Message
      label={text.talk}
      hint={text.talkHint}
      action={text.send}
      send={async (message) => {
        const run = await callTool<Run>('send_message', { agentId, message, waitSeconds: 0 });
        navigate(runHref(agentId, run.runId));
      }}
    />
  );
}

function Runs({ agentId }: { agentId: string }) {
  const runs = useQuery({
    queryKey: ['live', 'runs', agentId],
    queryFn: () => callTool<{ runs: Run[] }>('list_runs', { agentId, limit: 100 }),
  });
  if (runs.isPending) return <p>{T.loading}</p>;
  if (runs.isError) return <Problem error={runs.error} retry={() => void runs.refetch()} />;
  if (runs.data.runs.length === 0) return <Empty>{text.noRuns}</Empty>;
  return (
    <div className="table" tabIndex={0} role="region" aria-label={text.runs}>
      <table>
        <thead>
          <tr>
            {text.columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {runs.data.runs.map((run) => (
            <RunRow key={run.runId} agentId={agentId} run={run} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RunRow({ agentId, run }: { agentId: string; run: Run }) {
  const { runId, status, trigger, startedAt, finishedAt, steps, totalTokens, costUsd, error } = run;
  return (
    <tr>
      <td>
        <Status value={status} />
      </td>
      <td>
        <Link href={runHref(agentId, runId)}>{runId}</Link>
        {error === null ? null : <div className="small bad clip">{error}</div>}
      </td>
      <td>{trigger}</td>
      <td>
        <When at={startedAt} />
      </td>
      <td className="number">{finishedAt === null ? '' : duration(Date.parse(finishedAt) - Date.parse(startedAt))}</td>
      <td className="number">{count(steps)}</td>
      <td className="number">{count(totalTokens)}</td>
      <td className="number">{costUsd === null ? '' : money(costUsd)}</td>
    </tr>
  );
}

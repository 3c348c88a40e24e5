/** Conversations with an agent: which there are, what was said, and the next message. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import { Message } from './message.js';
import { Answer } from './answer.js';
import { callTool } from './api.js';
import type { Conversation, ConversationHead, Run } from './api.js';
import { AgentText, Empty, Problem, When, agentHref, runHref } from './parts.js';
import { T } from './texts.js';

const text = T.chat;
/** How often a conversation is read again in which a run may be at work; a page in the background reads nothing. */
const LOOK_MS = 3_000;

interface ChatProps {
  agentId: string;
  /** The conversation that is open; a new one when absent. */
  sessionId: string | undefined;
  canWrite: boolean;
}

/** The conversations beside the one that is open. */
export function Chat({ agentId, sessionId, canWrite }: ChatProps) {
  return (
    <div className="chat">
      <nav aria-label={text.all}>
        {canWrite ? <Link href={`${agentHref(agentId)}/chat`}>{text.new}</Link> : null}
        <Conversations agentId={agentId} open={sessionId} />
      </nav>
      <section aria-label={text.one}>
        {sessionId === undefined ? (
          <New agentId={agentId} canWrite={canWrite} />
        ) : (
          <Open key={sessionId} agentId={agentId} sessionId={sessionId} canWrite={canWrite} />
        )}
      </section>
    </div>
  );
}

function Conversations({ agentId, open }: { agentId: string; open: string | undefined }) {
  const sessions = useQuery({
    queryKey: ['live', 'sessions', agentId],
    queryFn: () => callTool<{ sessions: ConversationHead[] }>('list_sessions', { agentId, limit: 50 }),
  });
  if (sessions.isPending) return <p className="small">{T.loading}</p>;
  if (sessions.isError) return <Problem error={sessions.error} retry={() => void sessions.refetch()} />;
  return sessions.data.sessions.map(({ sessionId, title, updatedAt, pending }) => (
    <Link key={sessionId} href={chatHref(agentId, sessionId)} aria-current={sessionId === open ? 'page' : undefined}>
      <span className="clip">{title}</span>
      <span className="small muted">
        {pending === null ? null : <b className="bad">{text.asks} </b>}
        <When at={updatedAt} />
      </span>
    </Link>
  ));
}

function New({ agentId, canWrite }: { agentId: string; canWrite: boolean }) {
  const [, navigate] = useLocation();
  if (!canWrite) return <Empty>{text.choose}</Empty>;
  const send = async (message: string) => {
    const { sessionId } = await callTool<Run>('send_message', { agentId, message, waitSeconds: 0 });
    navigate(chatHref(agentId, sessionId));
  };
  return <Message label={text.first} hint={T.agentPage.talkHint} action={T.agentPage.send} send={send} />;
}

function Open({ agentId, sessionId, canWrite }: { agentId: string; sessionId: string; canWrite: boolean }) {
  const client = useQueryClient();
  const session = useQuery({
    queryKey: ['live', 'session', agentId, sessionId],
    queryFn: () => callTool<Conversation>('get_session', { agentId, sessionId, limit: 200 }),
    refetchInterval: LOOK_MS,
  });
  if (session.isPending) return <p>{T.loading}</p>;
  if (session.isError) return <Problem error={session.error} retry={() => void session.refetch()} />;
  const { messages, nextOffset, pending } = session.data;
  const send = async (message: string) => {
    await callTool('send_message', { agentId, sessionId, message, waitSeconds: 0 });
    await client.invalidateQueries({ queryKey: ['live'] });
  };
  return (
    <>
      {nextOffset === null ? null : <p className="small muted">{text.older}</p>}
      <ol className="said">
        {messages.map(({ runId, role, text: said, truncated, at }, index) => (
          <li key={`${runId} ${index}`} className={role}>
            <p className="small muted">
              {role === 'user' ? text.person : text.agent} <When at={at} />{' '}
              <Link href={runHref(agentId, runId)}>{text.run}</Link>
            </p>
            <AgentText text={said} />
            {truncated ? <p className="small muted">{text.cut}</p> : null}
          </li>
        ))}
      </ol>
      {pending === null ? null : (
        <div className="card item">
          <Answer agentId={agentId} sessionId={sessionId} pending={pending} canWrite={canWrite} />
        </div>
      )}
      {canWrite && pending === null ? (
        <Message label={text.next} hint={text.nextHint} action={T.agentPage.send} send={send} />
      ) : null}
    </>
  );
}

function chatHref(agentId: string, sessionId: string): string {
  return `${agentHref(agentId)}/chat/${encodeURIComponent(sessionId)}`;
}

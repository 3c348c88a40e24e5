/** What waits for a person over all agents, and what has failed. */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { readInbox } from './api.js';
import type { Failure, Question } from './api.js';
import { Answer } from './answer.js';
import { Empty, Problem, When, agentHref, runHref } from './parts.js';
import { T } from './texts.js';

const text = T.inboxPage;

/** Questions, approvals and failures. */
export function InboxPage({ canWrite }: { canWrite: boolean }) {
  const inbox = useQuery({ queryKey: ['live', 'inbox'], queryFn: readInbox });
  if (inbox.isPending) return <p className="center">{T.loading}</p>;
  if (inbox.isError) return <Problem error={inbox.error} retry={() => void inbox.refetch()} />;
  const { questions, failures, counts } = inbox.data;
  return (
    <>
      <h1>{T.inbox}</h1>
      <section aria-label={text.questions}>
        <h2 className="box">
          {text.questions} <span className="muted">{counts.questions}</span>
        </h2>
        {questions.length === 0 ? <Empty>{text.emptyQuestions}</Empty> : null}
        {questions.map((question) => (
          <QuestionCard key={question.runId} question={question} canWrite={canWrite} />
        ))}
      </section>
      <section aria-label={text.failures}>
        <h2 className="box">
          {text.failures} <span className="muted">{counts.failures}</span>
        </h2>
        {failures.length === 0 ? <Empty>{text.emptyFailures}</Empty> : null}
        {failures.map((failure) => (
          <FailureCard key={failure.runId} failure={failure} />
        ))}
      </section>
    </>
  );
}

function QuestionCard({ question, canWrite }: { question: Question; canWrite: boolean }) {
  const { agentId, agentName, runId, sessionId, askedAt, pending } = question;
  return (
    <article className="card item" aria-label={agentName}>
      <div className="row small">
        <Link href={agentHref(agentId)}>{agentName}</Link>
        <span>
          <When at={askedAt} /> · <Link href={runHref(agentId, runId)}>{text.openRun}</Link>
        </span>
      </div>
      <Answer agentId={agentId} sessionId={sessionId} pending={pending} canWrite={canWrite} />
    </article>
  );
}

function FailureCard({ failure }: { failure: Failure }) {
  const { agentId, agentName, runId, endedAt, reason, message, cause, nextStep } = failure;
  return (
    <article className="card item" aria-label={`${agentName}: ${reason}`}>
      <div className="row small">
        <Link href={agentHref(agentId)}>{agentName}</Link>
        <span>
          <When at={endedAt} /> · <Link href={runHref(agentId, runId)}>{text.openRun}</Link>
        </span>
      </div>
      <p>
        <b className="bad">{reason}</b> {message || cause}
      </p>
      {nextStep === '' ? null : (
        <p className="next">
          <b>{text.next}:</b> {nextStep}
        </p>
      )}
    </article>
  );
}

/** A question or an approval of an agent, and what a person may say to it. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { FormEvent } from 'react';
import { callTool } from './api.js';
import type { Pending } from './api.js';
import { AgentText, Code, Problem, fieldOf, pretty } from './parts.js';
import { T } from './texts.js';

const text = T.inboxPage;

interface AnswerProps {
  agentId: string;
  sessionId: string;
  pending: Pending;
  canWrite: boolean;
}

/** One click or one line answers. */
export function Answer({ agentId, sessionId, pending, canWrite }: AnswerProps) {
  const client = useQueryClient();
  const answer = useMutation({
    mutationFn: (message: string) => callTool('send_message', { agentId, sessionId, message, waitSeconds: 0 }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['live'] }),
  });
  const props = { busy: answer.isPending, say: (message: string) => answer.mutate(message) };
  return (
    <div className="answer">
      <Asked pending={pending} />
      {answer.isSuccess ? <p role="status">{text.answered}</p> : null}
      {answer.isError ? <Problem error={answer.error} /> : null}
      {!canWrite || answer.isSuccess ? null : pending.kind === 'approval' ? (
        <Decide {...props} />
      ) : (
        <Reply {...props} choices={pending.choices ?? []} />
      )}
    </div>
  );
}

function Asked({ pending }: { pending: Pending }) {
  if (pending.kind === 'question') return <AgentText text={pending.text} />;
  return (
    <>
      <p>{pending.text}</p>
      <p>
        {text.wants} <code>{pending.tool}</code>
      </p>
      <Code label={T.runPage.input_}>{pretty(pending.input)}</Code>
    </>
  );
}

interface Speaker {
  busy: boolean;
  say: (message: string) => void;
}

function Reply({ busy, say, choices }: Speaker & { choices: string[] }) {
  return (
    <>
      <div className="choices">
        {choices.map((choice) => (
          <button key={choice} disabled={busy} onClick={() => say(choice)}>
            {choice}
          </button>
        ))}
      </div>
      <form className="line" onSubmit={saying(say, (words) => words)}>
        <input name="words" aria-label={text.yourAnswer} placeholder={text.yourAnswer} required />
        <button className="primary" disabled={busy}>
          {text.answer}
        </button>
      </form>
    </>
  );
}

function Decide({ busy, say }: Speaker) {
  return (
    <>
      <div className="choices">
        <button className="primary" disabled={busy} onClick={() => say('approve')}>
          {text.approve}
        </button>
        <button disabled={busy} title={text.alwaysHint} onClick={() => say('approve always')}>
          {text.always}
        </button>
      </div>
      <form className="line" onSubmit={saying(say, (reason) => (reason === '' ? 'deny' : `deny: ${reason}`))}>
        <input name="words" aria-label={text.reason} placeholder={text.reason} />
        <button className="danger" disabled={busy}>
          {text.deny}
        </button>
      </form>
    </>
  );
}

function saying(say: (message: string) => void, messageOf: (words: string) => string) {
  return (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    say(messageOf(fieldOf(event.currentTarget, 'words')));
  };
}

/** The triggers of an agent: their URLs, which are shown when somebody asks, and what can be done with them. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { FormEvent } from 'react';
import { Link } from 'wouter';
import { callTool } from './api.js';
import type { Trigger } from './api.js';
import { Code, Copy, Empty, Problem, When, count, fieldOf, runHref } from './parts.js';
import { T } from './texts.js';

const text = T.triggers;

interface OfAgent {
  agentId: string;
  canWrite: boolean;
}

/** All triggers, by slug. */
export function Triggers({ agentId, canWrite }: OfAgent) {
  const triggers = useQuery({
    queryKey: ['live', 'triggers', agentId],
    queryFn: () => callTool<{ triggers: Trigger[] }>('list_triggers', { agentId }),
  });
  if (triggers.isPending) return <p>{T.loading}</p>;
  if (triggers.isError) return <Problem error={triggers.error} retry={() => void triggers.refetch()} />;
  return (
    <>
      {triggers.data.triggers.length === 0 ? <Empty>{text.none}</Empty> : null}
      {triggers.data.triggers.map((trigger) => (
        <TriggerCard key={trigger.slug} agentId={agentId} trigger={trigger} canWrite={canWrite} />
      ))}
      {canWrite ? <NewTrigger agentId={agentId} /> : null}
    </>
  );
}

function TriggerCard({ agentId, trigger, canWrite }: OfAgent & { trigger: Trigger }) {
  const { slug, name, description, methods, enabled, body, fireCount, lastFiredAt } = trigger;
  return (
    <article className="card item" aria-label={name}>
      <div className="row">
        <h2>{name}</h2>
        <span className="small muted">
          <code>{slug}</code> {methods.join(', ')} {enabled ? '' : text.disabled}
        </span>
      </div>
      {description === null || description === '' ? null : <p className="description">{description}</p>}
      <p className="small muted">
        {text.fired(count(fireCount))} {lastFiredAt === null ? null : <When at={lastFiredAt} />}
      </p>
      <details>
        <summary>{text.body}</summary>
        <Code label={text.body}>{body}</Code>
      </details>
      {canWrite ? <Address agentId={agentId} trigger={trigger} /> : <p className="small muted">{text.readOnly}</p>}
    </article>
  );
}

/** The URL is a credential: it is on the page only after a click. */
function Address({ agentId, trigger }: { agentId: string; trigger: Trigger }) {
  const [isShown, show] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);
  const client = useQueryClient();
  const { slug, name, url = null } = trigger;
  const rotate = useMutation({
    mutationFn: () => callTool('rotate_trigger_token', { agentId, slug }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['live'] }),
  });
  return (
    <>
      {url === null ? <p className="small muted">{text.noUrl}</p> : null}
      {isShown && url !== null ? (
        <>
          <Code label={text.url(name)}>{url}</Code>
          <Code label={text.curl}>{curlOf(url, trigger.methods)}</Code>
        </>
      ) : null}
      <div className="row end">
        {url === null ? null : (
          <>
            <button aria-expanded={isShown} onClick={() => show(!isShown)}>
              {isShown ? text.hide : text.show}
            </button>
            <Copy value={url} label={text.copy} />
          </>
        )}
        <button className="danger" disabled={rotate.isPending} onClick={() => dialog.current?.showModal()}>
          {text.rotate}
        </button>
      </div>
      {rotate.isError ? <Problem error={rotate.error} /> : null}
      {rotate.isSuccess ? <p role="status">{text.rotated}</p> : null}
      <dialog ref={dialog} aria-label={text.rotate}>
        <form method="dialog">
          <h3>{text.rotate}</h3>
          <p>{text.rotateAsk(name)}</p>
          <div className="row end">
            <button>{text.keep}</button>
            <button className="danger" onClick={() => rotate.mutate()}>
              {text.rotateYes}
            </button>
          </div>
        </form>
      </dialog>
      <Try agentId={agentId} slug={slug} />
    </>
  );
}

function curlOf(url: string, methods: readonly string[]): string {
  const [method = 'POST'] = methods;
  if (method === 'GET') return `curl '${url}'`;
  return `curl -X ${method} -H 'content-type: application/json' -d '{"hello":"world"}' '${url}'`;
}

function Try({ agentId, slug }: { agentId: string; slug: string }) {
  const fire = useMutation({
    mutationFn: (body: string) => callTool<{ runId: string }>('test_trigger', { agentId, slug, body }),
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    fire.mutate(fieldOf(event.currentTarget, 'body'));
  };
  return (
    <details>
      <summary>{text.test}</summary>
      <form onSubmit={submit}>
        <label>
          {text.testBody}
          <textarea name="body" rows={3} defaultValue="{}" />
        </label>
        {fire.isError ? <Problem error={fire.error} /> : null}
        <div className="row end">
          {fire.data === undefined ? null : <Link href={runHref(agentId, fire.data.runId)}>{text.testRun}</Link>}
          <button disabled={fire.isPending}>{text.testSend}</button>
        </div>
      </form>
    </details>
  );
}

function NewTrigger({ agentId }: { agentId: string }) {
  const client = useQueryClient();
  const create = useMutation({
    mutationFn: (fields: { name: string; body: string }) => callTool('upsert_trigger', { agentId, ...fields }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['live'] }),
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    create.mutate(
      { name: fieldOf(form, 'name'), body: fieldOf(form, 'instructions') },
      { onSuccess: () => form.reset() },
    );
  };
  return (
    <details className="card">
      <summary>{text.create}</summary>
      <form onSubmit={submit}>
        <label>
          {text.name}
          <input name="name" required maxLength={100} />
        </label>
        <label>
          {text.instructions}
          <textarea name="instructions" required rows={3} placeholder={text.instructionsHint} />
        </label>
        {create.isError ? <Problem error={create.error} /> : null}
        <div className="row end">
          <button className="primary" disabled={create.isPending}>
            {text.createYes}
          </button>
        </div>
      </form>
    </details>
  );
}

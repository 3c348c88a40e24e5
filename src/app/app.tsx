/** Sign-in, the frame of all pages, and which page is shown. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { FormEvent, ReactNode } from 'react';
import { Link, Route, Switch, useLocation } from 'wouter';
import { AgentPage } from './agent-page.js';
import { readInbox, readSession, signIn, signOut } from './api.js';
import type { Session } from './api.js';
import { BoardPage } from './board-page.js';
import { InboxPage } from './inbox-page.js';
import { Empty, Problem, fieldOf } from './parts.js';
import { RunPage } from './run-page.js';
import { T } from './texts.js';
import { THEMES, applyTheme, currentTheme } from './theme.js';

/** All of it. */
export function App() {
  const session = useQuery({ queryKey: ['session'], queryFn: readSession, staleTime: Infinity });
  if (session.isPending) return <p className="center">{T.loading}</p>;
  if (session.isError) return <Problem error={session.error} retry={() => void session.refetch()} />;
  return session.data === null ? <SignIn /> : <Frame session={session.data} />;
}

function SignIn() {
  const client = useQueryClient();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setBusy(true);
    try {
      const session = await signIn(fieldOf(event.currentTarget, 'key'));
      client.setQueryData(['session'], session);
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  return (
    <main className="sign-in">
      <form className="card" onSubmit={(event) => void submit(event)}>
        <h1>
          <Logo /> {T.product}
        </h1>
        <p>{T.signIn.intro}</p>
        <label>
          {T.signIn.key}
          <input name="key" type="password" autoComplete="current-password" required placeholder="bw_…" />
        </label>
        {error === undefined ? null : <Problem error={error} />}
        <button className="primary" disabled={busy}>
          {T.signIn.submit}
        </button>
      </form>
    </main>
  );
}

function Logo() {
  return (
    <svg className="logo" viewBox="0 0 24 24" aria-hidden="true">
      <path d="M4 8 12 3.5 20 8v8.5L12 21l-8-4.5z M4 8l8 4.5L20 8 M12 12.5V21" />
    </svg>
  );
}

/** Reads again what is shown whenever something has changed; not while the page is in the background. */
function useEvents(): void {
  const client = useQueryClient();
  useEffect(() => {
    let source: EventSource | undefined;
    const follow = () => {
      source?.close();
      source = undefined;
      if (document.hidden) return;
      source = new EventSource('api/app/events');
      source.addEventListener('change', () => void client.invalidateQueries({ queryKey: ['live'] }));
      source.addEventListener('signed-out', () => client.setQueryData(['session'], null));
    };
    follow();
    document.addEventListener('visibilitychange', follow);
    return () => {
      document.removeEventListener('visibilitychange', follow);
      source?.close();
    };
  }, [client]);
}

function Frame({ session }: { session: Session }) {
  useEvents();
  return (
    <div className="frame">
      <a className="skip" href="#content" onClick={focusContent}>
        {T.skip}
      </a>
      <Navigation session={session} />
      <main id="content" tabIndex={-1}>
        <Switch>
          <Route path="/">
            <BoardPage canWrite={!session.readOnly} />
          </Route>
          <Route path="/inbox">
            <InboxPage canWrite={!session.readOnly} />
          </Route>
          <Route<{ agent: string; tab?: string; part?: string }> path="/agents/:agent/:tab?/:part?">
            {({ agent, tab = '', part }) => (
              <AgentPage
                key={agent}
                agentId={decodeURIComponent(agent)}
                tab={tab}
                part={part === undefined ? undefined : decodeURIComponent(part)}
                canWrite={!session.readOnly}
              />
            )}
          </Route>
          <Route path="/runs/:agent/:run">
            {({ agent, run }) => (
              <RunPage
                key={run}
                agentId={decodeURIComponent(agent)}
                runId={decodeURIComponent(run)}
                canWrite={!session.readOnly}
              />
            )}
          </Route>
          <Route>
            <Empty>{T.noRoute}</Empty>
          </Route>
        </Switch>
      </main>
    </div>
  );
}

/** The address after # is that of the page, so the link moves the focus itself. */
function focusContent(event: { preventDefault(): void }): void {
  event.preventDefault();
  document.getElementById('content')?.focus();
}

function Navigation({ session }: { session: Session }) {
  const client = useQueryClient();
  const inbox = useQuery({ queryKey: ['live', 'inbox'], queryFn: readInbox });
  const waiting = inbox.data?.counts.questions ?? 0;
  const leave = async () => {
    await signOut();
    client.setQueryData(['session'], null);
    client.removeQueries({ queryKey: ['live'] });
  };
  return (
    <header className="bar">
      <div className="brand">
        <Logo /> {T.product}
      </div>
      <nav aria-label={T.product}>
        <Tab href="/">{T.board}</Tab>
        <Tab href="/inbox">
          {T.inbox} {waiting > 0 ? <span className="badge">{waiting}</span> : null}
        </Tab>
      </nav>
      <div className="who">
        <span title={session.keyPrefix}>
          {session.workspace} {session.readOnly ? <em>({T.readOnly})</em> : null}
        </span>
        <ThemeButton />
        <button className="quiet" onClick={() => void leave()}>
          {T.signOut}
        </button>
      </div>
    </header>
  );
}

function Tab({ href, children }: { href: string; children: ReactNode }) {
  const [location] = useLocation();
  return (
    <Link href={href} aria-current={location === href ? 'page' : undefined}>
      {children}
    </Link>
  );
}

function ThemeButton() {
  const [theme, setTheme] = useState(currentTheme);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
  const change = () => {
    applyTheme(next);
    setTheme(next);
  };
  return (
    <button className="quiet" onClick={change}>
      {T.theme[theme]}
    </button>
  );
}

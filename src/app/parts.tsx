/** Small parts of every page. */
import { useState } from 'react';
import type { ReactNode } from 'react';
import Markdown from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { T } from './texts.js';

/** A state in a word and a colour. */
export function Status({ value }: { value: string }) {
  return <span className={`status ${value}`}>{T.status[value] ?? value}</span>;
}

/** A time as the viewer reads it, with the exact one on hover. */
export function When({ at }: { at: string }) {
  return (
    <time dateTime={at} title={at}>
      {ago(Date.parse(at))}
    </time>
  );
}

function ago(time: number): string {
  const seconds = Math.max(0, Math.round((Date.now() - time) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  const date = new Date(time);
  const clock = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  if (date.toDateString() === new Date().toDateString()) return clock;
  return `${date.toLocaleDateString([], { month: 'short', day: 'numeric' })}, ${clock}`;
}

/** A time to come, in the zone of the viewer, with the exact one on hover. */
export function Moment({ at }: { at: string }) {
  return (
    <time dateTime={at} title={at}>
      {new Date(at).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })}
    </time>
  );
}

/** Puts a text on the clipboard, and says so. */
export function Copy({ value, label }: { value: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(value);
    setCopied(true);
  };
  return <button onClick={() => void copy()}>{isCopied ? T.copied : label}</button>;
}

/** `1.2 MB`, in thousands. */
export function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** `1.2 s`, `3 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** US dollars, with as many digits as small sums need. */
export function money(usd: number): string {
  return `$${usd === 0 || usd >= 1 ? usd.toFixed(2) : usd.toFixed(4)}`;
}

/** `1,234`. */
export function count(number: number): string {
  return number.toLocaleString('en-US');
}

/** The words of an error, and a way to try again. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <div className="problem" role="alert">
      <span>{error instanceof Error ? error.message : T.failed}</span>
      {retry === undefined ? null : <button onClick={retry}>{T.retry}</button>}
    </div>
  );
}

/** What a page says that has nothing to show. */
export function Empty({ title, children }: { title?: string; children: ReactNode }) {
  return (
    <div className="empty">
      {title === undefined ? null : <h2>{title}</h2>}
      <p>{children}</p>
    </div>
  );
}

/**
 * Markdown of agents: elements and never HTML, no pictures, and links that show where they go. What is no address of the web is
 * no link.
 */
export function AgentText({ text }: { text: string }) {
  return (
    <div className="markdown">
      <Markdown remarkPlugins={[remarkGfm]} components={{ img: ({ alt }) => <span>{alt}</span>, a: OutsideLink }}>
        {text}
      </Markdown>
    </div>
  );
}

function OutsideLink({ href = '', children }: { href?: string | undefined; children?: ReactNode }) {
  if (!/^https?:\/\//.test(href)) return <span>{children}</span>;
  return (
    <>
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {children}
      </a>
      {children === href ? null : <span className="address"> ({href})</span>}
    </>
  );
}

/** JSON in lines, or the text as it is. */
export function pretty(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value, null, 2);
  try {
    const parsed = JSON.parse(value) as unknown;
    return typeof parsed === 'string' ? parsed : JSON.stringify(parsed, null, 2);
  } catch {
    return value;
  }
}

/** Text of agents and tools in its own lines; it can be scrolled by keyboard. */
export function Code({ children, label }: { children: string; label: string }) {
  return (
    <pre tabIndex={0} aria-label={label} role="group">
      {children}
    </pre>
  );
}

/** What stands in a text field of a form. */
export function fieldOf(form: HTMLFormElement, name: string): string {
  const value = new FormData(form).get(name);
  return typeof value === 'string' ? value.trim() : '';
}

/** The address of a run. */
export function runHref(agentId: string, runId: string): string {
  return `/runs/${encodeURIComponent(agentId)}/${encodeURIComponent(runId)}`;
}

/** The address of an agent. */
export function agentHref(agentId: string): string {
  return `/agents/${encodeURIComponent(agentId)}`;
}

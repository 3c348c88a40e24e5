/** What happened in a run, in order. */
import type { ReactNode } from 'react';
import type { RunEvent, Timeline as TimelineData } from './api.js';
import { AgentText, Code, Empty, count, duration, pretty } from './parts.js';
import { T } from './texts.js';

const text = T.runPage;

/** Its events with the time since the start. */
export function Timeline({ timeline, startedAt }: { timeline: TimelineData; startedAt: string }) {
  const { events, transcript } = timeline;
  const entries = events.flatMap((event) => {
    const shown = show(event);
    return shown === null ? [] : [{ event, shown }];
  });
  const longest = Math.max(1, ...events.map((event) => (event.type === 'tool' ? event.durationMs : 0)));
  return (
    <>
      {transcript === 'truncated' ? <p className="note card">{text.truncated}</p> : null}
      {transcript === 'expired' ? <p className="note card">{text.expired}</p> : null}
      {entries.length === 0 ? <Empty>{text.nothingYet}</Empty> : null}
      <ol className="timeline">
        {entries.map(({ event, shown }) => (
          <li key={event.seq} className={event.type}>
            <span className="at" title={event.at}>
              +{duration(Math.max(0, Date.parse(event.at) - Date.parse(startedAt)))}
            </span>
            <div className="what">
              {shown}
              {event.type === 'tool' ? (
                <meter min={0} max={longest} value={event.durationMs} aria-label={text.duration} />
              ) : null}
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}

/** Results of tools stand in their own events, and the output below the timeline. */
function show(event: RunEvent): ReactNode {
  switch (event.type) {
    case 'message':
      return showMessage(event.message);
    case 'tool':
      return <ToolCall call={event} />;
    case 'step':
      return (
        <span className="small muted">
          {text.step} {event.step}: {count(event.inputTokens)} → {count(event.outputTokens)}
          {event.cacheReadTokens ? ` (${text.cached}: ${count(event.cacheReadTokens)})` : ''}
        </span>
      );
    case 'warning':
      return (
        <p className="bad">
          {text.warning}: {event.text}
        </p>
      );
    case 'compaction':
      return (
        <details>
          <summary>{text.summary}</summary>
          <AgentText text={event.text} />
        </details>
      );
    case 'output':
      return null;
    default:
      return null;
  }
}

function showMessage(message: Extract<RunEvent, { type: 'message' }>['message']): ReactNode {
  if (message.role === 'tool') return null;
  if (message.role === 'user') {
    // The message that began the run is its input.
    if (message.steered === undefined) return null;
    return (
      <>
        <b>{text.steered}</b>
        <Code label={text.steered}>{message.text}</Code>
      </>
    );
  }
  const thoughts = (message.sent?.parts ?? []).flatMap((part) => (part.type === 'reasoning' ? [part.text] : []));
  const thought = thoughts.join('\n').trim();
  if (thought === '' && message.text.trim() === '') return null;
  return (
    <>
      {thought === '' ? null : (
        <details>
          <summary>{text.thinking}</summary>
          <AgentText text={thought} />
        </details>
      )}
      {message.text.trim() === '' ? null : <AgentText text={message.text} />}
    </>
  );
}

function ToolCall({ call }: { call: Extract<RunEvent, { type: 'tool' }> }) {
  const brief = call.input.length > 120 ? `${call.input.slice(0, 120)} …` : call.input;
  return (
    <details>
      <summary>
        <code className="tool">{call.tool}</code> <span className="brief">{brief}</span>
        <span className="small muted"> {duration(call.durationMs)}</span>
        {call.isError ? <span className="bad"> {text.failedCall}</span> : null}
      </summary>
      <h3>{text.input_}</h3>
      <Code label={text.input_}>{pretty(call.input)}</Code>
      <h3>{text.result}</h3>
      <Code label={text.result}>{pretty(call.result)}</Code>
    </details>
  );
}

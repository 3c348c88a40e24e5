/** What the app asks its server. Paths are relative to the base of the page, so it works behind any prefix. */

/** An answer that says what is wrong, in the words of the server. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export interface Session {
  workspace: string;
  keyPrefix: string;
  readOnly: boolean;
}

export interface BoardAgent {
  id: string;
  name: string;
  description: string;
  status: string;
  space_id: string;
  runs: number;
  failed: number;
  costUsd: number;
  totalTokens: number;
  lastRun: { runId: string; status: string; reason: string | null; at: string } | null;
}

export interface Board {
  spaces: { id: string; name: string }[];
  agents: BoardAgent[];
}

export interface Pending {
  kind: 'question' | 'approval';
  text: string;
  choices: string[] | null;
  tool: string | null;
  input: unknown;
}

interface Place {
  agentId: string;
  agentName: string;
  runId: string;
  sessionId: string;
}

export interface Question extends Place {
  askedAt: string;
  pending: Pending;
}

export interface Failure extends Place {
  endedAt: string;
  reason: string;
  message: string;
  cause: string;
  nextStep: string;
}

export interface Inbox {
  questions: Question[];
  failures: Failure[];
  counts: { questions: number; failures: number };
}

export interface Run {
  runId: string;
  status: string;
  sessionId: string;
  provider: string | null;
  model: string | null;
  trigger: string;
  steps: number;
  inputTokens: number;
  outputTokens: number;
  totalTokens: number;
  costUsd: number | null;
  startedAt: string;
  finishedAt: string | null;
  error: string | null;
}

export interface FullRun extends Run {
  output: string | null;
  pending: Pending | null;
  input: string | null;
  cacheReadTokens: number;
  reason: string | null;
  warnings: string[];
  note?: string;
  files: PublishedFile[];
}

export interface ConversationHead {
  sessionId: string;
  title: string;
  pending: Pending | null;
  updatedAt: string;
}

export interface Conversation extends ConversationHead {
  messages: { runId: string; role: 'user' | 'agent'; text: string; truncated: boolean; at: string }[];
  nextOffset: number | null;
}

export interface PublishedFile {
  name: string;
  mediaType: string;
  bytes: number;
  description?: string;
  url: string | null;
}

export interface Trigger {
  slug: string;
  name: string;
  description: string | null;
  body: string;
  methods: string[];
  enabled: boolean;
  fireCount: number;
  lastFiredAt: string | null;
  /** Absent for a key that may only read; null until the trigger has one. */
  url?: string | null;
}

export interface Schedule {
  slug: string;
  name: string;
  body: string;
  cron: string | null;
  runAt: string | null;
  timezone: string;
  enabled: boolean;
  lastRunAt: string | null;
  lastRunId: string | null;
  nextRunAt: string | null;
}

export interface Agent {
  id: string;
  name: string;
  description: string | null;
  spaceId: string;
  status: string;
  active: boolean;
  inactiveReason: string | null;
  soul: string;
  provider: string;
  model: string | null;
}

type Part = { type: 'text' | 'reasoning'; text: string } | { type: 'call' | 'other' };

export type RunEvent = { seq: number; at: string } & (
  | {
      type: 'message';
      message:
        | { role: 'user'; text: string; steered?: string }
        | { role: 'assistant'; text: string; sent?: { parts: Part[] } }
        | { role: 'tool' };
    }
  | {
      type: 'tool';
      step: number;
      tool: string;
      input: string;
      result: string;
      isError: boolean;
      durationMs: number;
    }
  | { type: 'step'; step: number; inputTokens: number; cacheReadTokens?: number; outputTokens: number }
  | { type: 'output' | 'compaction' | 'warning'; text: string }
);

export interface Timeline {
  events: RunEvent[];
  transcript: string;
}

async function ask(method: string, path: string, body?: object): Promise<unknown> {
  const headers = { 'x-boxwright-app': '1', ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
  const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const response = await fetch(`api/app/${path}`, init);
  const answer = (await response.json().catch(() => ({}))) as { error?: unknown };
  if (response.ok) return answer;
  throw new ApiError(response.status, typeof answer.error === 'string' ? answer.error : `error ${response.status}`);
}

/** Whose key the session is; null without one. */
export async function readSession(): Promise<Session | null> {
  try {
    return (await ask('GET', 'session')) as Session;
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return null;
    throw error;
  }
}

/** Opens a session. */
export async function signIn(key: string): Promise<Session> {
  return (await ask('POST', 'session', { key })) as Session;
}

/** Ends it. */
export async function signOut(): Promise<void> {
  await ask('DELETE', 'session');
}

/** Agents with their sums since the last midnight of the viewer. */
export async function readBoard(): Promise<Board> {
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  return (await ask('GET', `board?since=${midnight.toISOString()}`)) as Board;
}

const HOUR_MS = 3_600_000;

/** What waits for a person, and what failed in the last 24 hours, counted in whole hours. */
export async function readInbox(): Promise<Inbox> {
  const since = new Date((Math.floor(Date.now() / HOUR_MS) - 24) * HOUR_MS);
  return (await ask('GET', `inbox?since=${since.toISOString()}`)) as Inbox;
}

/** What happened in a run. */
export async function readTimeline(agentId: string, runId: string): Promise<Timeline> {
  return (await ask('GET', `timeline?${new URLSearchParams({ agentId, runId }).toString()}`)) as Timeline;
}

/** Calls a tool; rejects with its own words when it refuses. */
export async function callTool<R>(name: string, args: object): Promise<R> {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
  const answer = (await ask('POST', 'call', message)) as {
    error?: { message: string };
    result?: { content: [{ text: string }]; isError?: boolean };
  };
  if (answer.result === undefined) throw new ApiError(200, answer.error?.message ?? 'no answer');
  const payload = JSON.parse(answer.result.content[0].text) as R & { error?: string };
  if (answer.result.isError === true) throw new ApiError(200, payload.error ?? 'the call failed');
  return payload;
}

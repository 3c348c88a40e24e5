/** A small OpenAI-compatible server on loopback that answers as a test says, and remembers what it was asked. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Arrivals } from './arrivals.js';

export interface ChatRequest {
  path: string;
  authorization: string | undefined;
  body: {
    model: string;
    temperature?: number;
    tool_choice?: unknown;
    tools?: { function: { name: string } }[];
    messages: { role: string; content: unknown; tool_calls?: unknown; tool_call_id?: string }[];
  };
}

/** One answer: text, tool calls (name and raw arguments), a raw status and body, or silence. */
export type ChatAnswer =
  | { text?: string; calls?: readonly { tool: string; arguments: string; id?: string }[]; finishReason?: string }
  | { status: number; body: string; retryAfter?: string }
  | 'hang';

export interface OpenAiServer {
  url: string;
  requests: ChatRequest[];
  /** Resolves when so many requests have come. */
  received(count: number): Promise<void>;
  close(): Promise<void>;
}

/** Answers the requests one after another; asked more often, it answers 500. */
export async function startOpenAiServer(answers: readonly ChatAnswer[]): Promise<OpenAiServer> {
  const arrivals = new Arrivals<ChatRequest>();
  const requests = arrivals.all;
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as ChatRequest['body'];
      arrivals.add({ path: incoming.url ?? '', authorization: incoming.headers.authorization, body });
      const answer = answers[requests.length - 1] ?? { status: 500, body: 'no answer is left' };
      if (answer === 'hang') return;
      const reply = renderAnswer(answer, body.model, requests.length);
      outgoing.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers }).end(reply.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    received: (count) => arrivals.received(count),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The body of one answer; 10 input and 5 output tokens each. Shared with the fake gateway. */
export function renderAnswer(answer: Exclude<ChatAnswer, 'hang'>, model: string, number: number) {
  if ('status' in answer) {
    const headers: Record<string, string> = answer.retryAfter === undefined ? {} : { 'retry-after': answer.retryAfter };
    return { status: answer.status, headers, body: answer.body };
  }
  const calls = (answer.calls ?? []).map((call, index) => ({
    id: call.id ?? `call_${number}_${index}`,
    type: 'function',
    function: { name: call.tool, arguments: call.arguments },
  }));
  const message = {
    role: 'assistant',
    content: answer.text ?? null,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  const finishReason = answer.finishReason ?? (calls.length === 0 ? 'stop' : 'tool_calls');
  return {
    status: 200,
    headers: {},
    body: JSON.stringify({
      id: `chatcmpl-${number}`,
      object: 'chat.completion',
      created: 1_767_225_600,
      model,
      choices: [{ index: 0, message, finish_reason: finishReason }],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    }),
  };
}

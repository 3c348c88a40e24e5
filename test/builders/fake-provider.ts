/**
 * Model vendors, each in its own published protocol, whole and streamed: Anthropic Messages, OpenAI and xAI
 * Responses, Google generateContent, chat completions of Mistral, DeepSeek and OpenAI-compatible servers. It answers as a
 * test says, checks the key as the vendor does, and remembers what it was asked and what it gave.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Arrivals } from './arrivals.js';
import { PromptCache } from './prompt-cache.js';

export const FAKE_VENDORS = ['anthropic', 'openai', 'google', 'mistral', 'xai', 'deepseek', 'local'] as const;
export type FakeProviderName = (typeof FAKE_VENDORS)[number];

export interface FakeUsage {
  input: number;
  output: number;
  /** Part of `input`: read from the prompt cache, and put there. */
  cached?: number;
  written?: number;
}

export interface FakeAnswer {
  text?: string;
  /** `raw` takes the place of the arguments, where the protocol has them as text. */
  calls?: readonly { tool: string; input: unknown; raw?: string }[];
  /** 10 input and 5 output tokens when absent. */
  usage?: FakeUsage;
}

/**
 * What goes wrong instead of an answer. `cut` ends the connection and `overloaded` the stream in the middle of an answer, after
 * the text of `said`; `stall` says no more. `html` is the page of a proxy, with status 200.
 */
export type FakeFault =
  | { fault: 'status'; status: number; message?: string; retryAfter?: string; code?: string }
  | { fault: 'cut' | 'overloaded' | 'stall'; said?: FakeAnswer }
  | { fault: 'html' | 'invalid-json' | 'other-json' | 'empty' | 'no-usage' | 'hang' | 'reset' };

export interface SeenRequest {
  vendor: FakeProviderName;
  method: string;
  /** With the query. */
  path: string;
  headers: IncomingMessage['headers'];
  body: Record<string, unknown>;
  streamed: boolean;
  /** Set when the caller went away before the answer was whole. */
  gone: boolean;
  /** What a whole answer said it used. */
  given?: FakeUsage;
}

export interface FakeProvider {
  /** Base URL of a vendor, as the gateway takes it. */
  baseUrl(vendor: FakeProviderName): string;
  requests: SeenRequest[];
  /** What all whole answers said they used. */
  given: FakeUsage[];
  /** What the vendor would charge: whole answers, and of those that broke off what was read and written. */
  spent: FakeUsage[];
  /** Connections that were ever opened. */
  readonly connections: number;
  /** Resolves when so many requests have come. */
  received(count: number): Promise<void>;
  close(): Promise<void>;
}

export interface FakeProviderOptions {
  /** The key that is accepted. */
  key: string;
  /** One after another, `Hello.` when there are no more; or one for each request. */
  answers?: readonly (FakeAnswer | FakeFault)[] | ((seen: SeenRequest) => FakeAnswer | FakeFault);
  /** What servers of chat completions list; `my-model` when absent. Reading the list is not among {@link FakeProvider.requests}. */
  models?: readonly string[];
  /** Counts the input by its bytes, and what of it was seen before as the vendor's prompt cache does. */
  promptCache?: boolean;
  /** A free port of loopback when absent. */
  listen?: { host: string; port: number };
}

/** Base path of each vendor on the server. */
export const BASE_PATHS: Record<FakeProviderName, string> = {
  anthropic: '/anthropic/v1',
  openai: '/openai/v1',
  google: '/google/v1beta',
  mistral: '/mistral/v1',
  xai: '/xai/v1',
  deepseek: '/deepseek/v1',
  local: '/local/v1',
};
const CHAT: readonly FakeProviderName[] = ['mistral', 'deepseek', 'local'];

export async function startFakeProvider(options: FakeProviderOptions): Promise<FakeProvider> {
  const arrivals = new Arrivals<SeenRequest>();
  const requests = arrivals.all;
  const given: FakeUsage[] = [];
  const spent: FakeUsage[] = [];
  let connections = 0;
  const cache = options.promptCache === true ? new PromptCache() : undefined;
  const server = createServer((incoming, outgoing) => {
    const pieces: Buffer[] = [];
    incoming.on('data', (piece: Buffer) => pieces.push(piece));
    incoming.on('end', () => {
      const { answers = [], key, models = ['my-model'] } = options;
      if (incoming.method === 'GET') return list({ incoming, outgoing, key, models });
      const seen = seenOf(incoming, Buffer.concat(pieces).toString('utf8'));
      const answer = typeof answers === 'function' ? answers(seen) : (answers[requests.length] ?? { text: 'Hello.' });
      outgoing.on('close', () => (seen.gone = !outgoing.writableFinished));
      arrivals.add(seen);
      serve({ seen, outgoing, answer, key: options.key, given, spent, number: requests.length, cache });
    });
  });
  server.on('connection', () => (connections += 1));
  const { host, port } = options.listen ?? { host: '127.0.0.1', port: 0 };
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  const origin = `http://${host}:${(server.address() as AddressInfo).port}`;
  return {
    baseUrl: (vendor) => origin + BASE_PATHS[vendor],
    requests,
    given,
    spent,
    get connections() {
      return connections;
    },
    received: (count) => arrivals.received(count),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function seenOf(incoming: IncomingMessage, text: string): SeenRequest {
  const path = incoming.url ?? '';
  const vendor = FAKE_VENDORS.find((name) => path.startsWith(`${BASE_PATHS[name]}/`)) ?? 'local';
  const body = JSON.parse(text) as Record<string, unknown>;
  const streamed = body['stream'] === true || path.includes(':streamGenerateContent');
  return { vendor, method: incoming.method ?? '', path, headers: incoming.headers, body, streamed, gone: false };
}

interface Listing {
  incoming: IncomingMessage;
  outgoing: ServerResponse;
  key: string;
  models: readonly string[];
}

function list({ incoming, outgoing, key, models }: Listing): void {
  const seen = seenOf(incoming, '{}');
  const isListed = CHAT.includes(seen.vendor) && seen.path === `${BASE_PATHS[seen.vendor]}/models`;
  const data = models.map((id) => ({ id, object: 'model', created: 1_767_225_600, owned_by: seen.vendor }));
  const [status, body] = !hasKey(seen, key)
    ? [401, errorOf(seen.vendor, 401, `invalid key ${shownKey(seen)}`)]
    : isListed
      ? [200, { object: 'list', data }]
      : [404, errorOf(seen.vendor, 404, 'no such path')];
  outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

interface Serving {
  seen: SeenRequest;
  outgoing: ServerResponse;
  answer: FakeAnswer | FakeFault;
  key: string;
  given: FakeUsage[];
  spent: FakeUsage[];
  number: number;
  cache: PromptCache | undefined;
}

function serve(serving: Serving): void {
  const { seen, outgoing, answer, key, given, spent, number, cache } = serving;
  const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
    outgoing.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  if (!hasKey(seen, key)) return void json(401, errorOf(seen.vendor, 401, `invalid key ${shownKey(seen)}`));
  if (!isKnownPath(seen)) return void json(404, errorOf(seen.vendor, 404, 'no such path'));
  const fault = 'fault' in answer ? answer : undefined;
  if (fault?.fault === 'hang') return;
  if (fault?.fault === 'reset') return void outgoing.destroy();
  if (fault?.fault === 'status') {
    const headers: Record<string, string> = fault.retryAfter === undefined ? {} : { 'retry-after': fault.retryAfter };
    const code = fault.code === undefined ? {} : { code: fault.code };
    return void json(
      fault.status,
      { ...errorOf(seen.vendor, fault.status, fault.message ?? 'not now'), ...code },
      headers,
    );
  }
  if (fault?.fault === 'html') {
    return void outgoing.writeHead(200, { 'content-type': 'text/html' }).end('<html><body>Bad gateway</body></html>');
  }
  if (fault?.fault === 'cut' || fault?.fault === 'overloaded' || fault?.fault === 'stall') {
    return breakOff(serving, fault);
  }
  const said: FakeAnswer = 'fault' in answer ? { text: 'Hello.' } : answer;
  const counted = cache?.count(seen.body, seen.vendor);
  if (cache !== undefined && counted === undefined) {
    return void json(400, errorOf(seen.vendor, 400, 'a maximum of 4 blocks with cache_control may be provided'));
  }
  const usage = { ...(said.usage ?? { input: 10, output: 5 }), ...counted };
  const pieces = render(seen, said, fault?.fault === 'no-usage' ? undefined : usage, number);
  const type = seen.streamed ? 'text/event-stream' : 'application/json';
  if (fault?.fault === 'empty') return void outgoing.writeHead(200, { 'content-type': type }).end();
  if (fault?.fault === 'invalid-json') {
    return void outgoing.writeHead(200, { 'content-type': type }).end(seen.streamed ? 'data: {"a":\n\n' : '{"a":');
  }
  if (fault?.fault === 'other-json') return void json(200, { ok: true, choices: [] });
  outgoing.writeHead(200, { 'content-type': type });
  for (const piece of pieces) outgoing.write(piece);
  outgoing.end();
  given.push(usage);
  spent.push(usage);
  seen.given = usage;
}

/** The beginning of an answer, which is charged, and then its end that is none. */
function breakOff({ seen, outgoing, spent, number }: Serving, { fault, said = {} }: Breaking): void {
  const usage = said.usage ?? { input: 10, output: 0 };
  const pieces = render(seen, { text: '', ...said }, usage, number);
  // The events before the text of the answer.
  const before = CHAT.includes(seen.vendor) || seen.vendor === 'google' ? 1 : 2;
  const begun = seen.streamed ? pieces.slice(0, before + 1).join('') : pieces.join('').slice(0, 20);
  outgoing.writeHead(200, { 'content-type': seen.streamed ? 'text/event-stream' : 'application/json' });
  spent.push(usage);
  if (fault === 'stall') return void outgoing.write(begun);
  if (fault === 'cut') return void outgoing.write(begun, () => outgoing.destroy());
  outgoing.end(begun + sse(streamErrorOf(seen.vendor), 'error'));
}

/** How each vendor says in the middle of a stream that it cannot go on. */
function streamErrorOf(vendor: FakeProviderName): object {
  const message = 'Overloaded';
  if (vendor === 'anthropic') return { type: 'error', error: { type: 'overloaded_error', message } };
  if (vendor === 'google') return { error: { code: 503, message, status: 'UNAVAILABLE' } };
  if (CHAT.includes(vendor)) return { error: { message, type: 'server_error', code: 503 } };
  return { type: 'error', code: 'server_error', message, param: null };
}

type Breaking = Extract<FakeFault, { said?: FakeAnswer }>;

function shownKey({ headers }: SeenRequest): string {
  return (headers.authorization ?? String(headers['x-api-key'] ?? headers['x-goog-api-key'] ?? '')).replace(
    'Bearer ',
    '',
  );
}

/** Each vendor looks at its own header alone. */
function hasKey({ vendor, headers }: SeenRequest, key: string): boolean {
  if (vendor === 'anthropic') return headers['x-api-key'] === key && headers['anthropic-version'] === '2023-06-01';
  if (vendor === 'google') return headers['x-goog-api-key'] === key;
  return headers.authorization === `Bearer ${key}`;
}

function isKnownPath({ vendor, path, streamed, method }: SeenRequest): boolean {
  const rest = path.slice(BASE_PATHS[vendor].length);
  if (method !== 'POST') return false;
  if (CHAT.includes(vendor)) return rest === '/chat/completions';
  if (vendor === 'anthropic') return rest === '/messages';
  if (vendor === 'google') {
    return streamed
      ? /^\/models\/[^/:]+:streamGenerateContent\?alt=sse$/.test(rest)
      : /^\/models\/[^/:]+:generateContent$/.test(rest);
  }
  return rest === '/responses';
}

function errorOf(vendor: FakeProviderName, code: number, message: string): object {
  if (vendor === 'anthropic') return { type: 'error', error: { type: 'api_error', message } };
  if (vendor === 'google') return { error: { code, message, status: 'UNAVAILABLE' } };
  if (vendor === 'mistral') return { object: 'error', message, type: 'invalid_request_error', param: null, code: null };
  if (vendor === 'xai') return { code: 'some-code', error: message };
  return { error: { message, type: 'invalid_request_error', param: null, code: null } };
}

function render(seen: SeenRequest, said: FakeAnswer, usage: FakeUsage | undefined, number: number): string[] {
  const { vendor, streamed } = seen;
  if (vendor === 'anthropic')
    return streamed ? anthropicStream(seen, said, usage, number) : [anthropic(seen, said, usage, number)];
  if (vendor === 'google') return streamed ? googleStream(said, usage) : [JSON.stringify(googleAnswer(said, usage))];
  if (CHAT.includes(vendor))
    return streamed ? chatStream(seen, said, usage, number) : [chat(seen, said, usage, number)];
  return streamed
    ? responsesStream(seen, said, usage, number)
    : [JSON.stringify(responsesAnswer(seen, said, usage, number))];
}

const sse = (data: unknown, event?: string) =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

function anthropicUsage(usage: FakeUsage | undefined): object | undefined {
  if (usage === undefined) return undefined;
  const { cached = 0, written = 0 } = usage;
  return {
    input_tokens: usage.input - cached - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
    output_tokens: usage.output,
  };
}

function anthropicBlocks({ text, calls = [] }: FakeAnswer, number: number): Record<string, unknown>[] {
  return [
    ...(text === undefined ? [] : [{ type: 'text', text }]),
    ...calls.map(({ tool, input }, index) => ({ type: 'tool_use', id: `toolu_${number}_${index}`, name: tool, input })),
  ];
}

function anthropic(seen: SeenRequest, said: FakeAnswer, usage: FakeUsage | undefined, number: number): string {
  return JSON.stringify({
    id: `msg_${number}`,
    type: 'message',
    role: 'assistant',
    model: seen.body['model'],
    content: anthropicBlocks(said, number),
    stop_reason: (said.calls ?? []).length === 0 ? 'end_turn' : 'tool_use',
    stop_sequence: null,
    usage: anthropicUsage(usage),
  });
}

function anthropicStream(seen: SeenRequest, said: FakeAnswer, usage: FakeUsage | undefined, number: number): string[] {
  const start = { id: `msg_${number}`, type: 'message', role: 'assistant', model: seen.body['model'], content: [] };
  const begun = usage === undefined ? undefined : anthropicUsage({ ...usage, output: 1 });
  const events: [string, object][] = [
    ['message_start', { message: { ...start, stop_reason: null, stop_sequence: null, usage: begun } }],
  ];
  anthropicBlocks(said, number).forEach((block, index) => {
    const isText = block['type'] === 'text';
    const empty = isText ? { type: 'text', text: '' } : { ...block, input: {} };
    const delta = isText
      ? { type: 'text_delta', text: block['text'] }
      : { type: 'input_json_delta', partial_json: JSON.stringify(block['input']) };
    events.push(['content_block_start', { index, content_block: empty }]);
    events.push(['content_block_delta', { index, delta }]);
    events.push(['content_block_stop', { index }]);
  });
  const reason = (said.calls ?? []).length === 0 ? 'end_turn' : 'tool_use';
  const final = usage === undefined ? undefined : { output_tokens: usage.output };
  events.push(['message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage: final }]);
  events.push(['message_stop', {}]);
  return events.map(([type, data]) => sse({ type, ...data }, type));
}

function responsesAnswer(seen: SeenRequest, said: FakeAnswer, usage: FakeUsage | undefined, number: number): object {
  const { text, calls = [] } = said;
  return {
    id: `resp_${number}`,
    object: 'response',
    created_at: 1_767_225_600,
    status: 'completed',
    model: seen.body['model'],
    output: [
      ...(text === undefined
        ? []
        : [
            {
              type: 'message',
              id: `msg_${number}`,
              status: 'completed',
              role: 'assistant',
              content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
            },
          ]),
      ...calls.map(({ tool, input, raw }, index) => ({
        type: 'function_call',
        id: `fc_${number}_${index}`,
        call_id: `call_${number}_${index}`,
        name: tool,
        arguments: raw ?? JSON.stringify(input),
        status: 'completed',
      })),
    ],
    incomplete_details: null,
    ...(usage === undefined
      ? {}
      : {
          usage: {
            input_tokens: usage.input,
            input_tokens_details: { cached_tokens: usage.cached ?? 0 },
            output_tokens: usage.output,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: usage.input + usage.output,
          },
        }),
  };
}

function responsesStream(seen: SeenRequest, said: FakeAnswer, usage: FakeUsage | undefined, number: number): string[] {
  const response = responsesAnswer(seen, said, usage, number) as { output: Record<string, unknown>[] };
  const begun = { ...response, status: 'in_progress', output: [], usage: null };
  const events: Record<string, unknown>[] = [{ type: 'response.created', response: begun }];
  response.output.forEach((item, output_index) => {
    const item_id = item['id'];
    const empty = item['type'] === 'message' ? { ...item, content: [] } : { ...item, arguments: '' };
    events.push({ type: 'response.output_item.added', output_index, item: empty });
    if (item['type'] === 'message') {
      events.push({
        type: 'response.output_text.delta',
        item_id,
        output_index,
        content_index: 0,
        delta: said.text,
        logprobs: [],
      });
    } else {
      events.push({ type: 'response.function_call_arguments.delta', item_id, output_index, delta: item['arguments'] });
    }
    events.push({ type: 'response.output_item.done', output_index, item });
  });
  events.push({ type: 'response.completed', response });
  return events.map((event, sequence_number) => sse({ ...event, sequence_number }, String(event['type'])));
}

function googleAnswer({ text, calls = [] }: FakeAnswer, usage: FakeUsage | undefined): object {
  const parts = [
    ...(text === undefined ? [] : [{ text }]),
    ...calls.map(({ tool, input }) => ({ functionCall: { name: tool, args: input }, thoughtSignature: 'c2ln' })),
  ];
  // Some of the output are thoughts, which are counted apart.
  const thoughts = Math.floor((usage?.output ?? 0) / 2);
  return {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
    ...(usage === undefined
      ? {}
      : {
          usageMetadata: {
            promptTokenCount: usage.input,
            cachedContentTokenCount: usage.cached ?? 0,
            candidatesTokenCount: usage.output - thoughts,
            thoughtsTokenCount: thoughts,
            totalTokenCount: usage.input + usage.output,
          },
        }),
  };
}

function googleStream(said: FakeAnswer, usage: FakeUsage | undefined): string[] {
  const first = {
    candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, index: 0 }],
    ...(usage === undefined ? {} : { usageMetadata: { promptTokenCount: usage.input, totalTokenCount: usage.input } }),
  };
  const { text, ...rest } = said;
  const written = {
    candidates: [{ content: { role: 'model', parts: text === undefined ? [] : [{ text }] }, index: 0 }],
  };
  return [first, written, googleAnswer(rest, usage)].map((event) => sse(event));
}

function chatUsage({ vendor }: SeenRequest, usage: FakeUsage): object {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    ...(vendor === 'deepseek'
      ? { prompt_cache_hit_tokens: usage.cached ?? 0, prompt_cache_miss_tokens: usage.input - (usage.cached ?? 0) }
      : {}),
  };
}

function chatBase(seen: SeenRequest, number: number, object: string): object {
  return { id: `chatcmpl-${number}`, object, created: 1_767_225_600, model: seen.body['model'] };
}

function chatCalls({ calls = [] }: FakeAnswer, number: number): object[] {
  return calls.map(({ tool, input, raw }, index) => ({
    id: `call${number}000${index}`,
    index,
    type: 'function',
    function: { name: tool, arguments: raw ?? JSON.stringify(input) },
  }));
}

function chat(seen: SeenRequest, said: FakeAnswer, usage: FakeUsage | undefined, number: number): string {
  const calls = chatCalls(said, number);
  const message = {
    role: 'assistant',
    content: said.text ?? '',
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  return JSON.stringify({
    ...chatBase(seen, number, 'chat.completion'),
    choices: [{ index: 0, message, finish_reason: calls.length === 0 ? 'stop' : 'tool_calls' }],
    ...(usage === undefined ? {} : { usage: chatUsage(seen, usage) }),
  });
}

function chatStream(seen: SeenRequest, said: FakeAnswer, usage: FakeUsage | undefined, number: number): string[] {
  const base = chatBase(seen, number, 'chat.completion.chunk');
  const calls = chatCalls(said, number);
  const asked = (seen.body['stream_options'] as { include_usage?: boolean } | undefined)?.include_usage === true;
  const told = usage !== undefined && (asked || seen.vendor === 'mistral') ? { usage: chatUsage(seen, usage) } : {};
  const delta = {
    ...(said.text === undefined ? {} : { content: said.text }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  const last = { index: 0, delta: {}, finish_reason: calls.length === 0 ? 'stop' : 'tool_calls' };
  return [
    sse({ ...base, choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] }),
    sse({ ...base, choices: [{ index: 0, delta, finish_reason: null }] }),
    sse({ ...base, choices: [last], ...(seen.vendor === 'mistral' ? told : {}) }),
    ...(seen.vendor === 'mistral' ? [] : [sse({ ...base, choices: [], ...told })]),
    sse('[DONE]'),
  ];
}

/**
 * One message to an MCP server and what it answers. Addresses were set by users and servers are hostile: the
 * dialer checks the address, no redirect is followed, time and size are bounded, and only JSON-RPC goes back.
 */
import { USER_AGENT } from '../../config/version.js';
import type { BodyBudget } from '../../net/body-budget.js';
import { noRoom, readAnswer, readText } from '../../net/capped-body.js';
import { AddressRefusedError } from '../../net/dial.js';
import { EventStream } from '../../net/event-stream.js';
import { mediaTypeOf } from '../../net/media-type.js';
import { UrlRefusedError, type TrustedHost, type WebClient, type WebResponse } from '../../net/web-client.js';
import { parseJsonText } from '../../protocol/json-limits.js';
import { MAX_MCP_ANSWER_BYTES, MAX_MCP_ANSWER_DEPTH } from '../../protocol/mcp.js';
import { timeoutSignal, type TimeoutSignal } from '../../runtime/timeout-signal.js';
import type { Clock } from '../../runtime/clock.js';
import { GatewayError, runEnded } from '../errors.js';
import { parseJsonInSteps } from '../json-in-steps.js';
import type { CallResult } from '../metrics.js';
import type { AnswerSink } from '../models/answer-sink.js';
import type { McpMessage } from './message.js';

/** Above what a runner waits for a call. */
const CALL_MS = 90_000;
const MAX_REFUSAL_BYTES = 64 * 1024;
const ANSWER_LIMITS = { depth: MAX_MCP_ANSWER_DEPTH };
/** A header of the user wins. */
const CALLER = { 'user-agent': USER_AGENT };
/** These win. */
const MESSAGE_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const SESSION = /^[\x21-\x7e]{1,1024}$/;
/** Statuses of the gateway's own that a runner takes for "ask again". */
const OWN_STATUSES: ReadonlySet<number> = new Set([421, 429]);

export interface McpTarget {
  /** For messages. */
  server: string;
  box: string;
  url: URL;
  headers: Readonly<Record<string, string>>;
  trusted: TrustedHost | undefined;
  /** Takes credentials out of parsed JSON. */
  redact: (json: unknown) => unknown;
}

export interface McpExchange {
  target: McpTarget;
  /** Undefined ends the session (DELETE). */
  message: McpMessage | undefined;
  /** Of MCP, as the runner sent them. */
  headers: Readonly<Record<string, string>>;
  signal: AbortSignal;
  sink: AnswerSink;
  result: { value: CallResult };
}

export interface McpProxyOptions {
  clock: Clock;
  web: Pick<WebClient, 'request'>;
  /** The memory budget of all bodies of the process. */
  bodies: BodyBudget;
}

export class McpProxy {
  constructor(private readonly options: McpProxyOptions) {}

  /** Resolves when the answer is written to the sink. Rejects with 400 (refused), 4xx of the server, or 502. */
  async exchange(exchange: McpExchange): Promise<void> {
    const bound = timeoutSignal(this.options.clock, CALL_MS, exchange.signal);
    exchange.result.value = 'aborted';
    try {
      const response = await this.#send(exchange, bound.signal);
      // A body that is not read to its end must not hold the connection.
      response.body.on('error', () => undefined);
      try {
        await answer(exchange, { response, bound, bodies: this.options.bodies });
      } finally {
        response.body.destroy();
      }
    } catch (error) {
      if (exchange.signal.aborted) throw runEnded('the call was cut');
      exchange.result.value = error instanceof GatewayError && error.type === 'McpRefused' ? 'refused' : 'failed';
      if (error instanceof GatewayError) throw error;
      throw failed(exchange.target, bound.expired ? tooSlow() : `gave no answer (${codeOf(error)})`);
    } finally {
      bound.dispose();
    }
  }

  async #send({ target, message, headers }: McpExchange, signal: AbortSignal): Promise<WebResponse> {
    const { url, trusted, server, box } = target;
    const common = { url, trusted, signal };
    const own = { ...CALLER, ...target.headers, ...headers };
    try {
      return await (message === undefined
        ? this.options.web.request({ ...common, method: 'DELETE', headers: own })
        : this.options.web.request({
            ...common,
            method: 'POST',
            headers: { ...own, ...MESSAGE_HEADERS },
            body: message.json,
          }));
    } catch (error) {
      if (!(error instanceof AddressRefusedError) && !(error instanceof UrlRefusedError)) throw error;
      const hint = `use a public https address, or name ${url.host} in spec.egress.trustedHosts of Box ${box}`;
      throw refused(server, `is not connected to: ${error.message}; ${hint}`);
    }
  }
}

/** An answer that has begun. */
interface Answering {
  response: WebResponse;
  bound: TimeoutSignal;
  bodies: BodyBudget;
}

async function answer(exchange: McpExchange, answering: Answering): Promise<void> {
  const { response } = answering;
  const { target, message, sink, result } = exchange;
  const { status } = response;
  if (status < 200 || status >= 300) throw await refusalOf(exchange, response);
  const session = response.header('mcp-session-id') ?? '';
  const headers = SESSION.test(session) ? { 'mcp-session-id': session } : undefined;
  const type = mediaTypeOf(response.header('content-type'));
  if (message?.id === undefined) {
    sink.start(202, 'application/json', headers);
  } else if (type === 'application/json') {
    const budget = { all: answering.bodies, address: target.url.host };
    const bytes = await readAnswer(response.body, MAX_MCP_ANSWER_BYTES, budget);
    if (bytes === undefined) throw failed(target, tooLarge());
    const json = await parseJsonInSteps(bytes, ANSWER_LIMITS).catch(() => undefined);
    if (json === undefined) throw failed(target, 'answered something that is not JSON');
    sink.start(200, 'application/json', headers);
    await sink.write(JSON.stringify(target.redact(json)));
  } else if (type === 'text/event-stream') {
    sink.start(200, 'text/event-stream', headers);
    await passEvents(exchange, message.id, answering);
  } else throw failed(target, 'answered neither JSON nor an event stream');
  result.value = 'answered';
}

/**
 * Each message as it comes, until the one that answers. What goes wrong on the way is told as the answer: the status has
 * left already.
 */
async function passEvents(
  { target, sink, signal }: McpExchange,
  id: string | number,
  { response, bound, bodies }: Answering,
): Promise<void> {
  const events = new EventStream(MAX_MCP_ANSWER_BYTES);
  const share = bodies.open(target.url.host, () => response.body.destroy(noRoom()));
  let bytes = 0;
  let problem = 'ended its answer before the result';
  try {
    for await (const piece of response.body as AsyncIterable<Uint8Array>) {
      bytes += piece.length;
      if (bytes > MAX_MCP_ANSWER_BYTES) {
        problem = tooLarge();
        break;
      }
      for (const { type, data } of events.read(piece)) {
        const json = type === 'message' ? jsonIn(data) : undefined;
        if (json === undefined) continue;
        await sink.write(eventOf(target.redact(json)));
        if (isAnswer(json, id)) return;
      }
      share.holds(events.held);
    }
  } catch (error) {
    if (signal.aborted) throw error;
    problem = bound.expired ? tooSlow() : 'broke its answer off';
  } finally {
    share.release();
  }
  const error = { code: -32000, message: `MCP server ${target.server} ${problem}.` };
  await sink.write(eventOf({ jsonrpc: '2.0', id, error }));
}

function eventOf(json: unknown): string {
  return `event: message\ndata: ${JSON.stringify(json)}\n\n`;
}

/** The parsed JSON, or undefined when it is none, or too much of it. */
function jsonIn(text: string): unknown {
  try {
    return parseJsonText(text, ANSWER_LIMITS);
  } catch {
    return undefined;
  }
}

function isAnswer(json: unknown, id: string | number): boolean {
  const message = json as { id?: unknown; method?: unknown } | null;
  return message !== null && message.id === id && message.method === undefined;
}

/** What the server says besides an answer: JSON-RPC errors go on, other texts do not. */
async function refusalOf({ target }: McpExchange, response: WebResponse): Promise<GatewayError> {
  const { status } = response;
  if (status < 400) return failed(target, `answered with a redirect (HTTP ${status}), which is not followed`);
  if (status === 401 || status === 403) {
    return refused(target.server, `did not accept the credentials (HTTP ${status}): check Secret <agent>-secrets`);
  }
  if (status >= 500) return failed(target, `answered HTTP ${status}`);
  const text = await readText(response.body, MAX_REFUSAL_BYTES).catch(() => undefined);
  const passed = OWN_STATUSES.has(status) ? 400 : status;
  return new GatewayError(passed, `MCP server ${target.server} answered HTTP ${status}`, {
    type: 'McpError',
    fields: rpcErrorIn(target.redact(jsonIn(text ?? ''))),
  });
}

/** The fields of a JSON-RPC error, which then are the whole answer. */
function rpcErrorIn(json: unknown): Record<string, unknown> {
  const message = json as { jsonrpc?: unknown; id?: unknown; error?: { code?: unknown } } | null | undefined;
  if (message?.jsonrpc !== '2.0' || typeof message.error?.code !== 'number') return {};
  return { jsonrpc: '2.0', id: message.id ?? null, error: message.error };
}

function tooLarge(): string {
  return `answered more than ${MAX_MCP_ANSWER_BYTES / 1024 / 1024} MiB`;
}

function tooSlow(): string {
  return `did not finish its answer within ${CALL_MS / 1000} seconds`;
}

/** The gateway does not ask the server, or the server does not let it. */
export function refused(server: string, what: string): GatewayError {
  return new GatewayError(400, `MCP server ${server} ${what}`, { type: 'McpRefused' });
}

function failed({ server }: Pick<McpTarget, 'server'>, what: string): GatewayError {
  return new GatewayError(502, `MCP server ${server} ${what}`, { type: 'McpFailed' });
}

function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : 'UNKNOWN';
}

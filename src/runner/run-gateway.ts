/** The protocol of src/protocol/run.ts as typed calls, with what each status means to a runner. */
import {
  ClaimAnswer,
  EventsAnswer,
  FinishAnswer,
  MODEL_NOTICE_HEADER,
  PROTOCOL_VERSION,
  ToolAnswer,
  runPath,
} from '../protocol/run.js';
import type { ClaimRequest, EventsRequest, FinishRequest, RunEvent, ToolRequest } from '../protocol/run.js';
import type { Clock } from '../runtime/clock.js';
import { parseJson } from './gateway-client.js';
import type { GatewayClient, GatewayReply } from './gateway-client.js';

/** One attempt of a report; an attempt that hangs must not use up the heartbeat bound of 90 s. */
const REPORT_ATTEMPT_MS = 15_000;
/** One model call with all its attempts: above the largest bound of a Box, which the gateway keeps. */
const MODEL_CALL_MS = 3_900_000;
/** One message to an MCP server, above the gateway's own bound; and how long a gateway is looked for. */
const MCP_MESSAGE_MS = 100_000;
const MCP_GIVE_UP_MS = 30_000;
/** A token that was just renewed may be refused for a moment; a gateway that starts may answer 500. */
const REPORT_RETRIES = [401, 500, 502, 504];
const MODEL_RETRIES = [502, 504];

/**
 * The gateway refuses this runner for good. 409: another pod holds the run; 410: the run has ended; 404: it was deleted.
 * Nothing more can be reported.
 */
export class RunRefused extends Error {
  override readonly name = 'RunRefused';
  readonly status: number;
  constructor(status: number) {
    super(`The gateway refused the runner with HTTP ${status}.`);
    this.status = status;
  }
}

/** Statuses that end a run for its runner. */
const FINAL = new Set([403, 404, 409, 410]);

/** Events on their way to the gateway. */
export interface Report {
  /** To be stored. */
  events: readonly RunEvent[];
  /** To be shown, and stored later. */
  live: readonly RunEvent[];
}

/** What the loop and the reporter need of the gateway. `giveUpAt` is on {@link Clock.monotonic}. */
export interface RunGateway {
  /** Throws {@link RunRefused} or GatewayUnreachable. */
  claim(signal: AbortSignal, giveUpAt: number): Promise<ClaimAnswer>;
  /** Stores `events`, and tells `live` without storing it; neither is a heartbeat. */
  events(report: Report, signal: AbortSignal, giveUpAt: number): Promise<EventsAnswer>;
  /** Executes a tool of the control plane; a repeated call of the same number is the same call. */
  tool(request: Omit<ToolRequest, 'epoch'>, signal: AbortSignal, giveUpAt: number): Promise<ToolAnswer>;
  finish(
    report: Pick<FinishRequest, 'events' | 'outcome'>,
    signal: AbortSignal,
    giveUpAt: number,
  ): Promise<FinishAnswer>;
  /** The `fetch` of a model's SDK: POST only, answers are read whole. */
  modelFetch: typeof globalThis.fetch;
  /** The `fetch` of a client of MCP over HTTP: answers are read whole, a message is never sent twice. */
  mcpFetch: typeof globalThis.fetch;
}

export interface RunIdentity {
  namespace: string;
  run: string;
  podUid: string;
  /** Whether the image of `tools` has a browser; undefined when that is not known. */
  hasBrowser: boolean | undefined;
}

export function createRunGateway(client: GatewayClient, identity: RunIdentity, clock: Clock): RunGateway {
  const report = (call: 'claim' | 'events' | 'tool' | 'finish', body: (epoch: number) => unknown) => {
    return async (signal: AbortSignal, giveUpAt: number): Promise<unknown> => {
      const reply = await client.send({
        path: runPath(identity.namespace, identity.run, call),
        body: (epoch) => JSON.stringify(body(epoch)),
        signal,
        giveUpAt,
        attemptMs: REPORT_ATTEMPT_MS,
        retryOn: REPORT_RETRIES,
      });
      return checked(call, reply);
    };
  };
  return {
    async claim(signal, giveUpAt) {
      const request: ClaimRequest = {
        protocol: PROTOCOL_VERSION,
        podUid: identity.podUid,
        hasBrowser: identity.hasBrowser,
      };
      const answer = ClaimAnswer.parse(await report('claim', () => request)(signal, giveUpAt));
      client.ownedBy(answer.gatewayAddress, answer.epoch);
      return answer;
    },
    async events({ events, live }, signal, giveUpAt) {
      const request = (epoch: number): EventsRequest => ({ epoch, events: [...events], live: [...live] });
      const answer = EventsAnswer.parse(await report('events', request)(signal, giveUpAt));
      client.sawFencingToken(answer.epoch);
      return answer;
    },
    async tool(content, signal, giveUpAt) {
      const request = (epoch: number): ToolRequest => ({ epoch, ...content });
      return ToolAnswer.parse(await report('tool', request)(signal, giveUpAt));
    },
    async finish(content, signal, giveUpAt) {
      const request = (epoch: number): FinishRequest => ({ epoch, ...content });
      return FinishAnswer.parse(await report('finish', request)(signal, giveUpAt));
    },
    modelFetch: (input, init) => modelFetch(client, clock, input, init),
    mcpFetch: (input, init) => mcpFetch(client, clock, input, init),
  };
}

function checked(call: string, reply: GatewayReply): unknown {
  if (reply.status === 200) return parseJson(reply.body);
  if (FINAL.has(reply.status)) throw new RunRefused(reply.status);
  throw new Error(`The gateway answered ${call} with HTTP ${reply.status}.`);
}

async function modelFetch(
  client: GatewayClient,
  clock: Clock,
  input: Parameters<typeof fetch>[0],
  init: Parameters<typeof fetch>[1],
): Promise<Response> {
  const body = init?.body;
  if (typeof body !== 'string') throw new TypeError('a model call has a JSON body');
  const url = new URL(input instanceof Request ? input.url : input);
  const reply = await client.send({
    path: `${url.pathname}${url.search}`,
    body: () => body,
    signal: init?.signal ?? new AbortController().signal,
    giveUpAt: clock.monotonic() + MODEL_CALL_MS,
    attemptMs: MODEL_CALL_MS,
    retryOn: MODEL_RETRIES,
  });
  const notice = reply.notice === undefined ? {} : { [MODEL_NOTICE_HEADER]: reply.notice };
  return new Response(reply.body, { status: reply.status, headers: { 'content-type': reply.contentType, ...notice } });
}

async function mcpFetch(
  client: GatewayClient,
  clock: Clock,
  input: Parameters<typeof fetch>[0],
  init: Parameters<typeof fetch>[1],
): Promise<Response> {
  const method = init?.method ?? 'GET';
  // What a server says by itself is for nobody here; clients take this for a server that says nothing.
  if (method !== 'POST' && method !== 'DELETE') return new Response(null, { status: 405 });
  const body = typeof init?.body === 'string' ? init.body : '';
  const url = new URL(input instanceof Request ? input.url : input);
  const reply = await client.send({
    method,
    path: url.pathname,
    headers: mcpHeaders(new Headers(init?.headers)),
    body: () => body,
    signal: init?.signal ?? new AbortController().signal,
    giveUpAt: clock.monotonic() + MCP_GIVE_UP_MS,
    attemptMs: MCP_MESSAGE_MS,
    // The gateway's own: what a server answers never comes with this status.
    retryOn: [401],
    once: true,
  });
  const session = reply.mcpSession === undefined ? {} : { 'mcp-session-id': reply.mcpSession };
  const headers = { 'content-type': reply.contentType, ...session };
  return new Response(reply.body === '' ? null : reply.body, { status: reply.status, headers });
}

function mcpHeaders(given: Headers): Record<string, string> {
  return Object.fromEntries([...given].filter(([name]) => name.startsWith('mcp-')));
}

/**
 * A gateway pod on loopback as a runner sees it: claim, events, finish and the model's path. It acknowledges everything,
 * serves with the fencing token of its claim, and does as a test says before it does that.
 */
import { createServer as createHttpServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { ClaimAnswer, EventsRequest, FinishRequest, RunEvent } from '../../src/protocol/run.js';
import { renderAnswer } from './openai-server.js';
import type { ChatAnswer } from './openai-server.js';

export type GatewayCall = 'claim' | 'events' | 'finish' | 'model';

export interface SeenCall {
  call: GatewayCall;
  path: string;
  token: string;
  body: unknown;
}

/** What to do instead of serving: a status with a body, or breaking the connection, or never answering. */
export type Refusal = { status: number; body?: object; retryAfter?: string } | 'cut' | 'hang';

export interface FakeGatewayOptions {
  /** What differs from {@link makeClaim}. */
  claim?: Partial<ClaimAnswer>;
  model?: readonly ChatAnswer[];
  /** Asked before each call is served; `count` counts calls of that kind from 1. */
  refuse?: (call: GatewayCall, count: number) => Refusal | undefined;
  /** Whether the answer to a report asks to cancel. */
  cancel?: (events: readonly RunEvent[]) => boolean;
  tls?: { key: string; cert: string };
}

export interface FakeGateway {
  url: string;
  /** host:port */
  address: string;
  calls: SeenCall[];
  /** Names of the calls in order. */
  names(): GatewayCall[];
  /** The finish that was accepted. */
  finished(): FinishRequest | undefined;
  /** Every event of reports and finish, in order of arrival. */
  events(): RunEvent[];
  close(): Promise<void>;
}

/** Starts one. Its claim answer gets its own address unless the test gave one. */
export async function startFakeGateway(options: FakeGatewayOptions = {}): Promise<FakeGateway> {
  const calls: SeenCall[] = [];
  const accepted: { call: GatewayCall; body: unknown }[] = [];
  const handle = (incoming: IncomingMessage, outgoing: ServerResponse, text: string) => {
    const call = callOf(incoming.url ?? '');
    const body: unknown = JSON.parse(text);
    const token = (incoming.headers.authorization ?? '').replace(/^Bearer /, '');
    calls.push({ call, path: incoming.url ?? '', token, body });
    const count = calls.filter((seen) => seen.call === call).length;
    const refusal = options.refuse?.(call, count);
    if (refusal === 'hang') return;
    if (refusal === 'cut') {
      incoming.socket.destroy();
      return;
    }
    if (refusal !== undefined) {
      const headers = refusal.retryAfter === undefined ? {} : { 'retry-after': refusal.retryAfter };
      outgoing.writeHead(refusal.status, headers).end(JSON.stringify(refusal.body ?? { error: 'refused' }));
      return;
    }
    accepted.push({ call, body });
    serve(outgoing, { call, body, count, options, address });
  };
  const listener = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => handle(incoming, outgoing, Buffer.concat(chunks).toString('utf8')));
  };
  const server = options.tls === undefined ? createHttpServer(listener) : createHttpsServer(options.tls, listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const bodies = <T>(call: GatewayCall) =>
    accepted.filter((entry) => entry.call === call).map((entry) => entry.body as T);
  return {
    url: `${options.tls === undefined ? 'http' : 'https'}://${address}`,
    address,
    calls,
    names: () => calls.map((seen) => seen.call),
    finished: () => bodies<FinishRequest>('finish')[0],
    events: () =>
      accepted.flatMap((entry) =>
        entry.call === 'events' || entry.call === 'finish' ? (entry.body as EventsRequest).events : [],
      ),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function callOf(path: string): GatewayCall {
  const match = /^\/internal\/v1\/runs\/[^/]+\/[^/]+\/(claim|events|finish)$/.exec(path);
  return match === null ? 'model' : (match[1] as GatewayCall);
}

interface Serving {
  call: GatewayCall;
  body: unknown;
  count: number;
  options: FakeGatewayOptions;
  address: string;
}

function serve(outgoing: ServerResponse, { call, body, count, options, address }: Serving): void {
  const send = (value: object) =>
    outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  if (call === 'claim') return void send(makeClaim({ gatewayAddress: address, ...options.claim }));
  if (call === 'finish') return void send({ phase: 'done' });
  if (call === 'events') {
    const { events, epoch } = body as EventsRequest;
    return void send({ ack: events.at(-1)?.seq ?? 0, cancel: options.cancel?.(events) ?? false, epoch });
  }
  const answer = options.model?.[count - 1] ?? { text: 'Hello.' };
  if (answer === 'hang') return;
  const reply = renderAnswer(answer, (body as { model: string }).model, count);
  outgoing.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers }).end(reply.body);
}

/** A claim answer of agent `helper` with all tools on. */
export function makeClaim(changes: Partial<ClaimAnswer> = {}): ClaimAnswer {
  return {
    protocol: 1,
    epoch: 1,
    gatewayAddress: '127.0.0.1:1',
    run: { namespace: 'bw-b', name: 'helper-1', sessionId: 's-helper-1', origin: 'api' },
    agent: {
      handle: 'helper',
      name: 'Helper',
      description: '',
      soul: 'Be brief.',
      tools: { shell: true, files: true },
    },
    model: { provider: 'boxwright', model: 'scripted', basePath: '/gateway/boxwright/v1' },
    message: 'Hello',
    history: [],
    limits: { stepLimit: 10, executionSeconds: 1800 },
    intervals: { heartbeatSeconds: 30, reportSeconds: 5 },
    ...changes,
  };
}

/**
 * An MCP server on loopback (Streamable HTTP, 2025-06-18, with sessions): it has the tools that a test says, answers as
 * JSON or as an event stream, and goes wrong as a test says.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

export interface FakeTool {
  name: string;
  description?: string;
  inputSchema?: object;
  /** The result of tools/call. */
  answer?: (input: Record<string, unknown>, request: SeenMessage) => object;
}

export interface SeenMessage {
  method: string;
  /** HTTP method. */
  verb: string;
  url: string;
  headers: IncomingMessage['headers'];
  params: Record<string, unknown>;
}

/** What happens instead of an answer. */
export type McpFault =
  | { status: number; headers?: Record<string, string>; body?: string }
  | 'hang'
  /** An event stream without end that never holds the answer. */
  | 'endless'
  /** An answer above every bound. */
  | 'flood'
  | 'cut';

export interface FakeMcpOptions {
  tools?: FakeTool[];
  /** Answers as event streams. */
  stream?: boolean;
  fault?: (message: SeenMessage) => McpFault | undefined;
}

export class FakeMcpServer {
  readonly seen: SeenMessage[] = [];
  connections = 0;
  sessions = 0;
  readonly #server = createServer((request, response) => void this.#handle(request, response));
  readonly #live = new Set<string>();

  private constructor(readonly options: FakeMcpOptions) {
    this.#server.on('connection', () => (this.connections += 1));
  }

  static async start(options: FakeMcpOptions = {}): Promise<FakeMcpServer> {
    const server = new FakeMcpServer(options);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Methods in order; DELETE for the end of a session. */
  get methods(): string[] {
    return this.seen.map(({ method, verb }) => (verb === 'POST' ? method : verb));
  }

  /** Calls of tools, in order. */
  get calls(): { name: unknown; arguments: unknown }[] {
    return this.seen
      .filter(({ method }) => method === 'tools/call')
      .map(({ params }) => ({ name: params['name'], arguments: params['arguments'] }));
  }

  /** All sessions are forgotten, as by a restart. */
  forget(): void {
    this.#live.clear();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const verb = request.method ?? '';
    const body = (verb === 'POST' ? await json(request) : {}) as {
      id?: number;
      method?: string;
      params?: Record<string, unknown>;
    };
    const { headers, url = '' } = request;
    const message = { method: body.method ?? '', verb, url, headers, params: body.params ?? {} };
    this.seen.push(message);
    const fault = this.options.fault?.(message);
    if (fault !== undefined) return fail(response, fault);
    if (verb === 'DELETE') {
      response.writeHead(this.#live.delete(String(headers['mcp-session-id'])) ? 200 : 404).end();
      return;
    }
    if (body.method === 'initialize') return this.#initialize(response, body.id);
    if (!this.#live.has(String(headers['mcp-session-id']))) {
      const known = headers['mcp-session-id'] === undefined ? 400 : 404;
      response.writeHead(known, { 'content-type': 'text/plain' }).end('no such session');
      return;
    }
    if (body.id === undefined) {
      response.writeHead(202).end();
      return;
    }
    this.#send(response, { jsonrpc: '2.0', id: body.id, ...this.#answer(message) });
  }

  #initialize(response: ServerResponse, id: number | undefined): void {
    this.sessions += 1;
    const session = `session-${this.sessions}`;
    this.#live.add(session);
    response.setHeader('mcp-session-id', session);
    const serverInfo = { name: 'fake', version: '1' };
    const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo };
    this.#send(response, { jsonrpc: '2.0', id, result });
  }

  #answer(message: SeenMessage): object {
    const { tools = [] } = this.options;
    if (message.method === 'tools/list') {
      const listed = tools.map(({ name, description, inputSchema = { type: 'object' } }) => ({
        name,
        ...(description === undefined ? {} : { description }),
        inputSchema,
      }));
      return { result: { tools: listed } };
    }
    const tool = tools.find(({ name }) => name === message.params['name']);
    if (message.method !== 'tools/call' || tool === undefined) {
      return { error: { code: -32601, message: 'there is no such method or tool' } };
    }
    const input = (message.params['arguments'] ?? {}) as Record<string, unknown>;
    return { result: tool.answer?.(input, message) ?? { content: [{ type: 'text', text: JSON.stringify(input) }] } };
  }

  #send(response: ServerResponse, message: object): void {
    if (this.options.stream !== true) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(message));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(': hello\r\n\r\n');
    response.write('event: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\r\n\r\n');
    // The stream stays open after the answer, which nobody may wait for.
    response.write(`id: 7\r\ndata: ${JSON.stringify(message)}\r\n\r\n`);
  }
}

function fail(response: ServerResponse, fault: McpFault): void {
  if (fault === 'hang') return;
  if (fault === 'cut') {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: {"jsonrpc"', () => response.destroy());
    return;
  }
  if (fault === 'endless') {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n');
    return;
  }
  if (fault === 'flood') {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const event = `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"${'x'.repeat(65_536)}"}}\n\n`;
    const more = () => {
      if (!response.destroyed) response.write(event, () => setImmediate(more));
    };
    response.on('error', () => undefined);
    more();
    return;
  }
  response.writeHead(fault.status, { 'content-type': 'text/plain', ...fault.headers }).end(fault.body ?? '');
}

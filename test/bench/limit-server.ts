/**
 * What an MCP read is compared with: servers that answer every POST with the same bytes from memory, one on express with a
 * raw body as our endpoint has it, one on bare node:http. A process of its own: the bytes come on its standard input,
 * the ports go to its standard output, and it ends with its parent.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import express from 'express';

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

async function serve(text: string): Promise<void> {
  const bytes = Buffer.from(text);
  const headers = { 'content-type': 'application/json', 'content-length': bytes.length };
  const bare = (request: IncomingMessage, response: ServerResponse) => {
    request.resume().once('end', () => response.writeHead(200, headers).end(bytes));
  };
  const app = express().disable('etag').disable('x-powered-by');
  app.use(express.raw({ type: () => true, limit: '4mb' }));
  app.post('/', (_request, response) => void response.writeHead(200, headers).end(bytes));
  const ports = { express: await listen(app), bare: await listen(bare) };
  process.stdout.write(`${JSON.stringify(ports)}\n`);
}

const lines = createInterface({ input: process.stdin });
lines.once('line', (line) => void serve(JSON.parse(line) as string));
lines.once('close', () => process.exit(0));

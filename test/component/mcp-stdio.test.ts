/** A server made with the official SDK, in tools, behind the socket, asked by the client that the runner uses. */
import { createMCPClient } from '@ai-sdk/mcp';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { StdioTransport } from '../../src/runner/mcp/stdio-transport.js';
import { runTools } from '../../src/runner/tools/main.js';
import { systemClock } from '../../src/runtime/clock.js';
import { RIPGREP } from '../builders/ripgrep.js';
import { webAccess } from '../builders/web-access.js';
import { temporaryDirectories } from '../builders/workspace.js';

const temporary = temporaryDirectories();
const script = fileURLToPath(new URL('support/stdio-server.mjs', import.meta.url));

test('its tools are listed and called', async () => {
  const workspace = await temporary('stdio');
  const socketPath = join(workspace, 'tools.sock');
  const stop = new AbortController();
  const tools = runTools(
    {},
    {
      clock: systemClock,
      writeLog: () => undefined,
      terminate: stop.signal,
      paths: { socket: socketPath, workspace, home: workspace },
      web: webAccess(),
      ripgrep: RIPGREP,
    },
  );
  const server = { name: 'clock', command: process.execPath, args: [script], env: { GREETING: 'Good day,' } };
  const transport = new StdioTransport({ socketPath, clock: systemClock, run: 'ada-1', server });
  const client = await createMCPClient({ transport });

  const { tools: listed } = await client.listTools();
  expect(listed.map(({ name, description }) => ({ name, description }))).toEqual([
    { name: 'greet', description: 'Greets.' },
  ]);
  const answer = await client.callTool({ name: 'greet', arguments: { name: 'Ada' } });
  expect(answer).toMatchObject({ content: [{ type: 'text', text: 'Good day, Ada' }] });

  await client.close();
  stop.abort();
  expect(await tools).toBe(0);
});

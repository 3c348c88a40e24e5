// An MCP server of transport stdio, made with the official SDK: what a user of an agent would install.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const server = new McpServer({ name: 'clock', version: '1.0.0' });
server.registerTool('greet', { description: 'Greets.', inputSchema: { name: z.string() } }, ({ name }) => ({
  content: [{ type: 'text', text: `${process.env.GREETING} ${name}` }],
}));
await server.connect(new StdioServerTransport());

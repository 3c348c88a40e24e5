/** How messages get to an MCP server and back: what a client needs, whatever carries them. */

/** A JSON-RPC message; the client makes and checks them. */
export type McpMessage = Record<string, unknown>;

export interface McpTransport {
  start(): Promise<void>;
  send(message: McpMessage, options?: { signal?: AbortSignal }): Promise<void>;
  close(): Promise<void>;
  onmessage?: (message: McpMessage) => void;
  onerror?: (error: Error) => void;
  onclose?: () => void;
}

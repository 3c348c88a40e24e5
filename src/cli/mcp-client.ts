/** Calls tools of the MCP endpoint with an API key. */

/** The call failed, in words for the person who typed it: exit code 1. */
export class CommandError extends Error {}

export interface ToolClient {
  /** The payload of the tool; rejects with its own words when it refuses. */
  call<T>(tool: string, args: object): Promise<T>;
}

export interface Endpoint {
  /** The public URL of the installation. */
  url: string;
  key: string;
  userAgent: string;
}

interface Answer {
  error?: { message: string };
  result?: { isError?: boolean; content: { text?: string }[] };
}

/** A client that makes one request for each call and repeats none: a message must not be sent twice. */
export function createToolClient({ url, key, userAgent }: Endpoint): ToolClient {
  const endpoint = `${url.endsWith('/') ? url.slice(0, -1) : url}/api/mcp/account`;
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'user-agent': userAgent,
  };
  return {
    async call<T>(tool: string, args: object) {
      const body = JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: tool, arguments: args },
      });
      // A redirect would carry the key to another address.
      const response = await fetch(endpoint, { method: 'POST', headers, body, redirect: 'error' }).catch(
        (error: Error) => {
          throw new CommandError(
            `${endpoint} does not answer: ${error.cause instanceof Error ? error.cause.message : error.message}`,
          );
        },
      );
      const text = await response.text();
      if (response.status === 401)
        throw new CommandError('this API key is not valid: it is unknown, revoked or expired');
      if (!response.ok) throw new CommandError(`${endpoint} answered ${response.status}: is it the public URL?`);
      return payloadOf(text) as T;
    },
  };
}

function payloadOf(text: string): unknown {
  let answer: Answer;
  try {
    answer = JSON.parse(text) as Answer;
  } catch {
    throw new CommandError('the answer is not that of an MCP endpoint: is it the public URL?');
  }
  const said = answer.result?.content[0]?.text;
  if (said === undefined) throw new CommandError(answer.error?.message ?? 'the endpoint gave no answer');
  const payload = JSON.parse(said) as { error?: string };
  if (answer.result?.isError === true) throw new CommandError(payload.error ?? 'the call failed');
  return payload;
}

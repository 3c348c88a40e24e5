/**
 * Many tools of MCP servers: a search takes the place of their list, which would cost every model call more than it is worth.
 * What is found is told to the model from the next step on, behind everything that it was told before, so that a provider's
 * prompt cache keeps the beginning. A session remembers what it found: its conversation says it.
 */
import { z } from 'zod';
import type { TranscriptMessage } from '../protocol/run.js';
import type { EngineTool, ToolResult } from './engine.js';
import { parseJson } from './gateway-client.js';
import { failed } from './results.js';
import { ToolRanking } from './tool-ranking.js';
import { cutUtf8 } from '../runtime/text.js';

/** Up to here the model is told of all tools of MCP servers. */
export const MAX_LISTED_TOOLS = 40;
/** Found tools that the model is told of; the oldest go first. With its own tools a request stays below what providers take. */
const MAX_FOUND_TOOLS = 60;
const DEFAULT_RESULTS = 5;
const MAX_RESULTS = 20;
/** Of one answer, in bytes of JSON; the first tool is always in it. */
const MAX_ANSWER_BYTES = 24_000;
/** Of a description in an answer: the whole of it comes with the tool. */
const MAX_DESCRIPTION_BYTES = 1024;
/** Servers that the description of the search names. */
const MAX_NAMED_SERVERS = 30;

export const SEARCH_TOOLS = 'search_tools';

const Input = z.object({
  query: z.string().min(1).max(1000).describe('Words of what the tool should do, or names of tools.'),
  limit: z.int().min(1).max(MAX_RESULTS).optional().describe(`Most tools; ${DEFAULT_RESULTS} when absent.`),
});

/** The tools of a run as the engine takes them. */
export interface ToolSelection {
  tools: EngineTool[];
  /** See {@link EngineInput.found}. */
  found?: () => readonly string[];
}

/** All tools as they are, or with a search in the place of those of MCP servers. `messages` is the conversation so far. */
export function selectTools(tools: readonly EngineTool[], messages: readonly TranscriptMessage[]): ToolSelection {
  const remote = tools.filter(({ server }) => server !== undefined);
  if (remote.length <= MAX_LISTED_TOOLS) return { tools: [...tools] };
  const known = new Set(remote.map(({ name }) => name));
  let found: readonly string[] = [];
  const find = (names: readonly string[]) => {
    const added = names.filter((name) => known.has(name) && !found.includes(name));
    found = [...found, ...new Set(added)].slice(-MAX_FOUND_TOOLS);
  };
  for (const message of messages) find(namesIn(message));
  const own = tools.filter(({ server }) => server === undefined);
  return {
    tools: [...own, searchOver(remote, find), ...remote.map((tool) => ({ ...tool, isOnDemand: true }))],
    found: () => found,
  };
}

/** Tools that a message found or called. */
function namesIn(message: TranscriptMessage): string[] {
  if (message.role === 'assistant') return (message.toolCalls ?? []).map(({ tool }) => tool);
  if (message.role !== 'tool' || message.tool !== SEARCH_TOOLS) return [];
  const answer = Answer.safeParse(parseJson(message.result));
  return answer.success ? answer.data.tools.map(({ name }) => name) : [];
}

const Answer = z.object({ tools: z.array(z.object({ name: z.string() })) });

function searchOver(tools: readonly EngineTool[], onFound: (names: readonly string[]) => void): EngineTool {
  const ranking = new ToolRanking(tools);
  return {
    name: SEARCH_TOOLS,
    family: 'search',
    description: `Finds tools of your MCP servers by what they do. You have ${tools.length} of them, which you can call only after a search has found them: from your next step on. ${serversOf(tools)}`,
    input: Input,
    execute: (input) => {
      const { query, limit = DEFAULT_RESULTS } = Input.parse(input);
      const fitting = ranking.search(query);
      if (fitting.length === 0) {
        return Promise.resolve(failed(`No tool fits these words; try others. ${serversOf(tools)}`));
      }
      const answer = answerOf(fitting, limit);
      onFound(namesOf(answer));
      return Promise.resolve(answer);
    },
  };
}

function answerOf(fitting: readonly EngineTool[], limit: number): ToolResult {
  const shown: object[] = [];
  let bytes = 0;
  for (const tool of fitting.slice(0, limit)) {
    const entry = entryOf(tool);
    bytes += Buffer.byteLength(JSON.stringify(entry));
    if (shown.length > 0 && bytes > MAX_ANSWER_BYTES) break;
    shown.push(entry);
  }
  const more = fitting.length - shown.length;
  return { isError: false, result: { tools: shown, ...(more === 0 ? {} : { moreThatFit: more }) } };
}

function entryOf({ name, description, schema = {} }: EngineTool): object {
  const short = cutUtf8(description, MAX_DESCRIPTION_BYTES);
  const isLarge = Buffer.byteLength(JSON.stringify(schema)) > MAX_ANSWER_BYTES;
  return { name, description: short, ...(isLarge ? {} : { schema }) };
}

function namesOf({ result }: ToolResult): string[] {
  return Answer.parse(result).tools.map(({ name }) => name);
}

/** How many tools each server has, in a fixed order. */
function serversOf(tools: readonly EngineTool[]): string {
  const counts = new Map<string, number>();
  for (const { server = '' } of tools) counts.set(server, (counts.get(server) ?? 0) + 1);
  const listed = [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([server, count]) => `${server} (${count})`);
  const rest = listed.length - MAX_NAMED_SERVERS;
  const names = listed.slice(0, MAX_NAMED_SERVERS).join(', ');
  return `Servers, with how many tools each: ${names}${rest > 0 ? `, and ${rest} more` : ''}.`;
}

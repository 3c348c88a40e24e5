/**
 * What every client must be able to do, whoever wrote it: list the tools of the registry, call every read tool and one
 * that writes, and see a failed call as failed. The calls follow from the registry, so a new tool is in them at once.
 */
import { TOOLS } from '../../../src/mcp/registry.js';
import type { Tool } from '../../../src/mcp/define-tool.js';
import { SKILL_FILE, SLUG } from './live-api.js';
import type { LiveApi } from './live-api.js';

export interface ClientCall {
  name: string;
  arguments: Record<string, unknown>;
}

/** The result of one call as the client hands it to its user. */
export interface CallOutcome {
  isError: boolean;
  /** All text content. */
  text: string;
  structured: unknown;
}

export interface ClientSession {
  tools: string[];
  /** One for each call, in order. */
  outcomes: CallOutcome[];
}

/** One session of a client: connect, list the tools, make these calls one after the other, disconnect. */
export type RunSession = (api: LiveApi, calls: ClientCall[]) => Promise<ClientSession>;

/** A tool result of the official libraries. */
interface ToolResult {
  [key: string]: unknown;
  content?: unknown;
  isError?: unknown;
  structuredContent?: unknown;
}

export function outcomeOf({ content, isError, structuredContent }: ToolResult): CallOutcome {
  const texts = (content as { text?: string }[]).map(({ text }) => text ?? '');
  return { isError: isError === true, text: texts.join(''), structured: structuredContent };
}

/** Declares the tests of one client; call it once `api()` gives the running API. */
export function testClient(api: () => LiveApi, run: RunSession, sessionMs = 180_000): void {
  let calls: ClientCall[];
  let session: ClientSession;
  beforeAll(async () => {
    calls = callsOn(api());
    session = await run(api(), calls);
  }, sessionMs);

  const outcome = (name: string): CallOutcome => {
    const found = session.outcomes[calls.findIndex((call) => call.name === name)];
    if (found === undefined) throw new Error(`the client made no call of ${name}`);
    return found;
  };

  test('lists the tools of the registry in their order', () => {
    expect(session.tools).toEqual(TOOLS.map(({ name }) => name));
  });

  test.each(READ_TOOLS.map(({ name }) => [name]))('%s: the text is the structured content', (name) => {
    const { isError, text, structured } = outcome(name);
    expect({ isError, text }).toEqual({ isError: false, text: expect.any(String) });
    expect(JSON.parse(text)).toEqual(structured);
  });

  test('a tool that writes gives what it wrote', () => {
    const { isError, text, structured } = outcome('upsert_trigger');
    expect({ isError, text }).toEqual({ isError: false, text: expect.any(String) });
    expect(structured).toMatchObject({
      slug: `cafe-${sessions}`,
      name: `Café ☕ ${sessions}`,
      url: expect.stringMatching(/^https:\/\/agents\.example\.com\//),
    });
  });

  test('a failed call is an error that says why, without structured content', () => {
    const { isError, text, structured } = outcome('delete_trigger');
    expect(isError).toBe(true);
    expect(JSON.parse(text)).toEqual({ error: expect.stringContaining('confirm: true') });
    expect(structured).toBeUndefined();
  });
}

/** Of this test file; the names of what they write differ. */
let sessions = 0;

const READ_TOOLS = TOOLS.filter(({ readOnly }) => readOnly);

/** Every read tool once, one write, one failure. */
function callsOn(api: LiveApi): ClientCall[] {
  sessions += 1;
  return [
    ...READ_TOOLS.map((tool) => ({ name: tool.name, arguments: requiredArguments(tool, api) })),
    {
      name: 'upsert_trigger',
      arguments: { agentId: api.agentId, name: `Café ☕ ${sessions}`, body: 'Say "hi"\nand bye' },
    },
    { name: 'delete_trigger', arguments: { agentId: api.agentId, slug: SLUG } },
  ];
}

function requiredArguments({ name, definition }: Tool, api: LiveApi): Record<string, unknown> {
  const { agentId, runId, sessionId, templateId } = api;
  const known: Record<string, unknown> = { agentId, runId, sessionId, templateId, slug: SLUG, path: SKILL_FILE };
  return Object.fromEntries(
    definition.inputSchema.required.map((argument) => {
      if (known[argument] === undefined) throw new Error(`${name} needs ${argument}: seed one and add it here`);
      return [argument, known[argument]];
    }),
  );
}

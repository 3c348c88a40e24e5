/** A search in the place of many tools: what it finds, in which order, and what the model is told of afterwards. */
import { z } from 'zod';
import type { TranscriptMessage } from '../protocol/run.js';
import type { EngineTool } from './engine.js';
import { MAX_LISTED_TOOLS, selectTools } from './tool-search.js';

const never = new AbortController().signal;

function tool(name: string, description = '', properties: Record<string, unknown> = {}): EngineTool {
  return {
    name,
    family: 'mcp',
    server: name.split('__')[0] ?? '',
    description,
    input: z.record(z.string(), z.unknown()),
    schema: { type: 'object', properties },
    execute: () => Promise.resolve({ isError: false, result: {} }),
  };
}

const own: EngineTool = { ...tool('shell', 'Runs a command.'), family: 'shell' };
delete own.server;

/** As many as it takes for a search, and one more server. */
const many = [
  ...Array.from({ length: MAX_LISTED_TOOLS }, (_, index) => tool(`other__thing_${index}`, 'Does a thing.')),
  tool('github__create_issue', 'Opens an issue in a repository.', { title: { description: 'Title of the issue.' } }),
  tool('github__list_issues', 'Lists issues of a repository.'),
  tool('github__mergePullRequest', 'Merges.', { method: { description: 'squash or rebase' } }),
];

function select(messages: TranscriptMessage[] = [], tools = [own, ...many]) {
  const selection = selectTools(tools, messages);
  const search = selection.tools.find(({ name }) => name === 'search_tools');
  return {
    ...selection,
    search: (input: Record<string, unknown>) => search!.execute(input, never),
    names: async (query: string, limit?: number) => {
      const { result } = await search!.execute({ query, ...(limit === undefined ? {} : { limit }) }, never);
      return (result['tools'] as { name: string }[]).map(({ name }) => name);
    },
  };
}

test('up to 40 tools of servers are listed as they are', () => {
  const tools = [own, ...many.slice(0, MAX_LISTED_TOOLS)];
  expect(selectTools(tools, [])).toEqual({ tools });
});

test('from the 41st on a search takes their place, behind the own tools', () => {
  const { tools, found } = select();
  expect(tools.filter(({ isOnDemand }) => isOnDemand !== true).map(({ name }) => name)).toEqual([
    'shell',
    'search_tools',
  ]);
  expect(tools.filter(({ isOnDemand }) => isOnDemand === true)).toHaveLength(many.length);
  expect(tools[1]?.description).toContain('github (3), other (40)');
  expect(found?.()).toEqual([]);
});

test.each([
  ['a word of the name', 'merge', ['github__mergePullRequest']],
  ['words of a camel-case name', 'pull request', ['github__mergePullRequest']],
  ['a word of an argument', 'squash', ['github__mergePullRequest']],
  ['the singular', 'title of an issue', ['github__create_issue', 'github__list_issues']],
  ['the plural', 'Issues, list', ['github__list_issues', 'github__create_issue']],
  ['the whole name, before all others', 'list issues github__mergePullRequest', ['github__mergePullRequest']],
])('%s finds a tool', async (_case, query, names) => {
  expect((await select().names(query)).slice(0, names.length)).toEqual(names);
});

test('the same query gives the same tools, whatever was found before', async () => {
  const { names } = select();
  const first = await names('thing', 20);
  await names('issue');
  expect(await names('thing', 20)).toEqual(first);
  expect(first).toEqual(first.toSorted());
});

test('what is found comes with its schema, and stands behind what was found before', async () => {
  const { search, found } = select();
  const answer = await search({ query: 'create issue', limit: 1 });
  expect(answer).toEqual({
    isError: false,
    result: {
      tools: [
        {
          name: 'github__create_issue',
          description: 'Opens an issue in a repository.',
          schema: { type: 'object', properties: { title: { description: 'Title of the issue.' } } },
        },
      ],
      moreThatFit: 1,
    },
  });
  await search({ query: 'list issues', limit: 2 });
  expect(found?.()).toEqual(['github__create_issue', 'github__list_issues']);
});

test('words that fit nothing are an error that names the servers', async () => {
  expect(await select().search({ query: 'weather' })).toEqual({
    isError: true,
    result: { error: expect.stringContaining('github (3), other (40)') },
  });
});

test('a session knows what it found and what it called, in that order, as far as it is still there', () => {
  const result = JSON.stringify({ tools: [{ name: 'github__list_issues' }, { name: 'gone__tool' }] });
  const { found } = select([
    { role: 'user', text: 'Go.' },
    { role: 'assistant', text: '', toolCalls: [{ id: '1', tool: 'search_tools', input: '{"query":"x"}' }] },
    { role: 'tool', callId: '1', tool: 'search_tools', result, isError: false },
    { role: 'assistant', text: '', toolCalls: [{ id: '2', tool: 'other__thing_1', input: '{}' }] },
    {
      role: 'tool',
      callId: '2',
      tool: 'other__thing_1',
      result: '{"tools":[{"name":"other__thing_2"}]}',
      isError: false,
    },
    { role: 'tool', callId: '3', tool: 'search_tools', result: '[cut]', isError: false },
  ]);
  expect(found?.()).toEqual(['github__list_issues', 'other__thing_1']);
});

test('an answer is bounded, and the tools that are not in it are not found', async () => {
  const large = Array.from({ length: 50 }, (_, index) =>
    tool(`big__t${index}`, 'large', { a: { description: 'x'.repeat(10_000) } }),
  );
  const { search, found } = select([], large);
  const { result } = await search({ query: 'large', limit: 20 });
  expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThan(25_000);
  expect([found?.().length, result['moreThatFit']]).toEqual([2, 48]);
});

test('of what was found the newest 60 are told', async () => {
  const { names, found } = select([], [...many, ...Array.from({ length: 40 }, (_, n) => tool(`more__part_${n}`, 'x'))]);
  const all: string[] = [];
  for (let n = 0; n < MAX_LISTED_TOOLS; n++) all.push(...(await names(`other__thing_${n} more__part_${n}`, 2)));
  expect(found?.()).toEqual(all.slice(-60));
});

import { assert, constantFrom, oneof, property, string, stringMatching } from '../../test/builders/properties.js';
import { MCP_SERVER, mcpToolName } from './mcp.js';

test.each([
  ['github', 'create_issue', 'github__create_issue'],
  ['my-server', 'a-b', 'my-server__a-b'],
  ['github', 'issues.create', 'github__issues_create_a462e295'],
  ['7zip', 'list', 'm7zip__list_a1b335ac'],
  ['a__b', 'c', 'a__b__c_528239e9'],
  ['a', 'b__c', 'a__b__c'],
  ['a_', 'b', 'a___b_0b9e6aab'],
  ['a', '_b', 'a___b'],
  ['github', '', 'github___4e7c14e7'],
  ['x'.repeat(60), 'tool', `${'x'.repeat(55)}_5cf892a0`],
])('the tool of %s named %j is %s', (server, tool, name) => {
  expect(mcpToolName(server, tool)).toBe(name);
});

test('every tool gets a name that providers accept, and no two the same', () => {
  const server = oneof(stringMatching(MCP_SERVER), constantFrom('a', 'a_', 'a__', 'a__b'));
  const tool = oneof(string(), string({ maxLength: 200 }), constantFrom('b', '_b', '__b', 'b__c', 'b.c', 'b/c'));
  const names = new Map<string, string>();
  assert(
    property(server, tool, (s, t) => {
      const name = mcpToolName(s, t);
      const key = JSON.stringify([s, t]);
      const isFirst = (names.get(name) ?? key) === key;
      names.set(name, key);
      return isFirst && /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/.test(name);
    }),
    { numRuns: 2000 },
  );
});

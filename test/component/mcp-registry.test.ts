/** Rules for every tool definition that real clients enforce, and one golden file per tool. */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { renderToolsDoc } from '../../src/mcp/docs.js';
import { TOOLS, createRegistry } from '../../src/mcp/registry.js';

const GOLDEN = 'test/golden/tools';

/** Every schema object inside an input schema. */
function* schemasOf(schema: unknown): Generator<Record<string, unknown>> {
  if (typeof schema !== 'object' || schema === null) return;
  const node = schema as Record<string, unknown>;
  yield node;
  for (const inner of Object.values(node['properties'] ?? {})) yield* schemasOf(inner);
  for (const inner of (node['anyOf'] ?? []) as unknown[]) yield* schemasOf(inner);
  yield* schemasOf(node['items']);
}

describe.each(TOOLS.map((tool) => [tool.name, tool] as const))('%s', (name, tool) => {
  const { definition } = tool;

  test('has a name that every client accepts', () => {
    expect(name).toMatch(/^[a-z][a-z0-9_]{0,31}$/);
  });

  test('has a short description and a title', () => {
    expect(definition.description.length).toBeGreaterThan(40);
    expect(definition.description.length).toBeLessThanOrEqual(300);
    expect(definition.annotations.title.length).toBeGreaterThan(3);
  });

  test('has all four hints, and they fit each other', () => {
    const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint, title } = definition.annotations;
    expect(Object.keys(definition.annotations)).toHaveLength(5);
    for (const hint of [readOnlyHint, destructiveHint, idempotentHint, openWorldHint])
      expect(typeof hint).toBe('boolean');
    expect(typeof title).toBe('string');
    expect(readOnlyHint).toBe(/^(list|get|read|search|validate)_/.test(name));
    if (readOnlyHint) expect([destructiveHint, idempotentHint, openWorldHint]).toEqual([false, true, false]);
  });

  test('has no outputSchema', () => {
    expect(Object.keys(definition).sort()).toEqual(['annotations', 'description', 'inputSchema', 'name']);
  });

  test('has an input schema that no client refuses', () => {
    const { inputSchema } = definition;
    expect(Object.keys(inputSchema)).toEqual(['type', 'properties', 'required']);
    expect(inputSchema.type).toBe('object');
    expect(Array.isArray(inputSchema.required)).toBe(true);
    for (const schema of schemasOf(inputSchema)) {
      expect(Object.keys(schema).length).toBeGreaterThan(0);
      expect('anyOf' in schema ? schema['type'] : typeof schema['type']).toBe('anyOf' in schema ? undefined : 'string');
      for (const word of ['$ref', '$defs', 'definitions', 'const', 'allOf', 'oneOf', 'if', 'format', 'propertyNames']) {
        expect(schema).not.toHaveProperty([word]);
      }
      if (schema['type'] === 'array') expect(schema).toHaveProperty('items');
      if (schema['type'] === 'object') expect(schema).toHaveProperty('properties');
      for (const value of (schema['enum'] ?? []) as unknown[]) expect(typeof value).toBe('string');
    }
    for (const property of Object.values(inputSchema.properties)) expect(property).toHaveProperty('description');
  });

  test('is as its golden file says', () => {
    const file = `${GOLDEN}/${name}.json`;
    const text = `${JSON.stringify(definition, null, 2)}\n`;
    if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(file, text);
    if (!existsSync(file)) throw new Error(`${file} is missing: run the test with UPDATE_GOLDEN=1 and look at it`);
    expect(text).toBe(readFileSync(file, 'utf8'));
  });
});

test('golden files are of tools that exist', () => {
  expect(readdirSync(GOLDEN).sort()).toEqual(TOOLS.map(({ name }) => `${name}.json`).sort());
});

test('the order of the list is fixed', () => {
  expect(TOOLS.map(({ name }) => name)).toEqual([
    'list_spaces',
    'list_agents',
    'get_agent',
    'create_agent',
    'update_agent',
    'delete_agent',
    'send_message',
    'list_runs',
    'get_run',
    'list_triggers',
    'upsert_trigger',
    'test_trigger',
    'rotate_trigger_token',
    'delete_trigger',
    'cancel_run',
    'list_sessions',
    'get_session',
    'list_memories',
    'list_skills',
    'get_skill',
    'read_skill_file',
    'upsert_skill',
    'delete_skill',
    'list_schedules',
    'upsert_schedule',
    'run_schedule_now',
    'delete_schedule',
    'search_connectors',
    'list_agent_connectors',
    'attach_connector',
    'detach_connector',
    'set_mcp_servers',
    'list_models',
    'list_templates',
    'get_template',
    'create_template',
    'update_template',
    'delete_template',
    'add_template_agent',
    'update_template_agent',
    'remove_template_agent',
    'validate_template',
    'publish_template',
    'unpublish_template',
    'install_template',
  ]);
});

test('the list is small enough for the context of a model', () => {
  expect(createRegistry().list.length).toBeLessThanOrEqual(36_000);
});

test('there are 45 tools, 12 of them for templates; seven need confirm', () => {
  expect(TOOLS).toHaveLength(45);
  expect(TOOLS.filter(({ name }) => name.includes('template'))).toHaveLength(12);
  expect(TOOLS.filter(({ gate }) => gate !== undefined).map(({ name }) => name)).toEqual(
    TOOLS.map(({ name }) => name).filter((name) => name.includes('template')),
  );
  expect(TOOLS.filter(({ confirm }) => confirm).map(({ name }) => name)).toEqual([
    'delete_agent',
    'delete_trigger',
    'delete_skill',
    'delete_schedule',
    'detach_connector',
    'delete_template',
    'remove_template_agent',
  ]);
});

test('two requests for each tool say which one is right for them', () => {
  const requests = JSON.parse(readFileSync('test/tool-choice.json', 'utf8')) as { request: string; tool: string }[];
  expect(new Set(requests.map(({ request }) => request)).size).toBe(requests.length);
  const counts = Object.fromEntries(TOOLS.map(({ name }) => [name, 0]));
  for (const { tool } of requests) counts[tool] = (counts[tool] ?? 0) + 1;
  expect(counts).toEqual(Object.fromEntries(TOOLS.map(({ name }) => [name, 2])));
});

test('two tools of one name are refused', () => {
  const [tool] = TOOLS;
  if (tool === undefined) throw new Error('there are tools');
  expect(() => createRegistry([tool, tool])).toThrow('two tools have the same name');
});

test('the docs have a section for every tool and a row for every argument', () => {
  const text = renderToolsDoc(TOOLS);
  for (const { name, definition } of TOOLS) {
    expect(text).toContain(`\n## ${name}\n`);
    for (const argument of Object.keys(definition.inputSchema.properties))
      expect(text).toContain(`| \`${argument}\` |`);
  }
});

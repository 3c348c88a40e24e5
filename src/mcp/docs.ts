/** docs/reference/tools.md from the registry. */
import type { Tool } from './define-tool.js';

/** Every tool with its arguments as Markdown. Pure. */
export function renderToolsDoc(tools: readonly Tool[]): string {
  const head = [
    '<!-- Generated from src/mcp by `make generate`. Do not edit. -->',
    '# Tools',
    '',
    'Called through `tools/call` of `POST {base_url}/api/mcp/account`. A failed call has `isError: true` and the text `{"error": …}`.',
    '',
  ];
  return [...head, ...tools.flatMap(renderTool)].join('\n');
}

function renderTool({ definition }: Tool): string[] {
  const { name, description, inputSchema, annotations } = definition;
  const required = new Set(inputSchema.required);
  const rows = Object.entries(inputSchema.properties).map(([argument, schema]) =>
    row(argument, schema as Record<string, unknown>, required.has(argument)),
  );
  const table =
    rows.length === 0
      ? ['No arguments.']
      : ['| Argument | Type | Required | Meaning |', '| --- | --- | --- | --- |', ...rows];
  return [`## ${name}`, '', `${description} (${effectOf(annotations)})`, '', ...table, ''];
}

function effectOf({ readOnlyHint, destructiveHint, openWorldHint }: Tool['definition']['annotations']): string {
  if (readOnlyHint) return 'Changes nothing.';
  if (destructiveHint) return 'Destructive.';
  return openWorldHint ? 'Starts an agent.' : 'Writes.';
}

function row(name: string, schema: Record<string, unknown>, required: boolean): string {
  const { description } = schema;
  const text = typeof description === 'string' ? description.replace(/\|/g, '\\|') : '';
  const fallback = schema['default'] === undefined ? '' : ` Default \`${JSON.stringify(schema['default'])}\`.`;
  return `| \`${name}\` | ${typeText(schema)} | ${required ? 'yes' : ''} | ${text}${fallback} |`;
}

function typeText(schema: Record<string, unknown>): string {
  if (Array.isArray(schema['anyOf']))
    return schema['anyOf'].map((one) => typeText(one as Record<string, unknown>)).join(' or ');
  if (Array.isArray(schema['enum'])) return schema['enum'].map((value) => `\`${String(value)}\``).join(', ');
  if (schema['type'] === 'array') return `list of ${typeText(schema['items'] as Record<string, unknown>)}`;
  return String(schema['type']);
}

/** Whatever the arguments: a readable tool result, never a fault of ours, and a call that failed has written nothing. */
import * as fc from '../builders/properties.js';
import { TOOLS } from '../../src/mcp/registry.js';
import { McpHarness } from '../builders/mcp-harness.js';

/** Enough for every kind of value to meet every argument; seeds are printed when one fails. */
const RUNS = 80;

const FAULTS = ['internal error', 'the cluster refused', 'Kubernetes refused', 'did not answer'];

/** Values that work, that nearly work and that nobody should send, for any argument. */
const value = fc.oneof(
  fc.constantFrom(
    'acme-box.greeter',
    'rival-box.spy',
    'acme.writers',
    'rival.secret',
    'ta-1',
    'hook',
    'notes',
    'daily',
    'greeter-1',
    's-greeter-1',
    'github',
    'a.txt',
    'acme-box',
  ),
  fc.constantFrom(
    null,
    '',
    ' ',
    '../..',
    '%00',
    '\u0000',
    '你好',
    '💥'.repeat(40),
    'x'.repeat(70_000),
    '__proto__',
    'constructor',
  ),
  fc.constantFrom(true, false, 0, -1, 1, 1.5, 1e308, Number.MAX_SAFE_INTEGER, 200, 601),
  fc.jsonValue({ maxDepth: 2 }),
  fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 3 }),
  fc.constantFrom(
    ['acme-box.greeter'],
    [{ name: 'a', url: 'https://x.example' }],
    [{ path: 'b.txt', content: 'x' }],
    { required: true, prompt: 'p' },
    { shell: false },
    { __proto__: null, constructor: 1 },
  ),
  fc.string({ unit: 'binary', maxLength: 40 }),
);

/** What lets a call get past its first checks. */
const GOOD: Readonly<Record<string, readonly unknown[]>> = {
  agentId: ['acme-box.greeter'],
  templateId: ['acme.writers'],
  templateAgentId: ['ta-1'],
  runId: ['greeter-1'],
  sessionId: ['s-greeter-1'],
  slug: ['hook', 'notes', 'daily', 'github'],
  path: ['a.txt'],
  spaceId: ['acme-box'],
  confirm: [true],
  name: ['Fresh', '你好', '---'],
  body: ['do it'],
  message: ['hi'],
  description: ['About.'],
  cron: ['0 9 * * *'],
  servers: [[{ name: 'docs', url: 'https://mcp.example.com' }]],
  agentIds: [['acme-box.greeter']],
};

function valueOf(name: string) {
  const good = GOOD[name];
  return good === undefined
    ? value
    : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...good) }, { weight: 1, arbitrary: value });
}

function argumentsOf(properties: readonly string[]) {
  const known = fc.record(Object.fromEntries(properties.map((name) => [name, valueOf(name)])), { requiredKeys: [] });
  // Written as JSON text: a literal of the language would set the prototype.
  const hostile = fc.constantFrom(
    '{}',
    '{"__proto__":{"agentId":"rival-box.spy","confirm":true}}',
    '{"constructor":{}}',
  );
  return fc.tuple(known, hostile).map(([given, extra]) => {
    const body = JSON.stringify(given);
    return extra === '{}' ? body : `${body.slice(0, -1)}${body === '{}' ? '' : ','}${extra.slice(1)}`;
  });
}

function seeded(): McpHarness {
  const harness = new McpHarness();
  harness.seedTrigger('acme-box', 'greeter', 'hook');
  harness.seedRun('acme-box', 'greeter-1', { status: { phase: 'done' } });
  harness.seedSkill('acme-box', 'greeter', 'notes', { files: { 'a.txt': 'text' } });
  harness.seedSchedule('acme-box', 'greeter', 'daily');
  harness.seedConnectors();
  harness.seedTemplate('acme', 'writers');
  harness.seedTemplate('rival', 'secret', { published: false });
  // Nobody waits here: neither for the controller nor for a run.
  Object.assign(harness.agentWaiter, { wait: () => Promise.resolve(undefined) });
  Object.assign(harness.runWaiter, { wait: () => Promise.resolve(undefined) });
  harness.api.clearRecords();
  return harness;
}

interface Body {
  error?: unknown;
  result?: { isError?: boolean; content: { text: string }[]; structuredContent?: unknown };
}

test.each(TOOLS.map((tool) => [tool.name, tool] as const))('%s', async (name, { definition }) => {
  const properties = Object.keys(definition.inputSchema.properties);
  await fc.assert(
    fc.asyncProperty(argumentsOf(properties), async (args) => {
      const harness = seeded();
      const request = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`;
      const response = await harness.post(request);
      expect(response.status).toBe(200);
      const body = response.body as Body;
      expect(body.error).toBeUndefined();
      const text = body.result?.content[0]?.text ?? '';
      if (body.result?.isError !== true) {
        expect(JSON.parse(text)).toEqual(body.result?.structuredContent);
        return;
      }
      const { error } = JSON.parse(text) as { error: string };
      expect(error.length).toBeGreaterThan(10);
      for (const fault of FAULTS) expect(error).not.toContain(fault);
      expect(harness.api.writes).toEqual([]);
    }),
    { numRuns: RUNS },
  );
});

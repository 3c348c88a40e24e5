import { z } from 'zod';
import { AGE_COLUMN, FREE_FORM, defineResource, dnsLabelName } from '../define-resource.js';
import { MAX_SECRET_NAMES } from '../credentials.js';
import type { Resource } from '../meta.js';
import { BUDGET_RULES, Budgets, Conditions, FoldedTotals, Folding, Provider, Timestamp } from './common.js';
import { MAX_MCP_SERVERS, McpServerSpec } from './mcp-server.js';

/** Most connectors of one agent. */
export const MAX_CONNECTORS = 50;

/** System prompts that are kept when an agent replaces its own, and their bytes. */
export const MAX_SOUL_REVISIONS = 5;
export const MAX_SOUL_REVISION_BYTES = 64 * 1024;

/** The capability families of spec 2; all on by default. */
export const TOOL_FAMILIES = ['shell', 'files', 'web', 'browser', 'memory', 'agents'] as const;

export const SELF_IMPROVEMENT_FLAGS = ['allowSoulEdit', 'allowToolInstall'] as const;

const onByDefault = (text: string) => z.boolean().default(true).describe(text);

export const AgentTools = z
  .object({
    shell: onByDefault('Run shell commands in the workspace.'),
    files: onByDefault('Read and write files in the workspace.'),
    web: onByDefault('Fetch pages of the public web.'),
    browser: onByDefault('Drive a headless browser.'),
    memory: onByDefault('Keep durable notes between runs.'),
    agents: onByDefault('Call other agents of the Box.'),
  })
  .prefault({})
  .describe('Capability families, all on by default (spec 2).');

export const SelfImprovement = z
  .object({
    allowSoulEdit: onByDefault('The agent may change its own system prompt.'),
    allowToolInstall: onByDefault('The agent may install skills and tools for itself.'),
  })
  .prefault({})
  .describe('What the agent may change about itself (spec 2).');

/** How much a model thinks before it answers. */
export const REASONING_EFFORTS = ['none', 'low', 'medium', 'high'] as const;
export const Reasoning = z.enum(REASONING_EFFORTS);
export type Reasoning = z.output<typeof Reasoning>;

/** What one answer of a model may have in output tokens, thoughts with them. */
export const MaxOutputTokens = z.int().min(256).max(1_000_000);

/** JSON Schema of the last message. Which keywords there are is no matter of ours: src/run/output-schema.ts says what is checked. */
export const OutputSchema = z.looseObject({}).meta({ [FREE_FORM]: true });

/** Models that answer when the one before does not serve: `<provider>/<model>`, or a model. */
export const FallbackModels = z.array(z.string().min(1).max(160).regex(/^\S+$/)).max(4);

/** A share of the window, at most what holds when nobody says one, or tokens. */
export const MAX_COMPACT_SHARE = 0.8;
export const MIN_COMPACT_TOKENS = 4000;
export const CompactAt = z.number().min(0.1).max(10_000_000);
export const COMPACT_AT_RULE = `must be a share of the window from 0.1 to ${MAX_COMPACT_SHARE}, or ${MIN_COMPACT_TOKENS} tokens or more`;

/** Runs after one that ended in an error in which nothing was under way. */
export const MAX_RETRIES = 5;
export const Retries = z.int().min(0).max(MAX_RETRIES);

export const AgentSetup = z
  .object({
    required: z.boolean().describe('Whether the guided setup must run after an install.'),
    prompt: z
      .string()
      .max(16_384)
      .optional()
      .describe('Instructions to the agent, not to the user; needed when required is true.'),
  })
  .describe('Guided setup that the agent runs on the account of whoever installs it from a template (spec 2).');

export const AgentSpec = z.object({
  handle: z
    .string()
    .max(36)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .optional()
    .describe("Call key used as @handle in other agents' prompts; the object name when absent. Unique in a workspace."),
  name: z.string().min(1).max(128).describe('Name of the agent as people see it.'),
  description: z.string().max(1024).default('').describe('One line about the agent.'),
  soul: z.string().max(65_536).default('').describe('Instructions of the agent: the system prompt, in markdown.'),
  provider: Provider.default('boxwright').describe('Whose model it is; `boxwright` is what the Box configures.'),
  model: z.string().max(128).optional().describe('Model of the provider; its default when absent.'),
  temperature: z.number().min(0).max(2).optional().describe("Sampling temperature; the model's default when absent."),
  reasoning: Reasoning.optional().describe(
    "How much the model thinks before it answers; the model's default when absent.",
  ),
  maxOutputTokens: MaxOutputTokens.optional().describe(
    "Most output tokens of one model call, thoughts with them; the model's limit when absent or smaller.",
  ),
  stepLimit: z.int().min(1).max(500).optional().describe('Most tool-calling steps in one run; 50 when absent.'),
  outputSchema: OutputSchema.optional().describe(
    'JSON Schema (an object, at most 16 KiB) that the last message of a run fits, which then is JSON alone; free text when absent.',
  ),
  fallbackModels: FallbackModels.optional().describe(
    'Models (<provider>/<model>) that the run goes on with, in this order, when a provider does not serve the one before: it is down, overloaded or refuses the key, or has no such model. Never for what a model says.',
  ),
  compactAt: CompactAt.optional().describe(
    'When a conversation is summarised: at this share of the context window (0.1 to 0.8), or at so many tokens (4000 or more); 0.8 when absent.',
  ),
  retries: Retries.optional().describe(
    'How often the control plane takes a run further that ended in an error in which nothing was under way (docs/agents.md); 0 when absent.',
  ),
  tools: AgentTools,
  selfImprovement: SelfImprovement,
  approvals: z
    .array(z.string().min(1).max(128))
    .max(64)
    .optional()
    .describe(
      'Tools (for example shell, memory_save) or families (for example files, agents) whose calls a person must approve; none when absent.',
    ),
  setup: AgentSetup.optional(),
  budget: Budgets,
  mcpServers: z
    .array(McpServerSpec)
    .max(MAX_MCP_SERVERS)
    .optional()
    .describe('MCP servers of the agent; their names are unique.'),
  connectors: z
    .array(z.string().min(1).max(63))
    .max(MAX_CONNECTORS)
    .optional()
    .describe('Slugs of the Connectors that the agent uses.'),
  paused: z.boolean().default(false).describe('True keeps new runs waiting.'),
});

/** Optional settings of how its model works; an agent without one leaves it to the model. */
export const MODEL_CONTROL = [
  'reasoning',
  'maxOutputTokens',
  'outputSchema',
  'fallbackModels',
  'compactAt',
  'retries',
] as const satisfies (keyof z.output<typeof AgentSpec>)[];
export type ModelControl = Partial<Pick<z.output<typeof AgentSpec>, (typeof MODEL_CONTROL)[number]>>;

/** What a spec says of {@link MODEL_CONTROL}, and nothing of what it does not. */
export function modelControlOf(spec: ModelControl): ModelControl {
  return Object.fromEntries(MODEL_CONTROL.flatMap((name) => (spec[name] === undefined ? [] : [[name, spec[name]]])));
}

export const AgentStatus = z.object({
  conditions: Conditions,
  observedGeneration: z.int().min(0).optional().describe('Generation of the spec that the controller has seen.'),
  handle: z.string().max(36).optional().describe('The handle by which the agent can be called now.'),
  active: z.boolean().optional().describe('False when the plan has no free agent slot (spec 3).'),
  inactiveReason: z.string().max(512).optional().describe('Why the agent is not active.'),
  runs: z.int().min(0).optional().describe('Runs in all, as kubectl shows them.'),
  tokens: z.int().min(0).optional().describe('Tokens in all, as kubectl shows them.'),
  costUsd: z.string().max(24).optional().describe('Known cost in all in US dollars.'),
  lastRunAt: Timestamp.optional().describe('When the newest run was accepted.'),
  presentSecrets: z
    .array(z.string().max(64))
    .max(MAX_SECRET_NAMES)
    .optional()
    .describe('Names of the keys that Secret `<agent>-secrets` holds, as the gateway saw them; never values.'),
  secretHosts: z
    .array(z.string().max(253))
    .max(64)
    .optional()
    .describe('Hosts that the values of this Secret may go to, from its annotation boxwright.dev/hosts.'),
  revisions: z
    .array(
      z.object({
        at: Timestamp.describe('When the agent replaced it.'),
        run: z.string().max(63).describe('The run of the agent that replaced it.'),
        soul: z.string().max(65_536).describe('The system prompt as it was before.'),
      }),
    )
    .max(MAX_SOUL_REVISIONS)
    .optional()
    .describe(
      'System prompts that the agent itself replaced, the newest first: as many as fit in 64 KiB, at least one.',
    ),
  installedServers: z
    .array(
      z.object({
        at: Timestamp.describe('When the agent added the server.'),
        run: z.string().max(63).describe('The run of the agent that added it.'),
        name: z.string().max(32).describe('Name of the MCP server.'),
      }),
    )
    .max(MAX_MCP_SERVERS)
    .optional()
    .describe('MCP servers that the agent itself added, the newest first.'),
  folded: FoldedTotals,
  folding: Folding,
});

/** An AI agent of a Box (spec 2). */
export const Agents = defineResource({
  kind: 'Agent',
  plural: 'agents',
  shortNames: ['ag'],
  namespaced: true,
  description: 'An AI agent: who it is, which model it uses and what it may do. Its id is <box>.<name>.',
  spec: AgentSpec,
  status: AgentStatus,
  columns: [
    { name: 'Handle', jsonPath: '.status.handle', type: 'string', description: 'The name by which it can be called.' },
    { name: 'Provider', jsonPath: '.spec.provider', type: 'string', description: 'Provider of its model.' },
    { name: 'Model', jsonPath: '.spec.model', type: 'string', description: 'Model of its runs.' },
    { name: 'Active', jsonPath: '.status.active', type: 'boolean', description: 'Whether the agent holds a slot.' },
    { name: 'Runs', jsonPath: '.status.runs', type: 'integer', description: 'Number of its runs in all.' },
    { name: 'Cost', jsonPath: '.status.costUsd', type: 'string', description: 'Known cost in all, US dollars.' },
    AGE_COLUMN,
  ],
  rules: [
    dnsLabelName('Agent', 36),
    ...BUDGET_RULES,
    {
      rule: `!has(self.spec.compactAt) || self.spec.compactAt <= ${MAX_COMPACT_SHARE} || self.spec.compactAt >= ${MIN_COMPACT_TOKENS}.0`,
      message: `spec.compactAt ${COMPACT_AT_RULE}`,
      fieldPath: '.spec.compactAt',
    },
    {
      rule: `!has(self.spec.setup) || !self.spec.setup.required || (has(self.spec.setup.prompt) && self.spec.setup.prompt.size() > 0)`,
      message: 'spec.setup.prompt is needed when spec.setup.required is true',
      fieldPath: '.spec.setup',
    },
    {
      rule: `!has(self.spec.mcpServers) || self.spec.mcpServers.all(s, s.transport == 'stdio' ? has(s.command) : has(s.url))`,
      message: 'an MCP server needs a url for transport http, a command for transport stdio',
      fieldPath: '.spec.mcpServers',
    },
    {
      rule: `!has(self.spec.mcpServers) || self.spec.mcpServers.all(s, self.spec.mcpServers.exists_one(t, t.name == s.name))`,
      message: 'two MCP servers have the same name',
      fieldPath: '.spec.mcpServers',
    },
  ],
});
export type Agent = Resource<z.output<typeof AgentSpec>, z.output<typeof AgentStatus>>;

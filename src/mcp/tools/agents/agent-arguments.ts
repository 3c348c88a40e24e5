/** The agent input fields of spec 2, taken from the Agent kind so that both accept the same values. */
import { z } from 'zod';
import {
  AgentSpec,
  COMPACT_AT_RULE,
  CompactAt,
  FallbackModels,
  MaxOutputTokens,
  MAX_COMPACT_SHARE,
  MIN_COMPACT_TOKENS,
  OutputSchema,
  Reasoning,
  Retries,
  SELF_IMPROVEMENT_FLAGS,
  TOOL_FAMILIES,
} from '../../../api/v1alpha1/agent.js';
import { Provider } from '../../../api/v1alpha1/common.js';
import { idArgument } from '../common-arguments.js';

const flag = z.boolean().optional();

/** `{a?: boolean, b?: boolean}`; an unknown key is an error, since it would silently do nothing. */
function flags<Key extends string>(keys: readonly Key[]) {
  return z.strictObject(Object.fromEntries(keys.map((key) => [key, flag])) as Record<Key, typeof flag>);
}

const compactAt = CompactAt.refine((at) => at <= MAX_COMPACT_SHARE || at >= MIN_COMPACT_TOKENS, {
  error: COMPACT_AT_RULE,
});

const SETUP_PROMPT = 'setup.prompt is required when setup.required is true';

export const agentFields = {
  soul: AgentSpec.shape.soul.unwrap().optional().describe('System prompt in markdown.'),
  description: AgentSpec.shape.description.unwrap().optional().describe('One line about the agent.'),
  provider: Provider.optional().describe('boxwright = what the Box provides.'),
  model: z.string().min(1).max(128).optional().describe("The provider's default when omitted."),
  temperature: z.number().min(0).max(2).optional().describe('Sampling temperature.'),
  stepLimit: z.int().min(1).max(500).optional().describe('Most tool-calling steps a run.'),
  reasoning: Reasoning.optional().describe('How much the model thinks.'),
  maxOutputTokens: MaxOutputTokens.optional().describe('Of one model call.'),
  outputSchema: OutputSchema.optional().describe('JSON Schema of the last message.'),
  fallbackModels: FallbackModels.optional().describe('provider/model; used when one does not serve.'),
  compactAt: compactAt.optional().describe('Share of the window, or tokens.'),
  retries: Retries.optional().describe('After errors in which nothing was under way.'),
  tools: flags(TOOL_FAMILIES).optional().describe('Capability families; all on by default.'),
  selfImprovement: flags(SELF_IMPROVEMENT_FLAGS)
    .optional()
    .describe('What it may change about itself; all on by default.'),
  setup: z
    .object({
      required: z.boolean(),
      prompt: z.string().max(16_384).optional(),
    })
    .refine((setup) => !setup.required || (setup.prompt ?? '') !== '', { error: SETUP_PROMPT })
    .optional()
    .describe('Guided setup after an install; required needs a prompt.'),
};

const orDefault = 'null = default.';

/** The fields of {@link agentFields} in an update: null stands for the default where an agent can be without a value. */
export const agentUpdateFields = {
  name: AgentSpec.shape.name.optional().describe('Display name; the handle stays.'),
  handle: idArgument.optional().describe('Call key; a change breaks @handle elsewhere.'),
  ...agentFields,
  description: AgentSpec.shape.description.unwrap().nullable().optional().describe('One line; null empties it.'),
  model: z.string().min(1).max(128).nullable().optional().describe(orDefault),
  temperature: z.number().min(0).max(2).nullable().optional().describe(orDefault),
  stepLimit: z.int().min(1).max(500).nullable().optional().describe(orDefault),
  reasoning: Reasoning.nullable().optional().describe(orDefault),
  maxOutputTokens: MaxOutputTokens.nullable().optional().describe(orDefault),
  outputSchema: OutputSchema.nullable().optional().describe(orDefault),
  fallbackModels: FallbackModels.nullable().optional().describe(orDefault),
  compactAt: compactAt.nullable().optional().describe(orDefault),
  retries: Retries.nullable().optional().describe(orDefault),
  tools: agentFields.tools.describe('Only those passed change.'),
  selfImprovement: agentFields.selfImprovement.describe('Only those passed change.'),
};

/** The same fields in update_template_agent: update_agent describes them already. */
export const templateAgentUpdateFields = Object.fromEntries(
  Object.entries(agentUpdateFields).map(([name, field]) => [name, field.describe('See update_agent.')]),
) as typeof agentUpdateFields;

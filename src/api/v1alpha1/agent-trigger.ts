import { z } from 'zod';
import { AGE_COLUMN, childOfAgentName, defineResource, immutableSpecField } from '../define-resource.js';
import type { Resource } from '../meta.js';
import { SIGNATURE_SCHEMES } from '../webhook-keys.js';
import { Conditions, FoldedTotals, Folding, Timestamp } from './common.js';

/** The methods a trigger can accept (spec 2). */
export const TRIGGER_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export const TriggerMethod = z.enum(TRIGGER_METHODS);
export type TriggerMethod = z.output<typeof TriggerMethod>;

/**
 * Longest instruction in bytes: with 64 KB of payload and the block around it the message stays below the 128 KiB of a
 * run, so that a call can never fail because of its trigger.
 */
export const MAX_TRIGGER_BODY_BYTES = 60 * 1024;

/** The signature that calls must carry. */
const TriggerVerify = z.object({
  scheme: z
    .enum(SIGNATURE_SCHEMES)
    .describe('How the sender signs: as GitHub, Stripe or Slack do, or by the Standard Webhooks specification.'),
  key: z
    .string()
    .max(128)
    .regex(/^[A-Za-z0-9._-]+$/)
    .describe(
      'Entry of Secret boxwright-webhook-keys of this namespace, labelled boxwright.dev/credential=true: the key that the sender has, or up to 4 of them, one a line, while it is replaced.',
    ),
});

export const AgentTriggerSpec = z.object({
  agent: z.string().min(1).max(36).describe('The Agent of this namespace that the URL starts. Immutable.'),
  name: z.string().min(1).max(128).describe('Display name. Immutable: the slug and the URL come from it.'),
  description: z.string().max(1024).default('').describe('One line about the trigger.'),
  body: z
    .string()
    .max(65_536)
    .describe('The instruction sent to the agent when the URL is called; at most 60 KiB in UTF-8.'),
  methods: z.array(TriggerMethod).min(1).max(5).default(['POST']).describe('HTTP methods that fire the trigger.'),
  enabled: z.boolean().default(true).describe('A disabled trigger answers like a missing one.'),
  tokenId: z
    .string()
    .max(32)
    .regex(/^[0-9a-f]{32}$/)
    .optional()
    .describe('128 random bits in hex behind the URL; the control plane sets and rotates it.'),
  keyId: z
    .string()
    .max(32)
    .optional()
    .describe('The key of the keyring that signs the URL; the control plane sets it.'),
  dedupeHeader: z
    .string()
    .max(64)
    .regex(/^[A-Za-z0-9][A-Za-z0-9-]*$/)
    .optional()
    .describe(
      'Request header that names a delivery, for example X-GitHub-Delivery: calls with the same value are one run for as long as that run is kept. Every call is a run of its own when absent, and a call without the header.',
    ),
  verify: TriggerVerify.optional().describe(
    'Calls without a right signature of the sender answer like a missing trigger, and so do all GET calls. No signature is looked at when absent.',
  ),
});

export const AgentTriggerStatus = z.object({
  conditions: Conditions,
  fireCount: z.int().min(0).optional().describe('Fires in all, as kubectl shows them.'),
  lastFiredAt: Timestamp.optional().describe('When the trigger last fired.'),
  folded: FoldedTotals,
  folding: Folding,
});

/** A public webhook URL that starts runs of one agent (spec 4.3). Its name is `<agent>.<slug>`. */
export const AgentTriggers = defineResource({
  kind: 'AgentTrigger',
  plural: 'agenttriggers',
  shortNames: ['atr'],
  namespaced: true,
  description: 'A public webhook URL that starts runs of one agent.',
  spec: AgentTriggerSpec,
  status: AgentTriggerStatus,
  columns: [
    { name: 'Agent', jsonPath: '.spec.agent', type: 'string', description: 'The agent that it starts.' },
    { name: 'Enabled', jsonPath: '.spec.enabled', type: 'boolean', description: 'Whether the URL works.' },
    { name: 'Methods', jsonPath: '.spec.methods', type: 'string', description: 'HTTP methods that fire it.' },
    { name: 'Fired', jsonPath: '.status.fireCount', type: 'integer', description: 'How often it fired in all.' },
    { name: 'Last Fired', jsonPath: '.status.lastFiredAt', type: 'date', description: 'When it last started a run.' },
    AGE_COLUMN,
  ],
  rules: [
    childOfAgentName('AgentTrigger'),
    immutableSpecField('agent'),
    {
      // A trigger from before the rule can still be changed, but for its body.
      rule: `size(bytes(self.spec.body)) <= ${MAX_TRIGGER_BODY_BYTES} || (oldSelf.hasValue() && oldSelf.value().spec.body == self.spec.body)`,
      message: `spec.body must have at most ${MAX_TRIGGER_BODY_BYTES} bytes (60 KiB), so that the payload of a call fits beside it`,
      fieldPath: '.spec.body',
      optionalOldSelf: true,
    },
    immutableSpecField('name', 'spec.name cannot be changed: delete and recreate the trigger, which changes the URL'),
  ],
});
export type AgentTrigger = Resource<z.output<typeof AgentTriggerSpec>, z.output<typeof AgentTriggerStatus>>;

import { z } from 'zod';
import { AGE_COLUMN, childOfAgentName, defineResource, immutableSpecField } from '../define-resource.js';
import type { Resource } from '../meta.js';
import { Conditions, FoldedTotals, Folding, Timestamp } from './common.js';

/** The methods a trigger can accept (spec 2). */
export const TRIGGER_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export const TriggerMethod = z.enum(TRIGGER_METHODS);
export type TriggerMethod = z.output<typeof TriggerMethod>;

export const AgentTriggerSpec = z.object({
  agent: z.string().min(1).max(36).describe('The Agent of this namespace that the URL starts. Immutable.'),
  name: z.string().min(1).max(128).describe('Display name. Immutable: the slug and the URL come from it.'),
  description: z.string().max(1024).default('').describe('One line about the trigger.'),
  body: z.string().max(65_536).describe('The instruction sent to the agent when the URL is called.'),
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
});

export const AgentTriggerStatus = z.object({
  conditions: Conditions,
  fireCount: z.int().min(0).optional().describe('Fires in all, mirrored for kubectl.'),
  lastFiredAt: Timestamp.optional().describe('When the trigger last fired, mirrored for kubectl.'),
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
    { name: 'Agent', jsonPath: '.spec.agent', type: 'string', description: 'The agent it starts.' },
    { name: 'Enabled', jsonPath: '.spec.enabled', type: 'boolean', description: 'Whether the URL works.' },
    { name: 'Methods', jsonPath: '.spec.methods', type: 'string', description: 'Accepted HTTP methods.' },
    { name: 'Fired', jsonPath: '.status.fireCount', type: 'integer', description: 'Fires in all.' },
    { name: 'Last Fired', jsonPath: '.status.lastFiredAt', type: 'date', description: 'When it last fired.' },
    AGE_COLUMN,
  ],
  rules: [
    childOfAgentName('AgentTrigger'),
    immutableSpecField('agent'),
    immutableSpecField('name', 'spec.name cannot be changed: delete and recreate the trigger, which changes the URL'),
  ],
});
export type AgentTrigger = Resource<z.output<typeof AgentTriggerSpec>, z.output<typeof AgentTriggerStatus>>;

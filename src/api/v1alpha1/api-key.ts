import { z } from 'zod';
import { AGE_COLUMN, defineResource, dnsLabelName } from '../define-resource.js';
import type { Resource } from '../meta.js';
import { Conditions, Timestamp } from './common.js';

export const APIKeySpec = z.object({
  description: z.string().max(256).optional().describe('What the key is for.'),
  expiresAt: Timestamp.optional().describe('The key stops working at this time; never when absent.'),
  revoked: z.boolean().default(false).describe('True makes the key invalid at once, and for good.'),
  readOnly: z
    .boolean()
    .default(false)
    .describe(
      'True allows only tools that change nothing; list_triggers leaves out the URLs, because a call of one starts a run.',
    ),
});

export const APIKeyStatus = z.object({
  conditions: Conditions,
  hash: z
    .string()
    .max(64)
    .optional()
    .describe('SHA-256 of the key in hex. Removing it makes the controller issue a new key.'),
  prefix: z.string().max(16).optional().describe('The first characters of the key, to recognise it.'),
  secretName: z.string().max(253).optional().describe('Secret beside this object whose entry `key` holds the key.'),
  lastUsedAt: Timestamp.optional().describe('When the key was last seen, at a resolution of minutes.'),
});

/** A key for the MCP endpoint (spec 5.1), in the namespace `bw-ws-<workspace>`. */
export const APIKeys = defineResource({
  kind: 'APIKey',
  plural: 'apikeys',
  shortNames: ['bwkey'],
  namespaced: true,
  description:
    'A key for the MCP endpoint of one workspace. The controller writes the key once into a Secret of the same name.',
  spec: APIKeySpec,
  status: APIKeyStatus,
  columns: [
    { name: 'Prefix', jsonPath: '.status.prefix', type: 'string', description: 'First characters of the key.' },
    { name: 'Revoked', jsonPath: '.spec.revoked', type: 'boolean', description: 'Whether the key was stopped.' },
    { name: 'Last Used', jsonPath: '.status.lastUsedAt', type: 'date', description: 'When the key was last seen.' },
    AGE_COLUMN,
  ],
  rules: [
    dnsLabelName('APIKey', 63),
    {
      // Whoever has the value would be let in again, and nobody would see why.
      rule: '!oldSelf.spec.revoked || self.spec.revoked',
      message: 'spec.revoked cannot be taken back: create another APIKey',
      fieldPath: '.spec.revoked',
    },
  ],
});
export type APIKey = Resource<z.output<typeof APIKeySpec>, z.output<typeof APIKeyStatus>>;

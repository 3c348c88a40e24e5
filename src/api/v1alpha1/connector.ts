import { z } from 'zod';
import { AGE_COLUMN, defineResource, dnsLabelName } from '../define-resource.js';
import type { Resource } from '../meta.js';

export const CONNECTOR_AUTH = ['none', 'apiKey', 'oauth'] as const;

export const ConnectorSpec = z.object({
  name: z.string().min(1).max(128).describe('Name of the connector as people see it.'),
  category: z.string().min(1).max(64).describe('For example development, productivity, search.'),
  description: z.string().min(1).max(1024).describe('What an agent can do with it.'),
  auth: z.enum(CONNECTOR_AUTH).describe('What the server behind it asks for.'),
  remote: z
    .object({
      type: z.enum(['streamable-http']).describe('Transport of the MCP server.'),
      url: z
        .string()
        .max(2048)
        .regex(/^https:\/\/[^\s]+$/)
        .describe('Address of the MCP server.'),
      headers: z
        .array(
          z.object({
            name: z.string().min(1).max(128).describe('Name of the HTTP header.'),
            value: z.string().max(1024).describe('Header value; `${NAME}` stands for the secret NAME.'),
          }),
        )
        .max(16)
        .default([])
        .describe('Headers that carry the credential, in the shape of remotes of the MCP registry.'),
    })
    .describe("The MCP server, in the shape of `remotes` of the MCP registry's server.json."),
  secrets: z
    .array(
      z
        .string()
        .max(64)
        .regex(/^[A-Z][A-Z0-9_]*$/),
    )
    .max(16)
    .default([])
    .describe('Names of the keys that Secret `<agent>-secrets` must hold.'),
  homepage: z.string().max(2048).optional().describe('Where the credential is made.'),
});

/** A catalogue entry (spec 2, Connector): the object name is the slug. */
export const Connectors = defineResource({
  kind: 'Connector',
  plural: 'connectors',
  namespaced: false,
  description: 'A catalogue entry: a remote MCP server that agents can be connected to. The object name is its slug.',
  spec: ConnectorSpec,
  columns: [
    { name: 'Category', jsonPath: '.spec.category', type: 'string', description: 'Category in the catalog.' },
    { name: 'Auth', jsonPath: '.spec.auth', type: 'string', description: 'What the server asks for.' },
    AGE_COLUMN,
  ],
  rules: [dnsLabelName('Connector', 63)],
});
export type Connector = Resource<z.output<typeof ConnectorSpec>, unknown>;

import { z } from 'zod';
import { AGE_COLUMN, defineResource, dnsLabelName } from '../define-resource.js';
import type { Resource } from '../meta.js';
import { Conditions, Timestamp } from './common.js';

/** Limits of a template version: a part is an immutable gzip piece. */
export const MAX_TEMPLATE_PART_BYTES = 512 * 1024;
export const MAX_TEMPLATE_BYTES = 8 * 1024 * 1024;
const MAX_PARTS = 32;
/** Published versions of one template that are kept. */
export const MAX_TEMPLATE_VERSIONS = 100;
export const MAX_TEMPLATE_AGENTS = 50;
/** Evals that one template may demand. */
const MAX_REQUIRED_EVALS = 20;
/** Installs of one template that are counted at the same time. */
export const MAX_COUNTING = 64;

/** One stored content: the draft, or a published version. */
export const TemplateContent = z.object({
  content: z
    .string()
    .max(26)
    .describe('Id of the content, new for each change; its parts are named `<template>.<content>.<n>`.'),
  parts: z.int().min(0).max(MAX_PARTS).describe('Number of AgentTemplateParts that hold it.'),
  sha256: z.string().max(64).describe('SHA-256 of the whole content in hex.'),
  agents: z.int().min(0).max(MAX_TEMPLATE_AGENTS).describe('Number of agents in it.'),
});

export type TemplateContent = z.output<typeof TemplateContent>;

export const AgentTemplateSpec = z.object({
  name: z.string().min(1).max(128).describe('Name of the template as people see it.'),
  description: z.string().max(1024).default('').describe('What the template gives.'),
  category: z.string().max(64).default('').describe('Category under which people look for it.'),
  tags: z.array(z.string().max(64)).max(20).default([]).describe('Words by which people find it.'),
  requiredEvals: z
    .array(z.string().min(1).max(128))
    .max(MAX_REQUIRED_EVALS)
    .optional()
    .describe('AgentEvals, as <box>.<name>, that must have passed for what is published.'),
  draft: TemplateContent.describe('The content that can still be edited.'),
  published: z
    .array(
      TemplateContent.extend({
        version: z.int().min(1).describe('Number of the version, from 1.'),
        publishedAt: Timestamp.describe('When it was published.'),
        name: z.string().max(128).describe('Name of the template at that version.'),
        description: z.string().max(1024).describe('Description of the template at that version.'),
        category: z.string().max(64).describe('Category of the template at that version.'),
        tags: z.array(z.string().max(64)).max(20).describe('Tags of the template at that version.'),
      }),
    )
    .max(MAX_TEMPLATE_VERSIONS)
    .default([])
    .describe('Immutable versions, oldest first; the last 100 are kept.'),
  listed: z.boolean().default(false).describe('Whether the latest version is published to other workspaces.'),
  updatedAt: Timestamp.optional().describe('When the draft last changed; creation when absent.'),
});

const CountedAgent = z.object({
  agent: z.string().max(128).describe('The Agent, as namespace/name.'),
  uid: z.string().max(64).describe('UID of that Agent.'),
});
export type CountedAgent = z.output<typeof CountedAgent>;

export const AgentTemplateStatus = z.object({
  conditions: Conditions,
  installs: z.int().min(0).optional().describe('How often it was installed.'),
  counting: z
    .array(CountedAgent)
    .max(MAX_COUNTING)
    .optional()
    .describe('First agents of the installs that were counted last, so that none is counted twice.'),
});

/** A packaged set of agents: a draft and published versions (spec 1.7). */
export const AgentTemplates = defineResource({
  kind: 'AgentTemplate',
  plural: 'agenttemplates',
  shortNames: ['atpl'],
  namespaced: true,
  description: 'A packaged set of agents: an editable draft and immutable published versions.',
  spec: AgentTemplateSpec,
  status: AgentTemplateStatus,
  columns: [
    { name: 'Published', jsonPath: '.spec.listed', type: 'boolean', description: 'Whether other workspaces see it.' },
    {
      name: 'Version',
      jsonPath: '.spec.published[-1:].version',
      type: 'integer',
      description: 'Latest published version.',
    },
    { name: 'Agents', jsonPath: '.spec.draft.agents', type: 'integer', description: 'Number of agents in the draft.' },
    { name: 'Installs', jsonPath: '.status.installs', type: 'integer', description: 'How often it was installed.' },
    AGE_COLUMN,
  ],
  rules: [dnsLabelName('AgentTemplate', 36)],
});
export type AgentTemplate = Resource<z.output<typeof AgentTemplateSpec>, z.output<typeof AgentTemplateStatus>>;

export const AgentTemplatePartSpec = z.object({
  template: z.string().max(36).describe('Name of the AgentTemplate that it belongs to.'),
  content: z.string().max(26).describe('Id of the content that it belongs to.'),
  part: z
    .int()
    .min(0)
    .max(MAX_PARTS - 1)
    .describe('Position of the piece in the content, from 0.'),
  bytes: z.int().min(0).describe('Size of the piece as stored, in bytes.'),
  data: z.string().max(700_000).describe('A piece of the compressed content, base64.'),
});

/** An immutable piece of a template's content, owned by the template, read on demand. */
export const AgentTemplateParts = defineResource({
  kind: 'AgentTemplatePart',
  plural: 'agenttemplateparts',
  namespaced: true,
  inCategory: false,
  description: 'An immutable piece of the content of a template version.',
  spec: AgentTemplatePartSpec,
  columns: [
    { name: 'Template', jsonPath: '.spec.template', type: 'string', description: 'The template that it belongs to.' },
    {
      name: 'Content',
      jsonPath: '.spec.content',
      type: 'string',
      description: 'Id of the content that it is a piece of.',
    },
    { name: 'Bytes', jsonPath: '.spec.bytes', type: 'integer', description: 'Size of the piece as stored.' },
    AGE_COLUMN,
  ],
  rules: [{ rule: 'self.spec == oldSelf.spec', message: 'a part cannot be changed' }],
});
export type AgentTemplatePart = Resource<z.output<typeof AgentTemplatePartSpec>, unknown>;

import { z } from 'zod';
import { AGE_COLUMN, defineResource, dnsLabelName, immutableSpecField } from '../define-resource.js';
import type { Resource } from '../meta.js';
import { Timestamp } from './common.js';

/** Limits of memory: bytes of a note, notes of an agent. */
export const MAX_MEMORY_BYTES = 2048;
export const MAX_MEMORIES = 500;

export const AgentMemorySpec = z.object({
  agent: z.string().min(1).max(36).describe('The Agent of this namespace that remembers. Immutable.'),
  text: z.string().min(1).max(MAX_MEMORY_BYTES).describe('The note, at most 2 KiB.'),
  updatedAt: Timestamp.optional().describe('When the note was last changed; creation when absent.'),
  run: z.string().max(63).optional().describe('The run that wrote it.'),
  untrusted: z.boolean().optional().describe('True when it was written by a run that came from a webhook.'),
});

/** One durable note of an agent. */
export const AgentMemories = defineResource({
  kind: 'AgentMemory',
  plural: 'agentmemories',
  shortNames: ['amem'],
  namespaced: true,
  description: 'One durable note of an agent.',
  spec: AgentMemorySpec,
  columns: [
    { name: 'Agent', jsonPath: '.spec.agent', type: 'string', description: 'The agent that remembers.' },
    { name: 'Text', jsonPath: '.spec.text', type: 'string', description: 'The text of the note.' },
    AGE_COLUMN,
  ],
  rules: [dnsLabelName('AgentMemory', 63), immutableSpecField('agent')],
});
export type AgentMemory = Resource<z.output<typeof AgentMemorySpec>, unknown>;

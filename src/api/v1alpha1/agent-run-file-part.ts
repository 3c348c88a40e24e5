import { z } from 'zod';
import { AGE_COLUMN, defineResource } from '../define-resource.js';
import type { Resource } from '../meta.js';

/** Bounds of files that lie in the cluster: of one file, of all of a run, and of a piece, before base64. */
export const MAX_FILE_BYTES = 1024 * 1024;
export const MAX_RUN_FILE_BYTES = 4 * 1024 * 1024;
export const MAX_FILE_PART_BYTES = 512 * 1024;
/** Pieces of a run: those of all its files, and some that a lost gateway pod left behind. */
export const MAX_FILE_PARTS = 32;

export const AgentRunFilePartSpec = z.object({
  run: z.string().max(63).describe('Name of the AgentRun that published the file.'),
  runUid: z.string().max(64).describe('UID of that AgentRun; a namesake never gets the piece.'),
  position: z
    .int()
    .min(0)
    .max(MAX_FILE_PARTS - 1)
    .describe('Position among the pieces of the run, from 0.'),
  file: z.string().max(64).describe('SHA-256 of the whole file in hex.'),
  index: z
    .int()
    .min(0)
    .max(MAX_FILE_BYTES / MAX_FILE_PART_BYTES - 1)
    .describe('Which piece of the file it is, from 0.'),
  bytes: z.int().min(0).max(MAX_FILE_PART_BYTES).describe('Size of the content in bytes.'),
  data: z
    .string()
    .max(Math.ceil(MAX_FILE_PART_BYTES / 3) * 4)
    .describe('The content of the piece, base64.'),
});

/** A piece of a published file: never changed, named `<run>.f<position>`, owned by the AgentRun, read on demand. */
export const AgentRunFileParts = defineResource({
  kind: 'AgentRunFilePart',
  plural: 'agentrunfileparts',
  namespaced: true,
  inCategory: false,
  description: 'A piece of a file that a run published.',
  spec: AgentRunFilePartSpec,
  columns: [
    { name: 'Run', jsonPath: '.spec.run', type: 'string', description: 'The run that published the file.' },
    { name: 'Position', jsonPath: '.spec.position', type: 'integer', description: 'Position among the pieces.' },
    { name: 'Bytes', jsonPath: '.spec.bytes', type: 'integer', description: 'Size of the content.' },
    AGE_COLUMN,
  ],
  rules: [{ rule: 'self.spec == oldSelf.spec', message: 'a piece of a file cannot be changed' }],
});
export type AgentRunFilePart = Resource<z.output<typeof AgentRunFilePartSpec>, never>;

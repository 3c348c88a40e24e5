import { z } from 'zod';
import { AGE_COLUMN, defineResource } from '../define-resource.js';
import type { Resource } from '../meta.js';

/** Bounds of a transcript: stored and inflated bytes of a chunk, chunks and inflated bytes of a run. */
export const MAX_CHUNK_STORED_BYTES = 128 * 1024;
export const MAX_CHUNK_INFLATED_BYTES = 1024 * 1024;
export const MAX_CHUNKS = 24;
export const MAX_TRANSCRIPT_INFLATED_BYTES = 4 * 1024 * 1024;

export const AgentRunChunkSpec = z.object({
  run: z.string().max(63).describe('Name of the AgentRun whose transcript this is a piece of.'),
  runUid: z.string().max(64).describe('UID of that AgentRun; a namesake never gets the piece.'),
  seq: z
    .int()
    .min(0)
    .max(MAX_CHUNKS - 1)
    .describe('Position in the transcript, from 0.'),
  bytes: z.int().min(0).describe('Size of the content before compression, in bytes.'),
  sha256: z.string().max(64).describe('SHA-256 of the uncompressed content in hex.'),
  data: z.string().max(180_000).describe('JSON lines of events, gzip, base64.'),
});

/**
 * A piece of a transcript: named `<run>.<seq>`, owned by the AgentRun, read on demand. Only the gateway rewrites it, to make room
 * while the run works.
 */
export const AgentRunChunks = defineResource({
  kind: 'AgentRunChunk',
  plural: 'agentrunchunks',
  namespaced: true,
  inCategory: false,
  description: 'A piece of the transcript of a run: steps, tool calls and messages, compressed.',
  spec: AgentRunChunkSpec,
  columns: [
    { name: 'Run', jsonPath: '.spec.run', type: 'string', description: 'The run that it belongs to.' },
    { name: 'Seq', jsonPath: '.spec.seq', type: 'integer', description: 'Position in the transcript.' },
    { name: 'Bytes', jsonPath: '.spec.bytes', type: 'integer', description: 'Size of the content before compression.' },
    AGE_COLUMN,
  ],
  rules: [
    {
      rule: 'self.spec.run == oldSelf.spec.run && self.spec.runUid == oldSelf.spec.runUid && self.spec.seq == oldSelf.spec.seq',
      message: 'a chunk stays with its run, in its place',
    },
  ],
});
export type AgentRunChunk = Resource<z.output<typeof AgentRunChunkSpec>, never>;

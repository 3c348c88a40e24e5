/** Finished runs with transcripts, as the controller hands them to the archive. */
import { API_VERSION } from '../../src/api/define-resource.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import type { ArchiveEntry, ArchivedChunk } from '../../src/archive/types.js';
import type { RunEvent } from '../../src/protocol/run.js';
import { encodeEvents } from '../../src/transcript/codec.js';

export interface RunParts {
  metadata?: Partial<AgentRun['metadata']>;
  spec?: Partial<AgentRun['spec']>;
  status?: Partial<NonNullable<AgentRun['status']>>;
}

/** A run of agent greeter in Box acme-box of Workspace acme, done. */
export function makeFinishedRun(name: string, { metadata, spec, status }: RunParts = {}): AgentRun {
  return {
    apiVersion: API_VERSION,
    kind: 'AgentRun',
    metadata: {
      name,
      namespace: 'bw-acme-box',
      uid: `uid-${name}`,
      resourceVersion: '1000',
      creationTimestamp: '2026-05-01T09:00:00Z',
      ...metadata,
    },
    spec: {
      agent: 'greeter',
      agentUid: 'uid-greeter',
      message: 'hello',
      createdAt: '2026-05-01T09:00:00.123Z',
      ...spec,
    },
    status: {
      phase: 'done',
      reason: 'Completed',
      output: 'Hello!',
      finishedAt: '2026-05-01T09:00:05.000Z',
      usage: { steps: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15, costUsd: '0.000123' },
      usageFinal: true,
      provider: 'boxwright',
      model: 'scripted',
      transcript: { state: 'full', chunks: 0, bytes: 0 },
      ...status,
    },
  };
}

export function makeEntry(run: AgentRun, more: Partial<ArchiveEntry> = {}): ArchiveEntry {
  const agentUid = run.spec.agentUid ?? '';
  return { workspace: 'acme', box: 'acme-box', agentUid, run, sessionTitle: 'hello', chunks: [], ...more };
}

/** One chunk with these events. */
export async function makeChunk(run: AgentRun, seq: number, events: readonly RunEvent[]): Promise<ArchivedChunk> {
  const { bytes, sha256, data } = await encodeEvents(events);
  return { run: run.metadata.name, runUid: run.metadata.uid ?? '', seq, bytes, sha256, data };
}

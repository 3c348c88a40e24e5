/** The list of all kinds: CRDs, docs, samples and tests walk it. */
import type { ResourceDefinition } from '../define-resource.js';
import { AgentRunChunks } from './agent-run-chunk.js';
import { AgentRuns } from './agent-run.js';
import { AgentTriggers } from './agent-trigger.js';
import { Agents } from './agent.js';
import { APIKeys } from './api-key.js';
import { Boxes } from './box.js';
import { Workspaces } from './workspace.js';

export const ALL_KINDS: readonly ResourceDefinition[] = [
  Workspaces,
  APIKeys,
  Boxes,
  Agents,
  AgentTriggers,
  AgentRuns,
  AgentRunChunks,
] as readonly ResourceDefinition[];

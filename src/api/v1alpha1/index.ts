/** The list of all kinds: CRDs, docs, samples and tests walk it. */
import type { ResourceDefinition } from '../define-resource.js';
import { AgentEvals } from './agent-eval.js';
import { AgentMemories } from './agent-memory.js';
import { AgentRunChunks } from './agent-run-chunk.js';
import { AgentRunFileParts } from './agent-run-file-part.js';
import { AgentRuns } from './agent-run.js';
import { AgentSchedules } from './agent-schedule.js';
import { AgentSkills } from './agent-skill.js';
import { AgentTemplateParts, AgentTemplates } from './agent-template.js';
import { AgentTriggers } from './agent-trigger.js';
import { Agents } from './agent.js';
import { APIKeys } from './api-key.js';
import { Boxes } from './box.js';
import { Connectors } from './connector.js';
import { Workspaces } from './workspace.js';

export const ALL_KINDS: readonly ResourceDefinition[] = [
  Workspaces,
  APIKeys,
  Boxes,
  Connectors,
  AgentTemplates,
  AgentTemplateParts,
  Agents,
  AgentTriggers,
  AgentSchedules,
  AgentSkills,
  AgentMemories,
  AgentEvals,
  AgentRuns,
  AgentRunChunks,
  AgentRunFileParts,
] as readonly ResourceDefinition[];

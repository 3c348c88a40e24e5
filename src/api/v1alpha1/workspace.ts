import { z } from 'zod';
import { AGE_COLUMN, defineResource, dnsLabelName } from '../define-resource.js';
import type { Resource } from '../meta.js';
import { BUDGET_RULES, Budgets, Conditions, FoldedTotals, Folding } from './common.js';

export const WorkspaceSpec = z.object({
  displayName: z.string().max(128).optional().describe('Name shown to people; the object name when absent.'),
  budget: Budgets,
  slots: z
    .int()
    .min(0)
    .max(100_000)
    .default(10)
    .describe('Agent slots of the plan. Agents beyond it exist but do not run until a slot frees (spec 3).'),
  paused: z
    .boolean()
    .optional()
    .describe('True: no further run of its Boxes starts; runs are accepted and wait, working ones go on.'),
  expertSandbox: z.boolean().default(false).describe('Whether the template tools may be used (spec 1.7).'),
});

export const WorkspaceStatus = z.object({
  conditions: Conditions,
  namespace: z.string().max(63).optional().describe('Namespace with the API keys of this workspace.'),
  agents: z.int().min(0).optional().describe('Number of Agents in all its Boxes.'),
  activeAgents: z.int().min(0).optional().describe('Agents that hold a slot.'),
  folded: FoldedTotals,
  folding: Folding,
});

/** An account: the plan's agent slots and what its API keys may do. */
export const Workspaces = defineResource({
  kind: 'Workspace',
  plural: 'workspaces',
  shortNames: ['bws'],
  namespaced: false,
  description: 'An account: its agent slots, its Boxes and its API keys.',
  spec: WorkspaceSpec,
  status: WorkspaceStatus,
  columns: [
    { name: 'Agents', jsonPath: '.status.agents', type: 'integer', description: 'Number of Agents in all its Boxes.' },
    { name: 'Active', jsonPath: '.status.activeAgents', type: 'integer', description: 'Agents that hold a slot.' },
    { name: 'Slots', jsonPath: '.spec.slots', type: 'integer', description: 'Agent slots of the plan.' },
    AGE_COLUMN,
  ],
  rules: [dnsLabelName('Workspace', 57), ...BUDGET_RULES],
});
export type Workspace = Resource<z.output<typeof WorkspaceSpec>, z.output<typeof WorkspaceStatus>>;

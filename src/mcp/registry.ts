/**
 * The one list of tools: `tools/list`, docs, golden files and tests all walk it. The order is fixed; the tools of the
 * spec's own table come first, because clients that cut a long list cut its tail.
 */
import type { Tool } from './define-tool.js';
import { createAgentTool } from './tools/agents/create-agent.js';
import { deleteAgentTool } from './tools/agents/delete-agent.js';
import { getAgentTool } from './tools/agents/get-agent.js';
import { listAgentsTool } from './tools/agents/list-agents.js';
import { updateAgentTool } from './tools/agents/update-agent.js';
import { attachConnectorTool } from './tools/connectors/attach-connector.js';
import { detachConnectorTool } from './tools/connectors/detach-connector.js';
import { listAgentConnectorsTool } from './tools/connectors/list-agent-connectors.js';
import { searchConnectorsTool } from './tools/connectors/search-connectors.js';
import { setMcpServersTool } from './tools/connectors/set-mcp-servers.js';
import { listMemoriesTool } from './tools/memory/list-memories.js';
import { listModelsTool } from './tools/models/list-models.js';
import { cancelRunTool } from './tools/runs/cancel-run.js';
import { getRunTool } from './tools/runs/get-run.js';
import { listRunsTool } from './tools/runs/list-runs.js';
import { sendMessageTool } from './tools/runs/send-message.js';
import { deleteScheduleTool } from './tools/schedules/delete-schedule.js';
import { listSchedulesTool } from './tools/schedules/list-schedules.js';
import { runScheduleNowTool } from './tools/schedules/run-schedule-now.js';
import { upsertScheduleTool } from './tools/schedules/upsert-schedule.js';
import { getSessionTool } from './tools/sessions/get-session.js';
import { listSessionsTool } from './tools/sessions/list-sessions.js';
import { deleteSkillTool } from './tools/skills/delete-skill.js';
import { getSkillTool } from './tools/skills/get-skill.js';
import { listSkillsTool } from './tools/skills/list-skills.js';
import { readSkillFileTool } from './tools/skills/read-skill-file.js';
import { upsertSkillTool } from './tools/skills/upsert-skill.js';
import { listSpacesTool } from './tools/spaces/list-spaces.js';
import { addTemplateAgentTool } from './tools/templates/add-template-agent.js';
import { createTemplateTool } from './tools/templates/create-template.js';
import { deleteTemplateTool } from './tools/templates/delete-template.js';
import { getTemplateTool } from './tools/templates/get-template.js';
import { installTemplateTool } from './tools/templates/install-template.js';
import { listTemplatesTool } from './tools/templates/list-templates.js';
import { publishTemplateTool } from './tools/templates/publish-template.js';
import { removeTemplateAgentTool } from './tools/templates/remove-template-agent.js';
import { unpublishTemplateTool } from './tools/templates/unpublish-template.js';
import { updateTemplateAgentTool } from './tools/templates/update-template-agent.js';
import { updateTemplateTool } from './tools/templates/update-template.js';
import { validateTemplateTool } from './tools/templates/validate-template.js';
import { deleteTriggerTool } from './tools/triggers/delete-trigger.js';
import { listTriggersTool } from './tools/triggers/list-triggers.js';
import { rotateTriggerTokenTool } from './tools/triggers/rotate-trigger-token.js';
import { testTriggerTool } from './tools/triggers/test-trigger.js';
import { upsertTriggerTool } from './tools/triggers/upsert-trigger.js';

export const TOOLS: readonly Tool[] = [
  listSpacesTool,
  listAgentsTool,
  getAgentTool,
  createAgentTool,
  updateAgentTool,
  deleteAgentTool,
  sendMessageTool,
  listRunsTool,
  getRunTool,
  listTriggersTool,
  upsertTriggerTool,
  testTriggerTool,
  rotateTriggerTokenTool,
  deleteTriggerTool,
  cancelRunTool,
  listSessionsTool,
  getSessionTool,
  listMemoriesTool,
  listSkillsTool,
  getSkillTool,
  readSkillFileTool,
  upsertSkillTool,
  deleteSkillTool,
  listSchedulesTool,
  upsertScheduleTool,
  runScheduleNowTool,
  deleteScheduleTool,
  searchConnectorsTool,
  listAgentConnectorsTool,
  attachConnectorTool,
  detachConnectorTool,
  setMcpServersTool,
  listModelsTool,
  listTemplatesTool,
  getTemplateTool,
  createTemplateTool,
  updateTemplateTool,
  deleteTemplateTool,
  addTemplateAgentTool,
  updateTemplateAgentTool,
  removeTemplateAgentTool,
  validateTemplateTool,
  publishTemplateTool,
  unpublishTemplateTool,
  installTemplateTool,
];

export interface Registry {
  readonly tools: readonly Tool[];
  /** Result of `tools/list`, encoded once: the same bytes for every key and replica. */
  readonly list: Buffer;
  get(name: string): Tool | undefined;
}

/** Throws when two tools have one name. */
export function createRegistry(tools: readonly Tool[] = TOOLS): Registry {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  if (byName.size !== tools.length) throw new Error('two tools have the same name');
  const list = Buffer.from(JSON.stringify({ tools: tools.map(({ definition }) => definition) }));
  return { tools, list, get: (name) => byName.get(name) };
}

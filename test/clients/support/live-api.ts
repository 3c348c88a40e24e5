/**
 * The real API process on a real API server for one test file: a workspace with a key, a Box, an agent and one of each
 * of its things, all with the status that the controllers would write. Clients talk to it through a loopback proxy.
 */
import { hashOfApiKey } from '../../../src/api/api-key-validity.js';
import { API_VERSION } from '../../../src/api/define-resource.js';
import type { KubeObject, ResourceType } from '../../../src/api/meta.js';
import { AgentMemories } from '../../../src/api/v1alpha1/agent-memory.js';
import { AgentRuns } from '../../../src/api/v1alpha1/agent-run.js';
import { AgentScheduleSpec, AgentSchedules } from '../../../src/api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../../../src/api/v1alpha1/agent-skill.js';
import { AgentTriggerSpec, AgentTriggers } from '../../../src/api/v1alpha1/agent-trigger.js';
import { AgentSpec, Agents } from '../../../src/api/v1alpha1/agent.js';
import { APIKeySpec, APIKeys } from '../../../src/api/v1alpha1/api-key.js';
import { BoxSpec, Boxes } from '../../../src/api/v1alpha1/box.js';
import { Connectors } from '../../../src/api/v1alpha1/connector.js';
import { WorkspaceSpec, Workspaces } from '../../../src/api/v1alpha1/workspace.js';
import { SHIPPED_CONNECTORS } from '../../../src/connectors/catalog.js';
import { Namespaces } from '../../../src/kube/core-types.js';
import { isAlreadyExists } from '../../../src/kube/errors.js';
import type { KubeApi } from '../../../src/kube/types.js';
import { packedFiles } from '../../builders/skill-files.js';
import { createKeyring, runReadyApi } from '../../builders/api-process.js';
import { startApiServer } from '../../builders/api-server.js';
import { writeStatus } from '../../builders/write-status.js';

/** Slug of everything that the agent has. */
export const SLUG = 'demo';
export const SKILL_FILE = 'notes.txt';

export interface LiveApi {
  /** The MCP endpoint. */
  url: string;
  key: string;
  agentId: string;
  spaceId: string;
  /** A run that is done. */
  runId: string;
  sessionId: string;
  templateId: string;
  stop(): Promise<void>;
}

/** Names of one test file: the API server is shared by all. */
interface Names {
  key: string;
  /** Workspace, Box, and prefix of the release namespace. */
  name: string;
}

/** A key that no workspace has. */
export const WRONG_KEY = `bw_${'w'.repeat(43)}`;

export async function startLiveApi(): Promise<LiveApi> {
  const cluster = await startApiServer();
  await cluster.applyCrds();
  const unique = Math.random().toString(36).slice(2, 10).padEnd(8, '0');
  const names = { key: `bw_${unique}${'k'.repeat(35)}`, name: `clients-${unique}` };
  await seed(cluster.api, names);
  const process = await runReadyApi(cluster.kubeconfig, `${names.name}-system`);
  const url = `${process.url}/api/mcp/account`;
  const agentId = `${names.name}.greeter`;
  return {
    url,
    key: names.key,
    agentId,
    spaceId: names.name,
    runId: 'greeter-1',
    sessionId: 's-greeter-1',
    templateId: await createTemplate(url, names.key, agentId),
    stop: async () => {
      await process.stop();
      await cluster.stop();
    },
  };
}

/** A template has parts that only the API process writes. */
async function createTemplate(url: string, key: string, agentId: string): Promise<string> {
  const params = { name: 'create_template', arguments: { name: 'Greeting', agentIds: [agentId] } };
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  const { result } = (await response.json()) as { result: { structuredContent?: { templateId: string } } };
  if (result.structuredContent === undefined) throw new Error(`no template: ${JSON.stringify(result)}`);
  return result.structuredContent.templateId;
}

type Body = Omit<KubeObject, 'apiVersion' | 'kind' | 'metadata'> & { spec?: unknown; status?: unknown };

/** Creates an object and then, like its controller, its status. */
async function put(
  api: KubeApi,
  type: ResourceType,
  place: { name: string; namespace?: string },
  { status, ...body }: Body,
): Promise<void> {
  const created = await api.create(type, { apiVersion: API_VERSION, kind: type.kind, metadata: place, ...body });
  if (status !== undefined) await writeStatus(api, type, { ...created, status } as KubeObject);
}

async function seed(api: KubeApi, { key, name }: Names): Promise<void> {
  await put(api, Workspaces, { name }, { spec: WorkspaceSpec.parse({ expertSandbox: true }) });
  await put(api, Boxes, { name }, { spec: BoxSpec.parse({ workspace: name, engine: 'scripted' }) });
  for (const namespace of [`bw-ws-${name}`, `bw-${name}`, `${name}-system`]) {
    await api.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  }
  const keyStatus = { hash: hashOfApiKey(key), prefix: key.slice(0, 11) };
  await put(
    api,
    APIKeys,
    { namespace: `bw-ws-${name}`, name: 'key' },
    { spec: APIKeySpec.parse({}), status: keyStatus },
  );
  await createKeyring({ api }, `${name}-system`);
  await seedConnectors(api);
  await seedAgent(api, `bw-${name}`);
}

/** The catalogue is of the whole cluster: another test file may have made it. */
async function seedConnectors(api: KubeApi): Promise<void> {
  for (const { slug, spec } of SHIPPED_CONNECTORS) {
    try {
      await put(api, Connectors, { name: slug }, { spec });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }
}

async function seedAgent(api: KubeApi, namespace: string): Promise<void> {
  const agent = 'greeter';
  await put(
    api,
    Agents,
    { namespace, name: agent },
    { spec: AgentSpec.parse({ name: 'Greeter' }), status: { active: true } },
  );
  const place = { namespace, name: `${agent}.${SLUG}` };
  const common = { agent, name: SLUG, keyId: 'k1' };
  await put(api, AgentTriggers, place, {
    spec: AgentTriggerSpec.parse({ ...common, body: 'do it', tokenId: 'a'.repeat(32) }),
  });
  await put(api, AgentSchedules, place, {
    spec: AgentScheduleSpec.parse({ ...common, body: 'write the news', cron: '0 9 * * *' }),
  });
  await put(api, AgentSkills, place, {
    spec: {
      agent,
      name: SLUG,
      description: 'How to greet.',
      body: '# How',
      ...packedFiles(new Map([[SKILL_FILE, Buffer.from('Grüße')]])),
    },
  });
  await put(api, AgentMemories, { namespace, name: `${agent}-1` }, { spec: { agent, text: 'Ada likes tea.' } });
  await put(
    api,
    AgentRuns,
    { namespace, name: `${agent}-1` },
    { spec: { agent, message: 'Good morning 👋' }, status: { phase: 'done', output: 'Hello' } },
  );
}

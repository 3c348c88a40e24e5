/** The whole API process on a real API server, with a workspace, a Box, a key and an agent `greeter` that it works on. */
import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashOfApiKey } from '../../src/api/api-key-validity.js';
import { formatKeyring } from '../../src/api/keyring.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { APIKeySpec, APIKeys } from '../../src/api/v1alpha1/api-key.js';
import { BoxSpec, Boxes } from '../../src/api/v1alpha1/box.js';
import { Connectors } from '../../src/api/v1alpha1/connector.js';
import { WorkspaceSpec, Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { SHIPPED_CONNECTORS } from '../../src/connectors/catalog.js';
import { desiredConnector } from '../../src/controllers/connector-catalog/controller.js';
import { Namespaces, Secrets } from '../../src/kube/core-types.js';
import { runApi } from '../../src/processes/api.js';
import { eventually } from './api-server.js';
import type { TestApiServer } from './api-server.js';
import type { FaultProxy } from './fault-proxy.js';
import { freePort } from './free-port.js';
import { writeStatus } from './write-status.js';

const GROUP = { apiVersion: 'boxwright.dev/v1alpha1' };

export interface ToolResult {
  isError: boolean;
  payload: Record<string, unknown>;
}

export interface ApiProcess {
  /** Origin of webhook URLs and the MCP endpoint. */
  url: string;
  /** One tools/call over HTTP; `args` may be JSON text. Rejects when the answer is no tool result. */
  call(tool: string, args?: object | string): Promise<ToolResult>;
  /** Tells the process to stop; resolves with its exit code. */
  stop(): Promise<number>;
}

/** Workspace, Box, key and agent are named after `name`; `proxy` stands between the process and the API server. */
export async function startApiProcess(cluster: TestApiServer, name: string, proxy?: FaultProxy): Promise<ApiProcess> {
  const key = `bw_${name.padEnd(43, 'x')}`;
  await seed(cluster, name, key);
  const folder = await mkdtemp(join(tmpdir(), 'boxwright-api-'));
  const kubeconfig = proxy === undefined ? cluster.kubeconfig : join(folder, 'kubeconfig');
  if (proxy !== undefined) await writeFile(kubeconfig, kubeconfigOf(proxy));
  const running = await runReadyApi(kubeconfig, `${name}-system`);
  const { url } = running;
  return {
    url,
    call: (tool, args = {}) => callTool(url, key, tool, args),
    stop: async () => {
      const code = await running.stop();
      await rm(folder, { recursive: true, force: true });
      return code;
    },
  };
}

/** The process itself, once it is ready: its origin, and how it is told to stop. */
export async function runReadyApi(
  kubeconfig: string,
  releaseNamespace: string,
): Promise<{ url: string; stop(): Promise<number> }> {
  const [port, internalPort] = [await freePort(), await freePort()];
  const exitCode = runApi({
    KUBECONFIG: kubeconfig,
    BOXWRIGHT_PUBLIC_URL: 'https://agents.example.com',
    BOXWRIGHT_RELEASE_NAMESPACE: releaseNamespace,
    BOXWRIGHT_POD_UID: 'uid-of-this-pod',
    BOXWRIGHT_POD_NAME: 'api-0',
    BOXWRIGHT_API_PORT: String(port),
    BOXWRIGHT_INTERNAL_PORT: String(internalPort),
    BOXWRIGHT_LOG_LEVEL: 'error',
  });
  const ready = () =>
    fetch(`http://127.0.0.1:${internalPort}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await Promise.race([eventually(ready, 'the API process is not ready'), exitCode]);
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      process.emit('SIGTERM');
      return await exitCode;
    },
  };
}

/** The keyring that trigger URLs are made with, as the controller would make it. */
export async function createKeyring({ api }: Pick<TestApiServer, 'api'>, namespace: string): Promise<void> {
  const keys = formatKeyring({ current: 'k1', keys: new Map([['k1', createSecretKey(Buffer.alloc(32, 5))]]) });
  await api.create(Secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace, name: 'boxwright-keyring' },
    data: { 'keys.json': Buffer.from(keys).toString('base64') },
  });
}

async function callTool(url: string, key: string, tool: string, args: object | string): Promise<ToolResult> {
  const text = typeof args === 'string' ? args : JSON.stringify(args);
  const response = await fetch(`${url}/api/mcp/account`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: `{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"${tool}","arguments":${text}}}`,
  });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${tool} answered ${response.status}: ${body}`);
  const { result } = JSON.parse(body) as { result?: { isError?: boolean; content: { text: string }[] } };
  if (result === undefined) throw new Error(`${tool} answered with a JSON-RPC error: ${body}`);
  const payload = JSON.parse(result.content[0]?.text ?? '') as Record<string, unknown>;
  return { isError: result.isError === true, payload };
}

function kubeconfigOf(proxy: FaultProxy): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'proxy', cluster: { server: proxy.connection.server } }],
    users: [{ name: 'proxy', user: {} }],
    contexts: [{ name: 'proxy', context: { cluster: 'proxy', user: 'proxy' } }],
    'current-context': 'proxy',
  });
}

async function seed({ api }: TestApiServer, name: string, secret: string): Promise<void> {
  const workspace = WorkspaceSpec.parse({ expertSandbox: true });
  await api.create(Workspaces, { ...GROUP, kind: 'Workspace', metadata: { name }, spec: workspace });
  const box = BoxSpec.parse({ workspace: name, engine: 'scripted' });
  await api.create(Boxes, { ...GROUP, kind: 'Box', metadata: { name }, spec: box });
  for (const namespace of [`bw-ws-${name}`, `bw-${name}`, `${name}-system`]) {
    await api.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  }
  const metadata = { namespace: `bw-ws-${name}`, name: 'key' };
  const key = await api.create(APIKeys, { ...GROUP, kind: 'APIKey', metadata, spec: APIKeySpec.parse({}) });
  await writeStatus(api, APIKeys, { ...key, status: { hash: hashOfApiKey(secret), prefix: secret.slice(0, 11) } });
  const agent = await api.create(Agents, {
    ...GROUP,
    kind: 'Agent',
    metadata: { namespace: `bw-${name}`, name: 'greeter' },
    spec: AgentSpec.parse({ name: 'Greeter', soul: 'I am @greeter.' }),
  });
  await writeStatus(api, Agents, { ...agent, status: { active: true } });
  // The API server takes every shipped connector as it is.
  for (const shipped of SHIPPED_CONNECTORS) await api.create(Connectors, desiredConnector(shipped));
  await createKeyring({ api }, `${name}-system`);
}

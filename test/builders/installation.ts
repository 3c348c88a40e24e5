/**
 * The three processes of the product, each as a process of its own, on a real API server that belongs to the test; if
 * wanted each behind a proxy that counts its requests and can do harm. There is no Kubernetes behind the API server:
 * test/builders/fake-node.ts plays Job controller, kubelet and runner.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { isTrue } from '../../src/api/conditions.js';
import { APIKeys } from '../../src/api/v1alpha1/api-key.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { Pods, Secrets } from '../../src/kube/core-types.js';
import { eventually, startApiServer } from './api-server.js';
import type { TestApiServer } from './api-server.js';
import { createRelease } from './controller-replica.js';
import { FaultProxy } from './fault-proxy.js';
import { freePort } from './free-port.js';
import { createObject, objectWhen } from './objects.js';
import { ProductProcess, bundleProduct } from './product-process.js';
import type { Bundle } from './product-process.js';
import { writeStatus } from './write-status.js';

export const RELEASE = 'boxwright-system';
export const WORKSPACE = 'acme';
const GATEWAY_LABELS = { 'app.kubernetes.io/name': 'boxwright', 'app.kubernetes.io/component': 'gateway' };

export type ProcessName = 'api' | 'gateway' | 'controller';

export interface InstallationOptions {
  /** More `BOXWRIGHT_…` variables of a process. */
  env?: Partial<Record<ProcessName, Record<string, string>>>;
  /** Each process reaches the API server through a FaultProxy of its own. */
  proxied?: boolean;
}

export interface BoxOptions {
  name: string;
  agents: readonly string[];
  spec?: object;
}

export class Installation {
  readonly #apiPort: number;
  readonly #bundle: Bundle;
  readonly #folder: string;
  #apiKey = '';

  private constructor(
    readonly server: TestApiServer,
    private readonly started: Partial<Record<ProcessName, FaultProxy>>,
    readonly processes: Record<ProcessName, ProductProcess>,
    readonly gatewayPort: number,
    own: { apiPort: number; bundle: Bundle; folder: string },
  ) {
    this.#apiPort = own.apiPort;
    this.#bundle = own.bundle;
    this.#folder = own.folder;
  }

  /** Resolves when all three are ready and there is a Workspace with a key. */
  static async start(options: InstallationOptions = {}): Promise<Installation> {
    const [server, bundle] = await Promise.all([startApiServer({ own: true }), bundleProduct()]);
    const folder = await mkdtemp(join(tmpdir(), 'boxwright-installation-'));
    await server.applyCrds();
    await createRelease(server, RELEASE);
    const [apiPort, gatewayPort] = [await freePort(), await freePort()];
    const podUid = await createGatewayPod(server);
    const common = { BOXWRIGHT_RELEASE_NAMESPACE: RELEASE };
    const env: Record<ProcessName, Record<string, string>> = {
      controller: {
        ...common,
        BOXWRIGHT_POD_NAME: 'controller-0',
        BOXWRIGHT_RUNNER_IMAGE: 'boxwright-runner:test',
        BOXWRIGHT_TOOLS_IMAGE: 'boxwright-tools:test',
        // There is no second replica, and nobody who would start this one again when the machine is very busy.
        BOXWRIGHT_LEASE_SECONDS: '120',
      },
      gateway: {
        ...common,
        BOXWRIGHT_POD_NAME: 'gateway-0',
        BOXWRIGHT_POD_UID: podUid,
        BOXWRIGHT_POD_IP: '127.0.0.1',
        BOXWRIGHT_PORT: String(gatewayPort),
      },
      api: {
        ...common,
        BOXWRIGHT_POD_NAME: 'api-0',
        BOXWRIGHT_POD_UID: 'api-0',
        BOXWRIGHT_PUBLIC_URL: `http://127.0.0.1:${apiPort}`,
        BOXWRIGHT_API_PORT: String(apiPort),
      },
    };
    const proxies: Partial<Record<ProcessName, FaultProxy>> = {};
    const processes = {} as Record<ProcessName, ProductProcess>;
    for (const name of ['controller', 'gateway', 'api'] as const) {
      let { kubeconfig } = server;
      if (options.proxied === true) {
        const proxy = await FaultProxy.start(server.connection);
        proxies[name] = proxy;
        kubeconfig = join(folder, `${name}.kubeconfig`);
        await writeFile(kubeconfig, kubeconfigOf(proxy.connection.server));
      }
      processes[name] = new ProductProcess({
        bundle,
        name,
        kubeconfig,
        internalPort: await freePort(),
        env: { ...env[name], ...options.env?.[name] },
      });
    }
    const installation = new Installation(server, proxies, processes, gatewayPort, { apiPort, bundle, folder });
    await Promise.all(Object.values(processes).map((process) => process.ready()));
    await installation.#createWorkspace();
    return installation;
  }

  /** The proxy before a process of a proxied installation. */
  proxy(name: ProcessName): FaultProxy {
    const proxy = this.started[name];
    if (proxy === undefined) throw new Error('the installation is not proxied');
    return proxy;
  }

  /** What the processes logged at level error. */
  get errors(): string[] {
    return Object.values(this.processes).flatMap(({ errors }) => errors);
  }

  /** Nothing restarts a process here, so nothing more can be expected of a test in which one ended. */
  expectRunning(): void {
    const ended = Object.entries(this.processes).filter(([, process]) => !process.isRunning);
    if (ended.length === 0) return;
    throw new Error(`${ended.map(([name]) => name).join(', ')} ended: ${this.errors.join('\n')}`);
  }

  /** Creates a Box and its agents and waits until runs can start there. */
  async createBox({ name, agents, spec = {} }: BoxOptions): Promise<void> {
    const egress = { requireEnforcement: false };
    const box = { workspace: WORKSPACE, engine: 'scripted', egress, ...spec };
    await this.create(Boxes, { name }, box);
    await this.waitFor(Boxes, { name }, ({ status }) => isTrue(status?.conditions, 'Ready'));
    for (const agent of agents) {
      const ref = { namespace: `bw-${name}`, name: agent };
      await this.create(Agents, ref, { name: agent, handle: `${name}-${agent}` });
      await this.waitFor(Agents, ref, ({ status }) => status?.active === true);
    }
  }

  /** Creates a trigger; its URL. */
  async createTrigger(agentId: string, name: string): Promise<string> {
    return (await this.tool<{ url: string }>('upsert_trigger', { agentId, name, body: '/say done' })).url;
  }

  /** The POST of a tool call. */
  toolRequest(name: string, args: object): { url: string; headers: Record<string, string>; body: string } {
    return {
      url: `http://127.0.0.1:${this.#apiPort}/api/mcp/account`,
      headers: { authorization: `Bearer ${this.#apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
    };
  }

  /** A tool call that must succeed. */
  async tool<T>(name: string, args: object): Promise<T> {
    const { url, headers, body } = this.toolRequest(name, args);
    const response = await fetch(url, { method: 'POST', headers, body });
    const { result } = (await response.json()) as { result: { isError?: boolean; structuredContent: T } };
    if (result.isError === true) throw new Error(`${name}: ${JSON.stringify(result)}`);
    return result.structuredContent;
  }

  /** How often all triggers of an agent fired, as list_triggers says. */
  async fireCount(agentId: string): Promise<number> {
    const { triggers } = await this.tool<{ triggers: { fireCount: number }[] }>('list_triggers', { agentId });
    return triggers.reduce((sum, { fireCount }) => sum + fireCount, 0);
  }

  async create<T extends KubeObject>(
    type: ResourceType<T>,
    metadata: { name: string; namespace?: string },
    spec: object,
  ): Promise<T> {
    return await createObject(this.server.api, type, metadata, spec);
  }

  async waitFor<T extends KubeObject>(
    type: ResourceType<T>,
    ref: { name: string; namespace?: string },
    check: (object: T) => boolean,
  ): Promise<T> {
    return await objectWhen(this.server.api, type, ref, check, this.errors);
  }

  /** Every process has to end with 0. */
  async stop(): Promise<void> {
    const codes = await Promise.all(Object.values(this.processes).map((process) => process.stop()));
    for (const proxy of Object.values(this.started)) await proxy.stop();
    await this.server.stop();
    await this.#bundle.remove();
    await rm(this.#folder, { recursive: true, force: true });
    if (codes.some((code) => code !== 0)) throw new Error(`exit codes ${codes.join(', ')}: ${this.errors.join('\n')}`);
  }

  async #createWorkspace(): Promise<void> {
    const namespace = `bw-ws-${WORKSPACE}`;
    await this.create(Workspaces, { name: WORKSPACE }, { slots: 100, expertSandbox: true });
    await this.waitFor(Workspaces, { name: WORKSPACE }, ({ status }) => isTrue(status?.conditions, 'Ready'));
    await this.create(APIKeys, { namespace, name: 'key' }, {});
    await this.waitFor(APIKeys, { namespace, name: 'key' }, ({ status }) => status?.hash !== undefined);
    const secret = await this.server.api.get(Secrets, { namespace, name: 'key' });
    this.#apiKey = Buffer.from(secret.data?.['key'] ?? '', 'base64').toString('utf8');
    await eventually(
      () =>
        this.tool('list_spaces', {}).then(
          () => true,
          () => false,
        ),
      'the key does not work',
    );
  }
}

/** The pod that the gateway says it is; it has to be ready, or runs that it serves would be taken over. */
async function createGatewayPod(server: TestApiServer): Promise<string> {
  const pod = await server.api.create(Pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'gateway-0', namespace: RELEASE, labels: GATEWAY_LABELS },
    spec: { automountServiceAccountToken: false, containers: [{ name: 'gateway', image: 'none' }] },
  });
  const status = { phase: 'Running' as const, conditions: [{ type: 'Ready', status: 'True' }] };
  await writeStatus(server.api, Pods, { ...pod, status });
  return pod.metadata.uid ?? '';
}

/** Without a user: the proxy brings its own certificate. */
function kubeconfigOf(server: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'proxy',
    contexts: [{ name: 'proxy', context: { cluster: 'proxy', user: '' } }],
    clusters: [{ name: 'proxy', cluster: { server } }],
    users: [],
  });
}

/** A Workspace with one Box, one key and agents of its own for a test file. */
import { conditionOf } from './conditions.js';
import { apply, eventually, getObject, kubectlOk } from './install.js';

export interface Tenant {
  workspace: string;
  box: string;
  namespace: string;
  apiKey: string;
  agentId(agent: string): string;
  /** Creates or changes an Agent and waits until the controller has seen it. */
  agent(name: string, spec?: object): Promise<void>;
  /** Asks for its removal; that everything of it goes is looked at once, after all tests (global-teardown.mjs). */
  remove(): Promise<void>;
  /** Removes it and waits until nothing is left. */
  removed(): Promise<void>;
}

export interface TenantOptions {
  slots?: number;
  box?: object;
}

/** The test cluster may enforce no network policies; only test/e2e/network.test.ts is about that. */
const BOX = { engine: 'scripted', egress: { requireEnforcement: false } };

interface Seen {
  metadata: { generation: number };
  status?: { active?: boolean; observedGeneration?: number };
}

async function isReady(kind: string, name: string, namespace?: string): Promise<boolean> {
  return (await conditionOf('Ready', kind, name, namespace))?.status === 'True';
}

/** Creates the tenant and waits until it is ready. */
export async function createTenant(name: string, options: TenantOptions = {}): Promise<Tenant> {
  const api = { apiVersion: 'boxwright.dev/v1alpha1' };
  const namespace = `bw-${name}`;
  const keyNamespace = `bw-ws-${name}`;
  await apply(
    { ...api, kind: 'Workspace', metadata: { name }, spec: { slots: options.slots ?? 20 } },
    { ...api, kind: 'Box', metadata: { name }, spec: { ...BOX, workspace: name, ...options.box } },
  );
  await eventually(`Box ${name} is Ready`, () => isReady('box', name));
  await eventually(`namespace ${keyNamespace} is there`, () => getObject('namespace', keyNamespace));
  await apply({ ...api, kind: 'APIKey', metadata: { name: 'test', namespace: keyNamespace }, spec: {} });
  await eventually('the API key is Ready', () => isReady('apikey', 'test', keyNamespace));
  const encoded = await kubectlOk(['-n', keyNamespace, 'get', 'secret', 'test', '-o', 'jsonpath={.data.key}']);
  const remove = async () => {
    await kubectlOk(['delete', 'workspace', name, '--ignore-not-found', '--wait=false']);
  };
  return {
    workspace: name,
    box: name,
    namespace,
    apiKey: Buffer.from(encoded, 'base64').toString(),
    agentId: (agent) => `${name}.${agent}`,
    agent: async (agent, spec = {}) => {
      await apply({ ...api, kind: 'Agent', metadata: { name: agent, namespace }, spec: { name: agent, ...spec } });
      await eventually(`Agent ${agent} was seen by the controller`, async () => {
        const object = await getObject<Seen>('agent', agent, namespace);
        return object?.status?.active !== undefined && object.status.observedGeneration === object.metadata.generation;
      });
    },
    remove,
    removed: async () => {
      await remove();
      await eventually(`Workspace ${name} and its namespaces are gone`, async () => {
        const left = await Promise.all([
          getObject('workspace', name),
          getObject('box', name),
          getObject('namespace', namespace),
          getObject('namespace', keyNamespace),
        ]);
        return left.every((object) => object === undefined);
      });
    },
  };
}

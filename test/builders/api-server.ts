/**
 * A real Kubernetes API server for integration tests: etcd and kube-apiserver, no nodes, no controllers. One server
 * serves a whole Jest run when test/integration/global-setup.mjs has started it (BOXWRIGHT_TEST_KUBECONFIG); so each
 * test file works in namespaces of its own.
 */
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { createKubeApi } from '../../src/kube/client.js';
import { Namespaces } from '../../src/kube/core-types.js';
import { isAlreadyExists, isNotFound } from '../../src/kube/errors.js';
import { loadConnection } from '../../src/kube/kube-config.js';
import type { ClusterConnection } from '../../src/kube/kube-config.js';
import { createTransport } from '../../src/kube/transport.js';
import type { KubeTransport } from '../../src/kube/transport.js';
import type { KubeApi } from '../../src/kube/types.js';
import { systemClock } from '../../src/runtime/clock.js';
import { spawnApiServer } from './spawn-api-server.mjs';

const REPOSITORY = join(dirname(fileURLToPath(import.meta.url)), '../..');
/** Less than the bound of a test, so that it can say what it waited for. */
const DEFAULT_BOUND_MS = 120_000;

export interface TestApiServer {
  /** Path of a kubeconfig of an administrator (system:masters). */
  kubeconfig: string;
  connection: ClusterConnection;
  transport: KubeTransport;
  api: KubeApi;
  /** Creates the CRDs of /crds and waits until they are served; those that are there stay as they are. */
  applyCrds(): Promise<void>;
  /** Creates a namespace with a name that nobody else uses. */
  createNamespace(prefix?: string): Promise<string>;
  stop(): Promise<void>;
}

/**
 * Uses the server of BOXWRIGHT_TEST_KUBECONFIG, else starts one that ends with stop() or with this process. A test that
 * runs controllers asks for an `own` server: they would work on the objects of other test files.
 */
export async function startApiServer(options: { own?: boolean } = {}): Promise<TestApiServer> {
  const shared = options.own === true ? undefined : process.env['BOXWRIGHT_TEST_KUBECONFIG'];
  const { kubeconfig, stop } = shared === undefined ? await spawnApiServer() : { kubeconfig: shared };
  const connection = await loadConnection({ clock: systemClock, kubeconfig });
  const transport = createTransport(connection, { clock: systemClock, userAgent: 'boxwright-test' });
  const api = createKubeApi(transport);
  return {
    kubeconfig,
    connection,
    transport,
    api,
    applyCrds: () => applyCrds(api),
    createNamespace: (prefix = 'test') => createNamespace(api, prefix),
    stop: async () => {
      await transport.close();
      await stop?.();
    },
  };
}

interface CustomResourceDefinition extends KubeObject {
  spec: {
    group: string;
    names: { kind: string; plural: string };
    versions: { name: string }[];
    scope: 'Namespaced' | 'Cluster';
  };
}

const CustomResourceDefinitions: ResourceType<CustomResourceDefinition> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
};

async function applyCrds(api: KubeApi): Promise<void> {
  const folder = join(REPOSITORY, 'crds');
  const files = (await readdir(folder)).filter((file) => file.endsWith('.yaml'));
  if (files.length === 0) throw new Error('there are no CRDs in /crds: run make generate');
  const crds = (await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))).flatMap((text) =>
    parseAllDocuments(text).map((document) => document.toJS() as CustomResourceDefinition | null),
  );
  await Promise.all(crds.filter((crd) => crd !== null).map((crd) => applyCrd(api, crd)));
}

async function applyCrd(api: KubeApi, crd: CustomResourceDefinition): Promise<void> {
  try {
    await api.create(CustomResourceDefinitions, crd);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
  const { group, names, versions, scope } = crd.spec;
  const type: ResourceType = {
    group,
    version: versions[0]?.name ?? '',
    kind: names.kind,
    plural: names.plural,
    namespaced: scope === 'Namespaced',
  };
  // The condition Established comes a moment before the server really serves the kind.
  await eventually(() => isServed(api, type), `${crd.metadata.name} is not served`);
}

async function isServed(api: KubeApi, type: ResourceType): Promise<boolean> {
  try {
    await api.list(type);
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

async function createNamespace(api: KubeApi, prefix: string): Promise<string> {
  const name = `${prefix}-${Math.random().toString(36).slice(2, 10)}`;
  await api.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  return name;
}

/** Polls until the check gives true; fails with `message` at the bound. For what no watch of ours tells. */
export async function eventually(
  check: () => Promise<boolean> | boolean,
  message: string,
  boundMs = DEFAULT_BOUND_MS,
): Promise<void> {
  const end = Date.now() + boundMs;
  while (!(await check())) {
    if (Date.now() > end) throw new Error(`gave up after ${boundMs} ms: ${message}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

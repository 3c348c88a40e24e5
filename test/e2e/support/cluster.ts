/**
 * The cluster as the tests read it: the product's own client on the kubeconfig of `make up`, and one watch of each kind
 * that is read, which says when it is worth to look again.
 */
import type { KubeObject, ResourceType } from '../../../src/api/meta.js';
import { ALL_KINDS } from '../../../src/api/v1alpha1/index.js';
import { createKubeApi } from '../../../src/kube/client.js';
import {
  Jobs,
  Leases,
  Namespaces,
  PersistentVolumeClaims,
  Pods,
  ResourceQuotas,
  Services,
} from '../../../src/kube/core-types.js';
import { isNotFound } from '../../../src/kube/errors.js';
import { createInformer } from '../../../src/kube/informer.js';
import { loadConnection } from '../../../src/kube/kube-config.js';
import { createTransport } from '../../../src/kube/transport.js';
import type { KubeTransport } from '../../../src/kube/transport.js';
import type { Informer, KubeApi, ObjectRef } from '../../../src/kube/types.js';
import { createLogger } from '../../../src/observability/logger.js';
import { systemClock } from '../../../src/runtime/clock.js';

const Deployments: ResourceType = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
};

/** By the word that kubectl takes for one object. */
const KINDS = new Map<string, ResourceType>([
  ...[...ALL_KINDS, Jobs, Leases, Namespaces, Pods, ResourceQuotas, Services, Deployments].map(
    (type) => [type.kind.toLowerCase(), type] as const,
  ),
  ['pvc', PersistentVolumeClaims],
]);

/** What no watch tells, such as an answer over MCP, is looked at again after this time. */
const LOOK_AGAIN_MS = 500;
/** Changes often come together. */
const PAUSE_MS = 25;

/** One process of tests on the cluster. */
class Cluster {
  readonly #api: KubeApi;
  readonly #watches = new Map<string, Informer<unknown>>();
  #wake: () => void = () => undefined;
  #change = this.#nextChange();

  constructor(readonly transport: KubeTransport) {
    this.#api = createKubeApi(transport);
  }

  async read(type: ResourceType, ref: ObjectRef): Promise<KubeObject | undefined> {
    this.#watch(type);
    try {
      return await this.#api.get(type, ref);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Resolves at the next change of something that is watched, or after a short while. */
  async changeAfter(looked: Promise<void>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const later = new Promise<void>((resolve) => (timer = setTimeout(resolve, LOOK_AGAIN_MS)));
    await Promise.race([looked, later]);
    clearTimeout(timer);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }

  /** Taken before a look, so that no change between the look and the waiting is missed. */
  get change(): Promise<void> {
    return this.#change;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#watches.values()].map((watch) => watch.stop()));
    await this.transport.close();
  }

  #watch(type: ResourceType): void {
    if (this.#watches.has(type.plural)) return;
    const project = ({ metadata }: KubeObject) => metadata.resourceVersion;
    const log = createLogger('e2e', 'fatal');
    const watch = createInformer(this.transport, { type, project }, { clock: systemClock, log });
    watch.onChange(() => this.#wake());
    this.#watches.set(type.plural, watch);
    watch.start();
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#change = this.#nextChange();
        resolve();
      };
    });
  }
}

let opened: Promise<Cluster> | undefined;

async function open(kubeconfig: string): Promise<Cluster> {
  const connection = await loadConnection({ clock: systemClock, kubeconfig });
  return new Cluster(createTransport(connection, { clock: systemClock, userAgent: 'boxwright-e2e' }));
}

/** The connection of this process, opened by the first who needs it. */
export function clusterOf(kubeconfig: string): Promise<Cluster> {
  opened ??= open(kubeconfig);
  return opened;
}

/** Ends it, so that the process can end. */
export async function closeCluster(): Promise<void> {
  const cluster = await opened;
  opened = undefined;
  await cluster?.close();
}

/** The type behind a word of kubectl. */
export function kindOf(word: string): ResourceType {
  const type = KINDS.get(word);
  if (type === undefined) throw new Error(`tests do not read ${word}: add it to KINDS of support/cluster.ts`);
  return type;
}

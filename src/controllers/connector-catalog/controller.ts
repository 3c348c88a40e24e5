/**
 * The shipped catalog as Connector objects: created when missing, and kept as the product ships them. An object of
 * that name that does not carry our label is a person's own entry and wins.
 */
import { API_VERSION } from '../../api/define-resource.js';
import { LABEL_MANAGED_BY, MANAGED_BY } from '../../api/labels.js';
import { Connectors } from '../../api/v1alpha1/connector.js';
import type { Connector } from '../../api/v1alpha1/connector.js';
import { SHIPPED_CONNECTORS } from '../../connectors/catalog.js';
import type { ShippedConnector } from '../../connectors/catalog.js';
import { isAlreadyExists } from '../../kube/errors.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import { isAsDesired, repaired } from '../common/ensure-object.js';
import type { ControllerPart } from '../common/controller-part.js';

export interface ConnectorCatalogDependencies {
  api: Pick<KubeApi, 'create' | 'replace'>;
  caches: { connectors: Cache<Connector> };
  shipped?: readonly ShippedConnector[];
}

/** The controller of the shipped Connectors; keys are slugs. */
export function createConnectorCatalogController(deps: ConnectorCatalogDependencies): ControllerPart {
  const shipped = new Map((deps.shipped ?? SHIPPED_CONNECTORS).map((connector) => [connector.slug, connector]));
  const { connectors } = deps.caches;
  return {
    name: 'connector-catalog',
    workers: 1,
    watch: (enqueue) => {
      // An object that is missing in the cluster triggers no event.
      for (const slug of shipped.keys()) enqueue(slug);
      return connectors.onChange(({ key }) => {
        if (shipped.has(key)) enqueue(key);
      });
    },
    async reconcile(key, signal) {
      const wanted = shipped.get(key);
      if (wanted === undefined) return;
      await keep(deps, desiredConnector(wanted), signal);
    },
  };
}

/** The object as it is shipped. */
export function desiredConnector({ slug, spec }: ShippedConnector): Connector {
  return {
    apiVersion: API_VERSION,
    kind: Connectors.kind,
    metadata: { name: slug, labels: { [LABEL_MANAGED_BY]: MANAGED_BY } },
    spec,
  };
}

async function keep(
  { api, caches }: ConnectorCatalogDependencies,
  desired: Connector,
  signal: AbortSignal,
): Promise<void> {
  const actual = caches.connectors.get(desired.metadata.name);
  if (actual === undefined) {
    // Somebody else was faster: the cache will show who.
    await api.create(Connectors, desired, { signal }).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
    return;
  }
  const { labels, deletionTimestamp } = actual.metadata;
  const isOurs = labels?.[LABEL_MANAGED_BY] === MANAGED_BY;
  if (!isOurs || deletionTimestamp !== undefined || isAsDesired(actual, desired)) return;
  await api.replace(Connectors, repaired(actual, desired), { signal });
}

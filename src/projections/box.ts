/** Projections of Boxes. */
import { createdAtOf } from '../api/time.js';
import { Boxes } from '../api/v1alpha1/box.js';
import type { Box, EndpointProbe } from '../api/v1alpha1/box.js';
import type { Provider } from '../api/v1alpha1/common.js';
import { plainHostsOf } from '../connectors/mcp-server-rules.js';
import type { InformerOptions } from '../kube/types.js';
import { BY_WORKSPACE } from './indexes.js';
import { identityOf, withoutManagedFields } from './meta.js';
import type { Identity } from './meta.js';

/** Where the models of a Box come from. */
interface ModelAccess {
  engine: Box['spec']['engine'];
  endpoint?: Box['spec']['endpoint'];
  vendors?: Box['spec']['vendors'];
  credentialsSecret?: string | undefined;
  /** Providers with a usable key, as the gateway saw them; undefined until it has looked. */
  availableProviders?: readonly Provider[] | undefined;
}

function modelAccessOf({ spec, status }: Box): Required<ModelAccess> {
  const { engine, endpoint, vendors, credentialsSecret } = spec;
  return { engine, endpoint, vendors, credentialsSecret, availableProviders: status?.availableProviders };
}

/** For the tools. */
export interface ApiBox extends Identity, ModelAccess {
  displayName: string;
  workspace: string;
  /** ISO 8601 with milliseconds. */
  createdAt: string;
  /** Hosts, with the port unless it is the usual one, that MCP servers may have with plain http. */
  plainHosts: readonly string[];
}

export function projectApiBox(box: Box): ApiBox {
  return {
    ...identityOf(box.metadata),
    ...modelAccessOf(box),
    displayName: box.spec.displayName ?? box.metadata.name,
    workspace: box.spec.workspace,
    createdAt: createdAtOf(box.metadata),
    plainHosts: plainHostsOf(box.spec.egress.trustedHosts),
  };
}

export const apiBoxInformer: InformerOptions<Box, ApiBox> = {
  type: Boxes,
  project: projectApiBox,
  indexes: { [BY_WORKSPACE]: (box) => [box.workspace] },
};

/** What a run needs to know of its Box. */
export interface GatewayBox extends Required<ModelAccess> {
  name: string;
  uid: string;
  workspace: string;
  trustedHosts: readonly NonNullable<Box['spec']['egress']['trustedHosts']>[number][];
  /** What the endpoint was found to be like; undefined when nobody has looked yet. */
  endpointProbe: EndpointProbe | undefined;
  untrusted: Box['spec']['untrusted'];
  webSearch: Box['spec']['webSearch'];
  egress: Box['spec']['egress']['mode'];
  executionSeconds: number;
  heartbeatSeconds: number;
  modelCallSeconds: number;
}

export function projectGatewayBox(box: Box): GatewayBox {
  return {
    ...modelAccessOf(box),
    name: box.metadata.name,
    uid: box.metadata.uid ?? '',
    workspace: box.spec.workspace,
    trustedHosts: box.spec.egress.trustedHosts ?? [],
    endpointProbe: box.status?.endpointProbe,
    untrusted: box.spec.untrusted,
    webSearch: box.spec.webSearch,
    egress: box.spec.egress.mode,
    executionSeconds: box.spec.bounds.executionSeconds,
    heartbeatSeconds: box.spec.bounds.heartbeatSeconds,
    modelCallSeconds: box.spec.bounds.modelCallSeconds,
  };
}

export const gatewayBoxInformer: InformerOptions<Box, GatewayBox> = { type: Boxes, project: projectGatewayBox };

/** Whole: few, and reconciled. */
export const controllerBoxInformer: InformerOptions<Box, Box> = {
  type: Boxes,
  project: withoutManagedFields,
  indexes: { [BY_WORKSPACE]: (box) => [box.spec.workspace] },
};

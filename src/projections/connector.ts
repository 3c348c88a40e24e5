/** Projections of Connectors: the entries of the catalogue. */
import { Connectors } from '../api/v1alpha1/connector.js';
import type { Connector } from '../api/v1alpha1/connector.js';
import type { InformerOptions } from '../kube/types.js';
import { identityOf, withoutManagedFields } from './meta.js';
import type { Identity } from './meta.js';

/** For the tools. */
export interface ApiConnector extends Identity {
  displayName: string;
  category: string;
  description: string;
  auth: Connector['spec']['auth'];
  url: string;
  secrets: readonly string[];
  homepage: string | undefined;
}

export function projectApiConnector({ metadata, spec }: Connector): ApiConnector {
  return {
    ...identityOf(metadata),
    displayName: spec.name,
    category: spec.category,
    description: spec.description,
    auth: spec.auth,
    url: spec.remote.url,
    secrets: spec.secrets,
    homepage: spec.homepage,
  };
}

export const apiConnectorInformer: InformerOptions<Connector, ApiConnector> = {
  type: Connectors,
  project: projectApiConnector,
};

/** Where the MCP server of an entry is. */
export interface GatewayConnector {
  url: string;
  headers: readonly { name: string; value: string }[];
}

export function projectGatewayConnector({ spec: { remote } }: Connector): GatewayConnector {
  return { url: remote.url, headers: remote.headers };
}

export const gatewayConnectorInformer: InformerOptions<Connector, GatewayConnector> = {
  type: Connectors,
  project: projectGatewayConnector,
};

/** Whole: few, and compared with the catalogue. */
export const controllerConnectorInformer: InformerOptions<Connector, Connector> = {
  type: Connectors,
  project: withoutManagedFields,
};

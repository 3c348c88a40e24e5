/** Which search engine the runs of a Box have, and with whose key. Pure. */
import { boxNamespace } from '../../api/names.js';
import { DEFAULT_SEARCHES_PER_RUN, type SearchEngineName } from '../../api/v1alpha1/box.js';
import type { ObjectRef } from '../../kube/types.js';
import type { GatewayBox } from '../../projections/box.js';
import type { KeySource } from '../providers/credentials.js';
import { SEARCH_ENGINES, type SearchEngine } from './engines.js';

/** The search of the installation, for Boxes that name none. */
export interface InstallationSearch {
  engine: SearchEngineName | undefined;
  /** Undefined = the engine's own. */
  baseUrl: string | undefined;
  /** Secret with the installation's keys. */
  secret: Required<ObjectRef> | undefined;
}

export interface SearchTarget {
  name: SearchEngineName;
  engine: SearchEngine;
  baseUrl: string;
  /** Undefined = it wants no key. */
  source: KeySource | undefined;
  /** Most searches of one run. */
  searches: number;
}

type SearchingBox = Pick<GatewayBox, 'name' | 'webSearch' | 'credentialsSecret' | 'egress'>;

/**
 * Undefined when there is none. What a Box names itself wins. The search of the installation serves Boxes with egress
 * `internet` alone: words of a query leave the cluster, and a Box without a network wants that only when it says so.
 */
export function searchOf(box: SearchingBox, installation: InstallationSearch): SearchTarget | undefined {
  const own = box.webSearch;
  if (own === undefined) {
    if (installation.engine === undefined || box.egress !== 'internet') return undefined;
    return targetOf(installation.engine, installation.baseUrl, installationKey(installation));
  }
  if (own.engine === 'none') return undefined;
  const key = { box, installation: own.baseUrl === undefined ? installation : undefined };
  const target = targetOf(own.engine, own.baseUrl, keyOfBox(key));
  return target === undefined ? undefined : { ...target, searches: own.searchesPerRun };
}

type FindKey = (secretKey: string) => KeySource | undefined;

function targetOf(name: SearchEngineName, url: string | undefined, find: FindKey): SearchTarget | undefined {
  const engine = SEARCH_ENGINES[name];
  const baseUrl = (url ?? engine.baseUrl)?.replace(/(?<!\/)\/+$/, '');
  const source = engine.secretKey === undefined ? undefined : find(engine.secretKey);
  if (baseUrl === undefined || (engine.secretKey !== undefined && source === undefined)) return undefined;
  return { name, engine, baseUrl, source, searches: DEFAULT_SEARCHES_PER_RUN };
}

function installationKey({ secret }: Pick<InstallationSearch, 'secret'>): FindKey {
  return (key) => (secret === undefined ? undefined : { ref: secret, key, labelled: false });
}

/** That of its own Secret; of the installation's only where the Box did not choose the address: a key must not go anywhere. */
function keyOfBox(of: { box: SearchingBox; installation: InstallationSearch | undefined }): FindKey {
  const { name, credentialsSecret } = of.box;
  if (credentialsSecret === undefined) return installationKey(of.installation ?? { secret: undefined });
  return (key) => ({ ref: { namespace: boxNamespace(name), name: credentialsSecret }, key, labelled: true });
}

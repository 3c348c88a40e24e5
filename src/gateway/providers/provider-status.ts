/**
 * Which providers each Box can call: the gateway, the only process that may read keys, tells it in the status of the
 * Box. Every replica does it; a status that is right already is not written.
 */
import { Provider } from '../../api/v1alpha1/common.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import { Secrets } from '../../kube/core-types.js';
import type { Informer, KubeApi, ObjectRef } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import type { Runnable } from '../../runtime/manager.js';
import { sameJson } from '../../runtime/same-json.js';
import { CachedReads } from '../../kube/cached-reads.js';
import { createRounds } from '../credentials/rounds.js';
import { GatewayError } from '../errors.js';
import { Credentials, endpointKeySource, providerKeySource, type KeySource } from './credentials.js';
import type { GatewayBox } from '../../projections/box.js';

/** A Secret wakes nobody, so every Box is looked at again this often. */
export const RECHECK_MS = 60_000;

export interface ProviderStatusDeps {
  api: Pick<KubeApi, 'get' | 'patch'>;
  boxes: Pick<Informer<GatewayBox>, 'values' | 'get' | 'onChange'>;
  /** Secret with the keys of Boxes that name none of their own. */
  installationSecret: Required<ObjectRef> | undefined;
  clock: Clock;
  log: Logger;
}

/**
 * Looks at Boxes whose spec changed at once, and at all every minute. Each Secret is read once for all Boxes that are due
 * together. A status that another replica wrote starts nothing: replicas that disagree for a moment do not answer each other.
 */
export function createProviderStatus(deps: ProviderStatusDeps): Runnable {
  const { api, boxes, clock, log } = deps;
  /** What each Box was like when it was looked at. */
  const seen = new Map<string, string>();
  return createRounds({
    name: 'providers of Boxes',
    clock,
    log,
    everyMs: RECHECK_MS,
    all: () => [...boxes.values()].map(({ name }) => name),
    onChange: (changed) =>
      boxes.onChange(({ key, current }) => {
        if (current === undefined) seen.delete(key);
        else if (inputsOf(current) !== seen.get(key)) changed(key);
      }),
    begin: () => {
      const credentials = new Credentials(new CachedReads(api, Secrets, clock));
      return async (key, signal) => {
        const box = boxes.get(key);
        if (box === undefined) return;
        seen.set(key, inputsOf(box));
        try {
          await tell(deps, credentials, box, signal);
        } catch (error) {
          // The next change of any kind is a reason to look again: the right to read may have come with it.
          seen.delete(key);
          throw error;
        }
      };
    },
    failure: 'keys of model providers of a Box could not be looked at',
  });
}

function inputsOf({ uid, engine, endpoint, vendors, credentialsSecret }: GatewayBox): string {
  return JSON.stringify([uid, engine, endpoint, vendors, credentialsSecret]);
}

async function tell(
  { api, installationSecret }: ProviderStatusDeps,
  credentials: Pick<Credentials, 'read'>,
  box: GatewayBox,
  signal: AbortSignal,
): Promise<void> {
  const availableProviders = await providersOf(box, installationSecret, credentials);
  if (sameJson(availableProviders, box.availableProviders)) return;
  const body = { metadata: { uid: box.uid }, status: { availableProviders } };
  await api.patch(Boxes, { name: box.name }, body, { type: 'merge', subresource: 'status', signal });
}

/** The providers that a call of a run would find a key for, by the same rules. Rejects when a Secret cannot be read. */
async function providersOf(
  box: GatewayBox,
  installation: Required<ObjectRef> | undefined,
  credentials: Pick<Credentials, 'read'>,
): Promise<Provider[]> {
  const available: Provider[] = [];
  for (const provider of Provider.options) {
    if (provider !== 'boxwright') {
      const source = providerKeySource(box, provider, installation);
      if (source !== undefined && (await isUsable(source, credentials))) available.push(provider);
    } else if (box.engine !== undefined) {
      available.push(provider);
    } else if (box.endpoint !== undefined) {
      const source = endpointKeySource(box);
      if (source === undefined || (await isUsable(source, credentials))) available.push(provider);
    }
  }
  return available;
}

async function isUsable(source: KeySource, credentials: Pick<Credentials, 'read'>): Promise<boolean> {
  try {
    await credentials.read(source);
    return true;
  } catch (error) {
    if (error instanceof GatewayError) return false;
    throw error;
  }
}

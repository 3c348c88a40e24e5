/**
 * `boxwright release-finalizers`: the uninstall hook of the chart. It runs after the controllers are gone and removes our
 * finalizers from every object, so that deleting an object, a namespace or a CRD later cannot hang.
 */
import { z } from 'zod';
import type { KubeObject, ResourceType } from '../api/meta.js';
import { ALL_KINDS } from '../api/v1alpha1/index.js';
import { loadConfig } from '../config/env.js';
import { createKubeApi } from '../kube/client.js';
import { isConflict, isNotFound } from '../kube/errors.js';
import { loadConnection } from '../kube/kube-config.js';
import { createTransport } from '../kube/transport.js';
import type { KubeApi } from '../kube/types.js';
import { createLogger } from '../observability/logger.js';
import { systemClock } from '../runtime/clock.js';
import { inParallel } from '../runtime/in-parallel.js';

const Config = z.object({
  logLevel: z.enum(['error', 'warn', 'info', 'debug']).default('info').describe('Lowest level of the logs.'),
});

/** Runs the hook; the exit code. */
export async function runReleaseFinalizers(env: NodeJS.ProcessEnv): Promise<number> {
  const log = createLogger('release-finalizers', loadConfig(Config, env).logLevel);
  const transport = createTransport(await loadConnection({ clock: systemClock, env }), { clock: systemClock });
  const released = await releaseFinalizers(createKubeApi(transport), ALL_KINDS);
  log.info({ released }, 'finalizers released');
  await transport.close();
  return 0;
}

/** A full installation has 50,000 runs, and Helm waits 5 minutes for the hook. */
const PARALLEL = 32;

/**
 * Removes our finalizers from every object of the kinds and returns the number of objects changed. An object that cannot be
 * written does not stop the others; the first such failure is thrown at the end.
 */
export async function releaseFinalizers(
  api: Pick<KubeApi, 'list' | 'patch'>,
  kinds: readonly ResourceType[],
): Promise<number> {
  let released = 0;
  const releaseKind = async (kind: ResourceType) => {
    const work = async (object: KubeObject) => {
      if (await release(api, kind, object)) released += 1;
    };
    await inParallel(await listMetadata(api, kind), work, PARALLEL);
  };
  await inParallel(kinds, releaseKind, 1);
  return released;
}

/** Transcripts and inputs would not fit into the memory of the hook. A CRD that is not there (404) has no objects. */
async function listMetadata(api: Pick<KubeApi, 'list'>, kind: ResourceType): Promise<KubeObject[]> {
  try {
    return (await api.list<KubeObject>(kind, { metadataOnly: true })).items;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

async function release(api: Pick<KubeApi, 'patch'>, kind: ResourceType, object: KubeObject): Promise<boolean> {
  const finalizers = object.metadata.finalizers ?? [];
  const foreign = finalizers.filter((finalizer) => !finalizer.startsWith('boxwright.dev/'));
  if (foreign.length === finalizers.length) return false;
  const { name, namespace, resourceVersion } = object.metadata;
  try {
    // The resourceVersion protects a finalizer that somebody added meanwhile; a conflict fails the Job, which is retried.
    await api.patch(
      kind,
      namespace === undefined ? { name } : { namespace, name },
      { metadata: { resourceVersion, finalizers: foreign } },
      { type: 'merge' },
    );
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    if (isConflict(error))
      throw new Error(`${kind.kind} ${name} changed meanwhile; run the hook again`, { cause: error });
    throw error;
  }
}

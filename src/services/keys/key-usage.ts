/** `status.lastUsedAt` of API keys, written in batches at a resolution of minutes: never in the path of a call. */
import { APIKeys } from '../../api/v1alpha1/api-key.js';
import type { KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import { sleep } from '../../runtime/clock.js';
import type { Clock } from '../../runtime/clock.js';
import { withTimeout } from '../../runtime/with-timeout.js';
import type { ApiKeyProjection } from '../../projections/api-key.js';

const FLUSH_MS = 60_000;
const WRITE_MS = 5_000;

export interface KeyUsage {
  used(key: ApiKeyProjection): void;
  /** Writes once a minute until the signal fires. */
  run(signal: AbortSignal): Promise<void>;
}

export interface KeyUsageDeps {
  api: Pick<KubeApi, 'patch'>;
  clock: Clock;
  log: Logger;
}

export function createKeyUsage(deps: KeyUsageDeps): KeyUsage {
  /** uid -> the key and the minute of its latest use. */
  const pending = new Map<string, { key: ApiKeyProjection; minute: number }>();
  return {
    used(key) {
      const minute = Math.floor(deps.clock.now() / 60_000);
      const known = key.lastUsedAt === undefined ? -1 : Math.floor(Date.parse(key.lastUsedAt) / 60_000);
      if (minute > known) pending.set(key.uid, { key, minute });
    },
    async run(signal) {
      while (!signal.aborted) {
        await sleep(deps.clock, FLUSH_MS, signal);
        const batch = [...pending.values()];
        pending.clear();
        for (const { key, minute } of batch) await write(deps, key, minute);
      }
    },
  };
}

async function write(deps: KeyUsageDeps, key: ApiKeyProjection, minute: number): Promise<void> {
  const ref = { namespace: key.namespace, name: key.name };
  const body = { metadata: { uid: key.uid }, status: { lastUsedAt: new Date(minute * 60_000).toISOString() } };
  try {
    await withTimeout(deps.clock, WRITE_MS, (signal) =>
      deps.api.patch(APIKeys, ref, body, { type: 'merge', subresource: 'status', signal }),
    );
  } catch (error) {
    // The next use of the key writes again; a key that was deleted meanwhile needs none.
    deps.log.debug({ err: error }, 'last use of an API key not written');
  }
}

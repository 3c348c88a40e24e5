/**
 * The keys behind trigger URLs, read from one Secret by its name: the only Secret that an API pod may read.
 */
import { KEYRING_ENTRY, KEYRING_SECRET, parseKeyring } from '../../api/keyring.js';
import type { Keyring } from '../../api/keyring.js';
import { Secrets } from '../../kube/core-types.js';
import type { KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import { sleep } from '../../runtime/clock.js';
import type { Clock } from '../../runtime/clock.js';
import { withTimeout } from '../../runtime/with-timeout.js';

const REFRESH_MS = 60_000;
const RETRY_MS = 1_000;
const READ_MS = 5_000;
/** An unknown key id causes a read at most this often: ids come from objects that people may write. */
const UNKNOWN_ID_MS = 5_000;

export interface KeyringReader {
  /** The keys as read last; undefined until they have been read once. */
  readonly keyring: Keyring | undefined;
  /** Reads the Secret again when it holds no key of that id; never rejects. */
  ensure(keyId: string | undefined): Promise<void>;
  /** Reads now (again every second until it worked), then every 60 s. Resolves when the signal fires. */
  run(signal: AbortSignal): Promise<void>;
}

export interface KeyringDeps {
  api: Pick<KubeApi, 'get'>;
  clock: Clock;
  log: Logger;
  /** Release namespace. */
  namespace: string;
}

export function createKeyringReader(deps: KeyringDeps): KeyringReader {
  let keyring: Keyring | undefined;
  let lastForced: number | undefined;
  let forced: Promise<unknown> = Promise.resolve();

  const read = async (): Promise<boolean> => {
    try {
      keyring = await withTimeout(deps.clock, READ_MS, (signal) => readKeyring(deps, signal));
      return true;
    } catch (error) {
      deps.log.warn({ err: error, secret: KEYRING_SECRET }, 'keyring not readable');
      return false;
    }
  };

  return {
    get keyring() {
      return keyring;
    },
    async ensure(keyId) {
      if (keyId === undefined || keyring?.keys.has(keyId) === true) return;
      const now = deps.clock.monotonic();
      // A call that may not start a read still waits for one in progress, which may bring its key.
      if (lastForced === undefined || now - lastForced >= UNKNOWN_ID_MS) {
        lastForced = now;
        forced = read();
      }
      await forced;
    },
    async run(signal) {
      while (!signal.aborted) {
        const worked = await read();
        await sleep(deps.clock, worked ? REFRESH_MS : RETRY_MS, signal);
      }
    },
  };
}

async function readKeyring(deps: KeyringDeps, signal: AbortSignal): Promise<Keyring> {
  const secret = await deps.api.get(Secrets, { namespace: deps.namespace, name: KEYRING_SECRET }, { signal });
  return parseKeyring(Buffer.from(secret.data?.[KEYRING_ENTRY] ?? '', 'base64').toString());
}

/**
 * Before the answer to a write goes out, every API pod confirms that it sees the write: the next call of any client
 * sees it on every replica, and a rotated URL or a disabled trigger is refused everywhere. What a pod does not confirm within
 * {@link BARRIER_MS} is told to the caller. Only pods of the installation may ask: each question carries a seal.
 * See docs/architecture.md#write-barrier.
 */
import type { Cache, Informer } from '../kube/types.js';
import type { InternalReply, InternalRequest } from '../observability/probes.js';
import type { PeerPod } from '../projections/pod.js';
import { INTERNAL_PORT } from '../protocol/pod.js';
import type { Clock } from '../runtime/clock.js';
import type { BarrierSeal } from './barrier-seal.js';
import { SEAL_HEADER } from './barrier-seal.js';
import { withTimeout } from '../runtime/with-timeout.js';

export const BARRIER_PATH = '/internal/v1/barrier';
/** Deadline for the confirmations of one write. */
export const BARRIER_MS = 2_000;

/** `http://<address>:8081` of every other API pod that takes traffic; one that is being deleted takes none. */
export function peerUrls(pods: Pick<Cache<PeerPod>, 'values'>, ownUid: string): string[] {
  const urls: string[] = [];
  for (const pod of pods.values()) {
    if (pod.uid === ownUid || !pod.serving || pod.ip === undefined) continue;
    const host = pod.ip.includes(':') ? `[${pod.ip}]` : pod.ip;
    urls.push(`http://${host}:${INTERNAL_PORT}`);
  }
  return urls;
}

type Watched = Pick<Informer<unknown>, 'waitForResourceVersion' | 'get' | 'onChange'>;
/** By kind. */
type WatchedKinds = ReadonlyMap<string, Watched>;

/** What was written: an object as the API server answered it, or one that was deleted. */
export type Write = { kind: string } & ({ resourceVersion: string } | { gone: Gone });

/** The answer to a DELETE names no version, so whoever confirms it looks for the object. */
export interface Gone {
  /** `namespace/name` or `name`. */
  key: string;
  uid: string;
}

export interface WriteBarrier {
  /** True when this pod and every other one have seen the write; false when one had not within {@link BARRIER_MS}. */
  passed(write: Write): Promise<boolean>;
}

export interface WriteBarrierDeps {
  /** Kind -> informer of this pod. */
  informers: WatchedKinds;
  peers(): readonly string[];
  seal: BarrierSeal;
  /** POSTs JSON and resolves with the status; rejects without an answer. */
  post(url: string, question: Question, signal: AbortSignal): Promise<number>;
  clock: Clock;
}

/** One write as it goes to every peer. */
export interface Question {
  body: string;
  headers: Readonly<Record<string, string>>;
}

export function createWriteBarrier(deps: WriteBarrierDeps): WriteBarrier {
  return {
    async passed(write) {
      return withTimeout(deps.clock, BARRIER_MS, async (signal) => {
        const informer = deps.informers.get(write.kind);
        const own = informer === undefined ? false : hasSeen(informer, write, signal);
        const peers = deps.peers();
        const question = peers.length === 0 ? undefined : questionOf(deps.seal, write);
        const others = peers.map((peer) => confirmed(deps, `${peer}${BARRIER_PATH}`, question, signal));
        return (await Promise.all([own, ...others])).every(Boolean);
      });
    },
  };
}

/** Undefined while this pod has no key to seal it with. */
function questionOf(seal: BarrierSeal, write: Write): Question | undefined {
  const body = JSON.stringify(write);
  const mark = seal.of(body);
  return mark === undefined ? undefined : { body, headers: { [SEAL_HEADER]: mark } };
}

/** Resolves true when the watch has seen the write, false when the signal fires first. */
function hasSeen(informer: Watched, write: Write, signal: AbortSignal): Promise<boolean> {
  if (!('gone' in write)) return informer.waitForResourceVersion(write.resourceVersion, signal);
  const { key, uid } = write.gone;
  const isGone = (object: unknown) => {
    const known = object as { uid?: string; deleting?: boolean } | undefined;
    return known === undefined || known.uid !== uid || known.deleting === true;
  };
  if (isGone(informer.get(key))) return Promise.resolve(true);
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const end = (seen: boolean) => {
      unsubscribe();
      signal.removeEventListener('abort', giveUp);
      resolve(seen);
    };
    const giveUp = () => end(false);
    const unsubscribe = informer.onChange((change) => {
      if (change.key === key && isGone(change.current)) end(true);
    });
    signal.addEventListener('abort', giveUp, { once: true });
  });
}

async function confirmed(
  deps: WriteBarrierDeps,
  url: string,
  question: Question | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    return question !== undefined && (await deps.post(url, question, signal)) === 200;
  } catch {
    // Unavailable or too slow: the caller is told that the write is not confirmed everywhere.
    return false;
  }
}

/**
 * The other side: answers 200 when this pod's watch of the kind is there, 504 when it is not in time. Nobody but our pods can
 * have it wait: 401.
 */
export function barrierRoute(informers: WatchedKinds, seal: BarrierSeal, clock: Clock) {
  return async ({ headers, body, signal }: InternalRequest): Promise<InternalReply> => {
    if (!(await seal.isGenuine(headers[SEAL_HEADER], body))) return { status: 401, body: { error: 'not sealed' } };
    const write = parseWrite(body);
    const informer = write === undefined ? undefined : informers.get(write.kind);
    if (write === undefined || informer === undefined) return { status: 400, body: { error: 'unknown kind' } };
    const seen = await withTimeout(clock, BARRIER_MS, (deadline) => hasSeen(informer, write, deadline), signal);
    return { status: seen ? 200 : 504 };
  };
}

function parseWrite(body: Buffer): Write | undefined {
  try {
    const { kind, resourceVersion, gone } = JSON.parse(body.toString()) as Record<string, unknown>;
    if (typeof kind !== 'string') return undefined;
    if (typeof resourceVersion === 'string' && /^\d{1,20}$/.test(resourceVersion)) return { kind, resourceVersion };
    const { key, uid } = (gone ?? {}) as Record<string, unknown>;
    return typeof key === 'string' && typeof uid === 'string' ? { kind, gone: { key, uid } } : undefined;
  } catch {
    return undefined;
  }
}

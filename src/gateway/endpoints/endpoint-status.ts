/**
 * Whether agents can work with the OpenAI-compatible server of their Box: one gateway pod tries it and tells in the status of the
 * Box what it found; the controller makes condition EndpointReady of it. No run and no budget is charged for it.
 */
import { endpointDigest } from '../../api/endpoint.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import type { EndpointProbe } from '../../api/v1alpha1/box.js';
import { isNotFound } from '../../kube/errors.js';
import type { Informer, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import { isoNow } from '../../runtime/clock.js';
import type { Clock } from '../../runtime/clock.js';
import { Controller } from '../../runtime/controller.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import type { Runnable } from '../../runtime/manager.js';
import { GatewayError } from '../errors.js';
import { describeSource, endpointKeySource } from '../providers/credentials.js';
import type { Credentials, KeySource } from '../providers/credentials.js';
import { endpointProvider } from '../providers/providers.js';
import { PROBE_BOUND_MS } from './probe-endpoint.js';
import type { AskedEndpoint, EndpointVerdict } from './verdict.js';
import type { GatewayBox } from '../../projections/box.js';
import type { PeerPod } from '../../projections/pod.js';

/** Neither a Secret nor the loss of the pod that probes wakes anybody. */
export const RECHECK_MS = 60_000;
/** A good endpoint may be changed behind its address. */
const GOOD_MS = 86_400_000;
/** What costs no token is tried again soon, a call of the model later. */
const UNREACHED_MS = 300_000;
const NO_TOOLS_MS = 3_600_000;
/** They wait for servers of others nearly all the time. */
const WORKERS = 32;
/** How many of them the servers of one Workspace may keep waiting, so that slow ones hold up nobody else's. */
export const PROBES_OF_A_WORKSPACE = 4;
/** When a Box of a Workspace that has as many probes at work comes again. */
const BUSY_MS = 5_000;

const INTERVAL_MS: Readonly<Record<EndpointProbe['result'], number>> = {
  ToolCallsWork: GOOD_MS,
  KeyNotUsable: UNREACHED_MS,
  EndpointUnavailable: UNREACHED_MS,
  EndpointRefused: UNREACHED_MS,
  ModelNotFound: UNREACHED_MS,
  ToolCallsRefused: NO_TOOLS_MS,
  NoToolCall: NO_TOOLS_MS,
};

export interface EndpointStatusDeps {
  api: Pick<KubeApi, 'patch'>;
  boxes: Pick<Informer<GatewayBox>, 'values' | 'get' | 'onChange'>;
  /** The gateway pods of the installation. */
  gateways: { values(): Iterable<Pick<PeerPod, 'name' | 'serving'>> };
  /** Name of this pod. */
  podName: string;
  credentials: Pick<Credentials, 'read' | 'version'>;
  probe: (asked: AskedEndpoint, stopping: AbortSignal) => Promise<EndpointVerdict>;
  clock: Clock;
  log: Logger;
}

/** Probes what is new or changed at once, and everything else when its time has come. */
export function createEndpointStatus(deps: EndpointStatusDeps): Runnable {
  const { boxes, clock, log } = deps;
  const teller = new EndpointTeller(deps);
  const controller = new Controller({
    name: 'endpoints of Boxes',
    workers: WORKERS,
    reconcile: (key, signal) => teller.look(key, signal),
    reconcileTimeoutMs: PROBE_BOUND_MS + 30_000,
    clock,
    log,
  });
  let unsubscribe: () => void = () => undefined;
  return {
    name: 'endpoints of Boxes',
    start: () => {
      unsubscribe = boxes.onChange(({ previous, current }) => {
        const box = current ?? previous;
        if (box === undefined || (current !== undefined && digestOf(previous) === digestOf(current))) return;
        controller.enqueue(keyOf(box));
      });
      for (const box of boxes.values()) controller.enqueue(keyOf(box));
      controller.start();
    },
    stop: () => {
      unsubscribe();
      return controller.stop();
    },
  };
}

/** Workspaces take turns in the queue. */
function keyOf({ workspace, name }: GatewayBox): string {
  return `${workspace}/${name}`;
}

function digestOf(box: GatewayBox | undefined): string | undefined {
  return box?.endpoint === undefined ? undefined : `${box.uid} ${endpointDigest(box.endpoint)}`;
}

class EndpointTeller {
  /** What this pod found last, by UID of the Box: the status may not show it yet, or hold an older equal one. */
  readonly #found = new Map<string, { box: string; probe: EndpointProbe }>();

  /** Probes at work, by Workspace. */
  readonly #probing = new Map<string, number>();

  constructor(private readonly deps: EndpointStatusDeps) {}

  async look(key: string, signal: AbortSignal): Promise<ReconcileResult | void> {
    const boxName = key.slice(key.indexOf('/') + 1);
    const box = this.deps.boxes.get(boxName);
    for (const [uid, { box: name }] of this.#found) if (name === boxName && uid !== box?.uid) this.#found.delete(uid);
    // One that was made again in another Workspace has another key.
    if (box?.endpoint === undefined || keyOf(box) !== key) return;
    if (!this.#isElected()) return { requeueAfterMs: RECHECK_MS };
    const source = endpointKeySource(box);
    const keyVersion = source === undefined ? '' : ((await this.deps.credentials.version(source)) ?? '');
    const inputs = { digest: endpointDigest(box.endpoint), keyVersion };
    let known = newest([box.endpointProbe, this.#found.get(box.uid)?.probe], inputs);
    if (known === undefined || this.#dueInMs(known) <= 0) {
      const verdict = await this.#inTurn(box.workspace, () => this.#verdict(box, source, signal));
      if (verdict === undefined) return { requeueAfterMs: BUSY_MS };
      known = { ...inputs, probedAt: isoNow(this.deps.clock), ...verdict };
      this.#found.set(box.uid, { box: boxName, probe: known });
    }
    if (!says(box.endpointProbe, known)) await this.#tell(box, known, signal);
    return { requeueAfterMs: Math.max(1, Math.min(this.#dueInMs(known), RECHECK_MS)) };
  }

  /** Undefined when the Workspace has enough probes at work. */
  async #inTurn(workspace: string, probe: () => Promise<EndpointVerdict>): Promise<EndpointVerdict | undefined> {
    const others = this.#probing.get(workspace) ?? 0;
    if (others >= PROBES_OF_A_WORKSPACE) return undefined;
    this.#probing.set(workspace, others + 1);
    try {
      return await probe();
    } finally {
      const left = (this.#probing.get(workspace) ?? 1) - 1;
      if (left > 0) this.#probing.set(workspace, left);
      else this.#probing.delete(workspace);
    }
  }

  /** Of all pods that serve, the first by name: others step in when it is gone. Two at once do no harm. */
  #isElected(): boolean {
    const names = [...this.deps.gateways.values()].filter(({ serving }) => serving).map(({ name }) => name);
    return names.sort()[0] === this.deps.podName;
  }

  #dueInMs({ probedAt, result }: EndpointProbe): number {
    return Date.parse(probedAt) + INTERVAL_MS[result] - this.deps.clock.now();
  }

  async #verdict(box: GatewayBox, source: KeySource | undefined, signal: AbortSignal): Promise<EndpointVerdict> {
    const { baseUrl = '', model } = box.endpoint ?? {};
    let secret = '';
    try {
      secret = source === undefined ? '' : await this.deps.credentials.read(source);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return { result: 'KeyNotUsable', message: error.message };
    }
    const keyIs = source === undefined ? undefined : describeSource(source);
    return this.deps.probe({ baseUrl: endpointProvider(baseUrl).baseUrl, model, keyIs, secret }, signal);
  }

  async #tell(box: GatewayBox, endpointProbe: EndpointProbe, signal: AbortSignal): Promise<void> {
    const body = { metadata: { uid: box.uid }, status: { endpointProbe } };
    try {
      await this.deps.api.patch(Boxes, { name: box.name }, body, { type: 'merge', subresource: 'status', signal });
    } catch (error) {
      if (!isNotFound(error)) throw error; // it is gone, and the cache does not know yet
    }
  }
}

/** The latest of what was found with the present settings and key. */
function newest(
  probes: readonly (EndpointProbe | undefined)[],
  inputs: Pick<EndpointProbe, 'digest' | 'keyVersion'>,
): EndpointProbe | undefined {
  return probes
    .filter((probe) => probe !== undefined)
    .filter(({ digest, keyVersion }) => digest === inputs.digest && keyVersion === inputs.keyVersion)
    .sort((a, b) => (a.probedAt < b.probedAt ? 1 : -1))[0];
}

/**
 * Whether the status needs no write: a failure that stays the same is told once, and tried again from memory; a success is dated
 * once a day, so that another pod need not repeat it.
 */
function says(told: EndpointProbe | undefined, known: EndpointProbe): boolean {
  if (told === undefined || told.digest !== known.digest || told.keyVersion !== known.keyVersion) return false;
  if (told.result !== known.result || told.message !== known.message) return false;
  return known.result !== 'ToolCallsWork' || told.probedAt === known.probedAt;
}

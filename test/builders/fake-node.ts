/**
 * Plays what stands behind a bare API server: Job controller, scheduler, kubelet and runner. The runner is a fake in what it does,
 * not in how it reports: it has the pod-bound token of a real pod and claims and finishes at the real gateway.
 */
import { LABEL_RUN } from '../../src/api/labels.js';
import type { ResourceType } from '../../src/api/meta.js';
import { Jobs, Pods } from '../../src/kube/core-types.js';
import type { Job, Pod } from '../../src/kube/core-types.js';
import { isNotFound } from '../../src/kube/errors.js';
import { createInformer } from '../../src/kube/informer.js';
import { controllerReference } from '../../src/kube/owner-references.js';
import type { Informer } from '../../src/kube/types.js';
import { createLogger } from '../../src/observability/logger.js';
import { RUNNER_CONTAINER, RUNNER_ENV } from '../../src/protocol/pod.js';
import type { ClaimAnswer } from '../../src/protocol/run.js';
import { GatewayClient } from '../../src/runner/gateway-client.js';
import { RunRefused, createRunGateway } from '../../src/runner/run-gateway.js';
import type { RunGateway } from '../../src/runner/run-gateway.js';
import { sleep, systemClock } from '../../src/runtime/clock.js';
import { inParallel } from '../../src/runtime/in-parallel.js';
import type { TestApiServer } from './api-server.js';
import { podToken } from './pod-token.js';
import { assistantMessage, userMessage } from './run-events.js';

export interface FakeNodeOptions {
  server: TestApiServer;
  gatewayPort: number;
  /** The runner asks its model once, so that there is usage to count. */
  callsModel?: boolean;
  /** Pods that it has room for at once; any number when absent. */
  places?: number;
}

const GIVE_UP_MS = 120_000;
/** How long the scheduler leaves a pod alone for which there was no room; a new pod may take what becomes free meanwhile. */
const BACKOFF_MS = 100;
const NO_ROOM = '0/1 nodes are available: 1 Insufficient cpu.';
const NO_LOG = { info: () => undefined, warn: () => undefined, error: () => undefined };

export class FakeNode {
  /** Names of runs in the order in which their Jobs appeared. */
  readonly started: string[] = [];
  /** Names of runs in the order in which their pods got the node. */
  readonly placed: string[] = [];
  /** How often a runner did the work of a run, by name. */
  readonly executions = new Map<string, number>();
  /** What went wrong in ways that no real run sees. */
  readonly errors: string[] = [];
  readonly #options: FakeNodeOptions;
  readonly #jobs: Informer<Job>;
  readonly #stopping = new AbortController();
  readonly #working = new Set<Promise<void>>();
  readonly #line: (() => void)[] = [];
  #places: number;
  #open: Promise<void> = Promise.resolve();
  #release: () => void = () => undefined;

  constructor(options: FakeNodeOptions) {
    this.#options = options;
    this.#places = options.places ?? Infinity;
    const log = createLogger('fake-node', 'error', { write: (line) => this.errors.push(line) });
    const { transport } = options.server;
    this.#jobs = createInformer(
      transport,
      { type: Jobs, labelSelector: LABEL_RUN, project: (job: Job) => job },
      { clock: systemClock, log },
    );
    this.#jobs.onChange(({ previous, current }) => {
      if (current === undefined || previous?.metadata.uid === current.metadata.uid) return;
      this.started.push(current.metadata.name);
      const work = this.#execute(current)
        .catch((error: unknown) => this.errors.push(`${current.metadata.name}: ${String(error)}`))
        .then(() => void this.#working.delete(work));
      this.#working.add(work);
    });
  }

  /** Executions that go on, and Jobs that were not given their TTL. */
  get open(): number {
    const jobs = [...this.#jobs.values()];
    return this.#working.size + jobs.filter(({ spec }) => spec.ttlSecondsAfterFinished === undefined).length;
  }

  /** Pods for which there is no room. */
  get waiting(): number {
    return this.#line.length;
  }

  async start(): Promise<void> {
    this.#jobs.start();
    await this.#jobs.synced;
  }

  /** Runs are claimed and go on working until release(). */
  hold(): void {
    this.#open = new Promise((resolve) => (this.#release = resolve));
  }

  release(): void {
    this.#release();
  }

  /** Removes ended Jobs and their pods, as the controller for `ttlSecondsAfterFinished` does when the time is over. */
  async removeEnded(): Promise<void> {
    const { api } = this.#options.server;
    await inParallel(
      [...this.#jobs.values()].filter(({ spec }) => spec.ttlSecondsAfterFinished !== undefined),
      async ({ metadata: { name, namespace = '' } }) => {
        const gone = (error: unknown) => {
          if (!isNotFound(error)) throw error;
        };
        await api.delete(Pods, { namespace, name: `${name}-pod` }, { gracePeriodSeconds: 0 }).catch(gone);
        await api.delete(Jobs, { namespace, name }, { propagationPolicy: 'Background' }).catch(gone);
      },
      16,
    );
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#release();
    for (const next of this.#line.splice(0)) next();
    await Promise.all(this.#working);
    await this.#jobs.stop();
  }

  async #execute(job: Job): Promise<void> {
    const pod = await this.#createPod(job);
    await this.#place(pod);
    if (this.#stopping.signal.aborted) return;
    this.placed.push(job.metadata.name);
    await this.#setPodStatus(pod, 'Running');
    const ended = await this.#run(job, pod);
    await this.#setPodStatus(pod, ended ? 'Succeeded' : 'Failed');
    this.#places += 1;
    void sleep(systemClock, BACKOFF_MS, this.#stopping.signal).then(() => this.#placeNext());
    await this.#completeJob(job);
  }

  /** Resolves when there is room for the pod. The oldest of those that wait is next, unless a new one was faster. */
  async #place({ metadata: { name, namespace = '' } }: Pod): Promise<void> {
    if (this.#places > 0) {
      this.#places -= 1;
      return;
    }
    const placed = new Promise<void>((resolve) => this.#line.push(resolve));
    const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: NO_ROOM };
    await this.#patchStatus(Pods, { name, namespace }, { conditions: [condition] });
    await placed;
  }

  #placeNext(): void {
    if (this.#places === 0) return;
    const next = this.#line.shift();
    if (next === undefined) return;
    this.#places -= 1;
    next();
  }

  /** The life of a runner; false when the gateway refused it. */
  async #run(job: Job, pod: Pod): Promise<boolean> {
    const { name: run, namespace = '' } = job.metadata;
    const token = await podToken(this.#options.server.transport, pod);
    const env = runnerEnvironment(job);
    const client = new GatewayClient({
      url: new URL(`https://127.0.0.1:${this.#options.gatewayPort}`),
      serverName: env[RUNNER_ENV.gatewayServerName] ?? '',
      ca: env[RUNNER_ENV.gatewayCa] ?? '',
      readToken: () => Promise.resolve(token),
      clock: systemClock,
      random: Math.random,
      log: NO_LOG,
    });
    const gateway = createRunGateway(
      client,
      { namespace, run, podUid: pod.metadata.uid ?? '', hasBrowser: false },
      systemClock,
    );
    const { signal } = this.#stopping;
    const giveUpAt = systemClock.monotonic() + GIVE_UP_MS;
    try {
      const claim = await gateway.claim(signal, giveUpAt);
      this.executions.set(run, (this.executions.get(run) ?? 0) + 1);
      if (this.#options.callsModel === true) await callModel(gateway, claim, signal);
      await this.#work(gateway, claim);
      const events = [userMessage(1, 'go'), assistantMessage(2, 'done')];
      const outcome = { reason: 'Completed', message: '', output: 'done' };
      await gateway.finish({ events, outcome }, signal, systemClock.monotonic() + GIVE_UP_MS);
      return true;
    } catch (error) {
      if (error instanceof RunRefused || signal.aborted) return false;
      throw error;
    } finally {
      client.close();
    }
  }

  /** Heartbeats until release(). */
  async #work(gateway: RunGateway, { intervals }: ClaimAnswer): Promise<void> {
    const { signal } = this.#stopping;
    const released = new AbortController();
    void this.#open.then(() => released.abort());
    for (;;) {
      await sleep(systemClock, intervals.heartbeatSeconds * 1000, released.signal);
      if (released.signal.aborted || signal.aborted) return;
      await gateway.events({ events: [], live: [] }, signal, systemClock.monotonic() + GIVE_UP_MS);
    }
  }

  async #createPod(job: Job): Promise<Pod> {
    const { name, namespace = '' } = job.metadata;
    return await this.#options.server.api.create(Pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `${name}-pod`,
        namespace,
        labels: { [LABEL_RUN]: name },
        ownerReferences: [controllerReference(Jobs, job)],
      },
      spec: job.spec.template.spec,
    });
  }

  async #setPodStatus(pod: Pod, phase: 'Running' | 'Succeeded' | 'Failed'): Promise<void> {
    const { name, namespace = '' } = pod.metadata;
    const at = seconds();
    const state =
      phase === 'Running'
        ? { running: { startedAt: at } }
        : {
            terminated: { exitCode: phase === 'Succeeded' ? 0 : 1, reason: 'Completed', startedAt: at, finishedAt: at },
          };
    const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: at };
    const containerStatuses = [{ name: RUNNER_CONTAINER, restartCount: 0, state }];
    const status = { phase, conditions: [scheduled], containerStatuses };
    await this.#patchStatus(Pods, { name, namespace }, status);
  }

  async #completeJob(job: Job): Promise<void> {
    const { name, namespace = '' } = job.metadata;
    const now = seconds();
    const condition = (type: string) => ({ type, status: 'True', lastProbeTime: now, lastTransitionTime: now });
    const conditions = [condition('SuccessCriteriaMet'), condition('Complete')];
    const status = { conditions, startTime: now, completionTime: now, succeeded: 1, uncountedTerminatedPods: {} };
    await this.#patchStatus(Jobs, { name, namespace }, status);
  }

  /** The object may be gone: a run can be deleted at any time. */
  async #patchStatus(type: ResourceType, ref: { name: string; namespace: string }, status: object): Promise<void> {
    try {
      await this.#options.server.api.patch(type, ref, { status }, { type: 'merge', subresource: 'status' });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

async function callModel(gateway: RunGateway, { model }: ClaimAnswer, signal: AbortSignal): Promise<void> {
  const answer = await gateway.modelFetch(`https://gateway${model.basePath}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: model.model, messages: [{ role: 'user', content: '/say done' }] }),
    signal,
  });
  if (answer.status !== 200) throw new Error(`the model call was answered ${answer.status}`);
}

function runnerEnvironment(job: Job): Record<string, string> {
  const { containers } = job.spec.template.spec as {
    containers: { name: string; env?: { name: string; value?: string }[] }[];
  };
  const env = containers.find(({ name }) => name === RUNNER_CONTAINER)?.env ?? [];
  return Object.fromEntries(env.map(({ name, value = '' }) => [name, value]));
}

/** Kubernetes wants whole seconds. */
function seconds(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, 'Z');
}

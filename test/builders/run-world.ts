/** The run controller and the roll-up on a recording API, driven by hand: no engine, no timers, one key after the other. */
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import type { Box } from '../../src/api/v1alpha1/box.js';
import type { Agent } from '../../src/api/v1alpha1/agent.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { RunArchiver } from '../../src/controllers/archive/archiver.js';
import { createArchiveControllers } from '../../src/controllers/archive/controller.js';
import { createRunControllers } from '../../src/controllers/agent-run/controller.js';
import type { RunControllers } from '../../src/controllers/agent-run/controller.js';
import { BudgetLedger } from '../../src/controllers/budget/ledger.js';
import { createRetryController } from '../../src/controllers/agent-run/settlement/retries.js';
import type { BacklogScope } from '../../src/run/start/backlog-budget.js';
import type { ControllerPart } from '../../src/controllers/common/controller-part.js';
import { createEventController } from '../../src/controllers/events/controller.js';
import { RollUp } from '../../src/controllers/roll-up/roll-up.js';
import type { ObjectEvent } from '../../src/runtime/event-recorder.js';
import { isRetrySoon } from '../../src/runtime/errors.js';
import { FakeClock } from './fake-clock.js';
import { recordingLog } from './log.js';
import type { MemoryArchive } from './memory-archive.js';
import { RecordingApi } from './recording-api.js';
import type { RecordedCall } from './recording-api.js';
import { NAMESPACE, makeAgent, makeBox, makeWorkspace } from './run-objects.js';
import { controllerAgentInformer } from '../../src/projections/agent.js';
import { controllerTriggerInformer } from '../../src/projections/agent-trigger.js';
import { controllerApiKeyInformer } from '../../src/projections/api-key.js';
import { controllerBoxInformer } from '../../src/projections/box.js';
import { controllerJobInformer } from '../../src/projections/job.js';
import { namespaceInformer } from '../../src/projections/managed-objects.js';
import { nodeInformer } from '../../src/projections/node.js';
import { controllerPodInformer } from '../../src/projections/pod.js';
import { storageClassInformer } from '../../src/projections/storage-class.js';
import { volumeClaimInformer } from '../../src/projections/volume-claim.js';
import { controllerWorkspaceInformer } from '../../src/projections/workspace.js';
import { controllerRunInformer } from '../../src/projections/agent-run.js';

/** Follows enqueued keys until nothing is left to do. */
export class PartDriver {
  readonly #pending = new Set<string>();
  readonly #due = new Map<string, number>();

  constructor(
    private readonly part: ControllerPart,
    private readonly clock: FakeClock,
  ) {
    part.watch((key) => this.#pending.add(key));
  }

  /** Whether a key was worked on. */
  async runDue(): Promise<boolean> {
    for (const [key, at] of this.#due) {
      if (at > this.clock.now()) continue;
      this.#due.delete(key);
      this.#pending.add(key);
    }
    const keys = [...this.#pending];
    this.#pending.clear();
    for (const key of keys) await this.#work(key);
    return keys.length > 0;
  }

  async #work(key: string): Promise<void> {
    try {
      const result = await this.part.reconcile(key, new AbortController().signal);
      const ms = result?.requeueAfterMs;
      if (ms !== undefined) this.#due.set(key, this.clock.now() + ms);
    } catch (error) {
      this.#pending.add(key);
      if (!isRetrySoon(error)) throw error;
    }
  }
}

export interface RunWorldOptions {
  box?: Box;
  agent?: Agent | null;
  maxRunning?: number;
  /** The next leader: same cluster and time, nothing in memory. The old one is not driven any more. */
  takesOverFrom?: Pick<RunWorld, 'api' | 'clock'>;
  archive?: MemoryArchive;
}

export class RunWorld {
  readonly clock: FakeClock;
  readonly api: RecordingApi;
  readonly controllers: RunControllers;
  /** What the metrics were told: reasons of runs that ended, `returned` for those that went back to the queue. */
  readonly ended: string[] = [];
  oldestWaitingSeconds = 0;
  readonly logged = recordingLog();
  /** What people are told in `kubectl describe`. */
  readonly events: ObjectEvent[] = [];
  /** Removed runs that wait for the archive, as the metric says. */
  archiveWaiting = 0;
  /** The budget that has no room for a retry. */
  backlogExceeded: BacklogScope | undefined;
  readonly #drivers: PartDriver[];

  constructor(options: RunWorldOptions = {}) {
    this.clock = options.takesOverFrom?.clock ?? new FakeClock();
    this.api = options.takesOverFrom?.api ?? new RecordingApi({ clock: this.clock });
    if (options.takesOverFrom === undefined) {
      this.api.seed(Workspaces, makeWorkspace());
      this.api.seed(Boxes, options.box ?? makeBox());
      if (options.agent !== null) this.api.seed(Agents, options.agent ?? makeAgent());
    }
    const caches = {
      runs: this.api.informer(controllerRunInformer),
      jobs: this.api.informer(controllerJobInformer),
      pods: this.api.informer(controllerPodInformer),
      agents: this.api.informer(controllerAgentInformer),
      boxes: this.api.informer(controllerBoxInformer),
      workspaces: this.api.informer(controllerWorkspaceInformer),
      nodes: this.api.informer(nodeInformer),
      namespaces: this.api.informer(namespaceInformer),
      volumeClaims: this.api.informer(volumeClaimInformer),
      storageClasses: this.api.informer(storageClassInformer),
    };
    const workspaceOf = (box: string) => Promise.resolve(caches.boxes.get(box)?.spec.workspace);
    const rollUp = new RollUp(this.api, workspaceOf);
    const store = options.archive;
    const archive =
      store === undefined
        ? undefined
        : createArchiveControllers({
            api: this.api,
            clock: this.clock,
            runs: caches.runs,
            archiver: new RunArchiver({ api: this.api, store, agents: caches.agents, workspaceOf }),
            store,
            metrics: { waiting: (runs) => (this.archiveWaiting = runs) },
            log: this.logged.log,
          });
    const budgets = new BudgetLedger(caches, this.clock);
    budgets.watch();
    const events = createEventController({
      caches: {
        ...caches,
        triggers: this.api.informer(controllerTriggerInformer),
        apiKeys: this.api.informer(controllerApiKeyInformer),
      },
      clock: this.clock,
      events: { record: (event) => this.events.push(event) },
    });
    this.controllers = createRunControllers({
      api: this.api,
      onReturned: (run, why) => events.returned(run, why),
      clock: this.clock,
      log: this.logged.log,
      caches,
      maxRunning: options.maxRunning ?? 100,
      rollUp: (run, signal) => rollUp.add(run, signal),
      metrics: {
        ended: (reason) => this.ended.push(reason ?? ''),
        returned: () => this.ended.push('returned'),
        oldestWaiting: (seconds) => (this.oldestWaitingSeconds = seconds),
      },
      archive: archive?.gate,
      budgets,
      jobSettings: () =>
        Promise.resolve({
          runnerImage: 'boxwright-runner:test',
          toolsImage: 'boxwright-tools:test',
          imagePullPolicy: 'Never',
          gatewayIp: '10.0.0.1',
          gatewayServerName: 'gateway',
          gatewayCa: 'CA',
        }),
    });
    const archiving = archive === undefined ? [] : [archive.part];
    const retries = createRetryController({
      api: this.api,
      clock: this.clock,
      log: this.logged.log,
      caches,
      backlogExceeded: () => this.backlogExceeded,
      reserve: () => ({ settle: () => undefined }),
    });
    this.#drivers = [this.controllers.runs, this.controllers.admission, events.part, retries, ...archiving].map(
      (part) => new PartDriver(part, this.clock),
    );
  }

  /** Works until nothing is left to do now. */
  async settle(): Promise<void> {
    for (let round = 0; round < 100; round++) {
      let worked = false;
      for (const driver of this.#drivers) worked = (await driver.runDue()) || worked;
      if (!worked) return;
    }
    throw new Error('the controllers never come to rest');
  }

  /** Lets time pass, then works. */
  async pass(seconds: number): Promise<void> {
    await this.clock.advance(seconds * 1000);
    await this.settle();
  }

  run(name = 'ada-1'): AgentRun {
    const run = this.api.peek(AgentRuns, `${NAMESPACE}/${name}`);
    if (run === undefined) throw new Error(`there is no run ${name}`);
    return run;
  }

  /** Writes since the last call, as `<verb> <resource> <name>`. */
  writes(): string[] {
    const writes = this.api.writes.map(({ verb, resource, key }: RecordedCall) => {
      return `${verb} ${resource} ${key.slice(key.indexOf('/') + 1)}`;
    });
    this.api.writes.length = 0;
    return writes;
  }

  /** Somebody is faster than the next status write of a run: `action` happens just before it arrives. */
  beforeNextStatusWrite(action: () => Promise<void>): void {
    const patch = this.api.patch.bind(this.api);
    this.api.patch = async (type, ref, body, options) => {
      if (type.plural === AgentRuns.plural && options.subresource === 'status') {
        this.api.patch = patch;
        await action();
      }
      return await patch(type, ref, body, options);
    };
  }

  /** As the gateway: claim, then finish. */
  async claim(name = 'ada-1', podUid = 'uid-pod', podName = 'ada-1-abcde'): Promise<void> {
    const claim = {
      podUid,
      podName,
      at: new Date(this.clock.now()).toISOString(),
      gatewayPod: 'g',
      gatewayUid: 'g',
      gatewayAddress: '10.0.0.1:8443',
      epoch: 1,
    };
    await this.#patchStatus(name, { claim });
  }

  async finish(
    name = 'ada-1',
    phase: 'done' | 'error' | 'cancelled' = 'done',
    reason = 'Completed',
    more: Partial<AgentRun['status']> = {},
  ): Promise<void> {
    const finishedAt = new Date(this.clock.now()).toISOString();
    const usage = { steps: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15, costUsd: '0.000100' };
    await this.#patchStatus(name, { phase, reason, finishedAt, usage, usageFinal: true, ...more });
  }

  async #patchStatus(name: string, status: Record<string, unknown>): Promise<void> {
    await this.api.patch(
      AgentRuns,
      { namespace: NAMESPACE, name },
      { status },
      { type: 'merge', subresource: 'status' },
    );
    this.api.writes.pop();
  }
}

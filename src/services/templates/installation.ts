/**
 * The writes of one install. Every agent is made with the mark of src/api/installing.ts, which hides it with all that
 * belongs to it; the last write takes the mark off the first agent and so shows all of them at once. A process that dies
 * before that leaves hidden agents, which the controller of Agent removes after the deadline.
 */
import { INSTALL_DEADLINE_MS, installMark, installMarkOf } from '../../api/installing.js';
import type { InstallMark } from '../../api/installing.js';
import { uncountedInstall } from '../../api/install-count.js';
import type { InstalledTemplate } from '../../api/install-count.js';
import { ANNOTATION_INSTALLING, ANNOTATION_TEMPLATE, ANNOTATION_UNCOUNTED_INSTALL } from '../../api/labels.js';
import type { KubeObject, ResourceType } from '../../api/meta.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../../api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../../api/v1alpha1/agent-skill.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import type { Agent } from '../../api/v1alpha1/agent.js';
import { isAlreadyExists, isConflict, isNotFound, isRefused, orUndefined } from '../../kube/errors.js';
import { renameMentions } from '../../templates/mentions.js';
import { fromSnapshot, mapPrompts } from '../../templates/snapshot.js';
import type { AgentSnapshot } from '../../templates/snapshot.js';
import { newChild, passBarrier } from '../agents/agent-children.js';
import { ACTIVE_WAIT_MS, freeHandle, inactiveReasonOf, newAgent, takenHandles } from '../agents/agents.js';
import { withTimeout } from '../../runtime/with-timeout.js';
import { connectorSummaries } from '../connectors/connectors.js';
import type { Caller } from '../keys/key-check.js';
import { idOf } from '../scope.js';
import { ACKNOWLEDGE_MS } from '../../run/start/start-run.js';
import { newTokenId } from '../triggers/trigger-token.js';
import { UserError } from '../../api/user-error.js';
import type { TemplateDeps } from './find.js';
import { projectApiAgent } from '../../projections/agent.js';
import type { ApiAgent } from '../../projections/agent.js';
import type { ApiBox } from '../../projections/box.js';
import { KUBE_CALL_MS, kubeCall } from '../kube-call.js';

/** Installs of the same template at once in one workspace: the one that finds a handle taken starts over. */
const MAX_ATTEMPTS = 5;
/** Attempts to take one object back; the controller removes what is left over. */
const MAX_UNDO_ATTEMPTS = 3;
/** No write is under way any more when the controller takes an install back: a child would be left without its agent. */
const LAST_WRITE_MS = 2 * KUBE_CALL_MS;
/** The commit names the version of the agent that it saw; its controller writes at the same time. */
const MAX_COMMIT_ATTEMPTS = 8;

interface Installed {
  snapshot: AgentSnapshot;
  agent: ApiAgent;
}

export interface InstallTarget {
  box: ApiBox;
  /** Key of the new triggers and schedules. */
  keyId: string;
  /** What stands in the annotation of the new agents. */
  source: string;
  /** What is counted. */
  template: InstalledTemplate;
}

/** It is unknown whether the last write happened, so nothing may be taken back any more. */
class CommitUnclearError extends Error {
  override readonly name = 'CommitUnclearError';
}

/** One install: what it has made so far, so that it can be taken back. */
export class Installation {
  readonly #agents: ApiAgent[] = [];
  /** Kind -> the version of the last object of it that was made. */
  readonly #last = new Map<string, string>();
  #until = 0;

  constructor(
    private readonly deps: TemplateDeps,
    private readonly caller: Caller,
    private readonly target: InstallTarget,
  ) {}

  /** Makes everything and commits; the agents as install_template shows them. Rejects when nothing is installed. */
  async run(snapshots: readonly AgentSnapshot[]) {
    const taken = takenHandles(this.deps, this.caller, this.target.box);
    for (let attempt = 1; ; attempt++) {
      try {
        this.#until = this.deps.clock.now() + INSTALL_DEADLINE_MS;
        const installed = await this.#seen(await this.#create(snapshots, new Set(taken)));
        const records = await this.#startSetups(installed);
        await this.#commit();
        return records;
      } catch (error) {
        if (error instanceof CommitUnclearError) throw error.cause;
        // What is taken back keeps its names until the controller has removed all of it.
        for (const { name } of this.#agents) taken.add(name);
        await this.#undo();
        if (!(error instanceof HandleTakenError) || attempt === MAX_ATTEMPTS) throw inWords(error, this.target.box);
        taken.add(error.handle);
      }
    }
  }

  async #create(snapshots: readonly AgentSnapshot[], taken: Set<string>): Promise<Installed[]> {
    const handles = new Map<string, string>();
    for (const { handle } of snapshots) {
      const free = freeHandle(handle, taken);
      taken.add(free);
      handles.set(handle, free);
    }
    const installed: Installed[] = [];
    for (const captured of snapshots) {
      const snapshot = await mapPrompts(captured, (text) => renameMentions(text, handles));
      const agent = await this.#createAgent(snapshot, handles.get(captured.handle) ?? captured.handle);
      installed.push({ snapshot, agent });
    }
    return installed;
  }

  async #createAgent(snapshot: AgentSnapshot, handle: string): Promise<ApiAgent> {
    const { keyId } = this.target;
    const specs = fromSnapshot(snapshot, handle, () => ({ tokenId: newTokenId(), keyId }));
    const agent = projectApiAgent(await this.#make(Agents, this.#newAgent(specs.agent, handle), handle));
    this.#agents.push(agent);
    for (const { slug, spec } of specs.skills) {
      await this.#make(AgentSkills, { ...this.#child(AgentSkills, agent, slug), spec }, handle);
    }
    for (const { slug, spec } of specs.schedules) {
      await this.#make(AgentSchedules, { ...this.#child(AgentSchedules, agent, slug), spec }, handle);
    }
    for (const { slug, spec } of specs.triggers) {
      await this.#make(AgentTriggers, { ...this.#child(AgentTriggers, agent, slug), spec }, handle);
    }
    return agent;
  }

  #newAgent(spec: Agent['spec'], handle: string): Agent {
    const { box, source } = this.target;
    const agent = newAgent(this.deps, this.caller, { box: box.name, agent: handle }, spec);
    // Its finalizer is needed here too: the first agent must not leave before the others need it no more.
    const marks = { [ANNOTATION_TEMPLATE]: source, [ANNOTATION_INSTALLING]: installMark(this.#mark()) };
    return { ...agent, metadata: { ...agent.metadata, annotations: { ...agent.metadata.annotations, ...marks } } };
  }

  #mark(): InstallMark {
    const [first] = this.#agents;
    return first === undefined
      ? { until: this.#until }
      : { until: this.#until, first: { name: first.name, uid: first.uid } };
  }

  #child(type: ResourceType, agent: ApiAgent, slug: string) {
    return newChild(this.deps, type, this.caller, { agent, slug });
  }

  async #make<T extends KubeObject>(type: ResourceType<T>, object: T, handle: string): Promise<T> {
    if (this.deps.clock.now() >= this.#until - LAST_WRITE_MS) {
      throw new UserError('nothing was installed: the cluster took too long for it; try again later');
    }
    try {
      const created = await kubeCall(this.deps, (signal) => this.deps.api.create(type, object, { signal }));
      this.#last.set(type.kind, created.metadata.resourceVersion ?? '');
      return created;
    } catch (error) {
      // A namesake, or what a deleted one has left behind: another handle has room for all.
      if (isAlreadyExists(error)) throw new HandleTakenError(handle);
      throw error;
    }
  }

  /** Waits until every API pod has seen the objects, and at most 5 s for the controller's decision about the slots. */
  async #seen(installed: readonly Installed[]): Promise<Installed[]> {
    const barriers = [...this.#last].map(([kind, resourceVersion]) =>
      this.deps.barrier.passed({ kind, resourceVersion }),
    );
    const agents = installed.map(async ({ snapshot, agent }) => {
      const key = `${agent.namespace}/${agent.name}`;
      const until = (agent: ApiAgent) => agent.active !== undefined;
      return { snapshot, agent: (await this.deps.waiter.wait({ key, until, ms: ACTIVE_WAIT_MS })) ?? agent };
    });
    const [seen] = await Promise.all([Promise.all(agents), Promise.all(barriers)]);
    return seen;
  }

  /** The runs wait until the install is committed; those of an agent without a slot wait on, like every run of it. */
  async #startSetups(installed: readonly Installed[]) {
    const records = [];
    let lastVersion: string | undefined;
    for (const { snapshot, agent } of installed) {
      const run = await this.#startSetup(snapshot, agent);
      lastVersion = run?.resourceVersion ?? lastVersion;
      records.push({
        templateAgentId: snapshot.id,
        agentId: idOf(agent),
        name: agent.displayName,
        handle: agent.handle,
        active: agent.active === true,
        inactiveReason: inactiveReasonOf(agent),
        connectors: connectorSummaries(this.deps, agent),
        setupRunId: run?.runId ?? null,
        setupSessionId: run?.sessionId ?? null,
      });
    }
    if (lastVersion !== undefined) {
      await this.deps.barrier.passed({ kind: AgentRuns.kind, resourceVersion: lastVersion });
    }
    return records;
  }

  async #startSetup({ spec }: AgentSnapshot, agent: ApiAgent) {
    const prompt = spec.setup?.required === true ? spec.setup.prompt : undefined;
    if (prompt === undefined) return undefined;
    const scope = this.deps.backlogExceeded({ box: agent.box, agent: agent.name });
    if (scope !== undefined) {
      throw new UserError(
        `nothing was installed: the setup would be one run too many (limit of the ${scope}): try again when some have finished`,
      );
    }
    const request = {
      agent: { box: agent.box, agent: agent.name },
      agentUid: agent.uid,
      message: prompt,
      trigger: { origin: 'api' as const },
      sessionTitle: 'Setup',
      actor: this.caller.keyPrefix,
    };
    return withTimeout(this.deps.clock, ACKNOWLEDGE_MS, (signal) => this.deps.startRun(request, signal));
  }

  /** The one write that shows the agents and counts the install: it fails when the controller has begun to take it back. */
  async #commit(): Promise<void> {
    const [first] = this.#agents;
    if (first === undefined) return;
    for (let attempt = 1; ; attempt++) {
      const agent = await this.#readFirst(first);
      const { uid, resourceVersion } = agent.metadata;
      const annotations = {
        [ANNOTATION_INSTALLING]: null,
        [ANNOTATION_UNCOUNTED_INSTALL]: uncountedInstall(this.target.template, first.uid),
      };
      const metadata = { uid, resourceVersion, annotations };
      try {
        const written = await kubeCall(this.deps, (signal) =>
          this.deps.api.patch(Agents, first, { metadata }, { type: 'merge', signal }),
        );
        await passBarrier(this.deps, Agents, written);
        return;
      } catch (error) {
        if (isNotFound(error)) throw takenBack();
        if (!isRefused(error)) return await this.#settle(first, error);
        if (!isConflict(error) || attempt === MAX_COMMIT_ATTEMPTS) throw error;
      }
    }
  }

  /** The first agent as it is stored; rejects when the controller has taken it back. */
  async #readFirst({ namespace, name, uid }: ApiAgent): Promise<Agent> {
    const ref = { namespace, name };
    const agent = await kubeCall(this.deps, (signal) => orUndefined(this.deps.api.get(Agents, ref, { signal })));
    if (agent === undefined || agent.metadata.uid !== uid || agent.metadata.deletionTimestamp !== undefined) {
      throw takenBack();
    }
    return agent;
  }

  /** The answer of the commit was lost: what is stored decides, and if that cannot be read, nobody knows. */
  async #settle(first: ApiAgent, cause: unknown): Promise<void> {
    const agent = await this.#readFirst(first).catch((error: unknown) => {
      if (error instanceof UserError) throw error;
      throw new CommitUnclearError('the answer of the commit was lost', { cause });
    });
    // It may still be on its way: only the controller takes back, after the deadline, what is not committed by then.
    if (installMarkOf(agent.metadata) !== undefined) {
      throw new CommitUnclearError('the commit was not seen', { cause });
    }
    await passBarrier(this.deps, Agents, agent);
  }

  /** The first agent goes first: then it cannot be committed. Whatever belongs to the agents goes with them. */
  async #undo(): Promise<void> {
    for (const agent of this.#agents) await this.#takeBack(agent);
    this.#agents.length = 0;
    this.#last.clear();
  }

  async #takeBack({ namespace, name, uid }: ApiAgent): Promise<void> {
    for (let attempt = 1; attempt <= MAX_UNDO_ATTEMPTS; attempt++) {
      try {
        return await kubeCall(this.deps, (signal) =>
          this.deps.api.delete(Agents, { namespace, name }, { uid, signal }),
        );
      } catch (error) {
        if (isNotFound(error) || isConflict(error)) return;
      }
    }
  }
}

class HandleTakenError extends Error {
  override readonly name = 'HandleTakenError';
  constructor(readonly handle: string) {
    super('the handle is taken');
  }
}

function takenBack(): UserError {
  return new UserError('nothing was installed: it took so long that the agents were taken back; try again later');
}

function inWords(error: unknown, box: ApiBox): unknown {
  if (error instanceof HandleTakenError) {
    return new UserError('nothing was installed: the handles of the agents are taken again and again; try again');
  }
  if (isNotFound(error)) {
    return new UserError(`Box ${box.name} is not ready: its namespace is not there yet; try again in a moment`);
  }
  return error;
}

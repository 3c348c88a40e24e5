/**
 * install_template (tools.md 4): all agents or none. Objects are made one after the other and taken back in the reverse
 * order when one cannot be made.
 */
import { API_VERSION } from '../../api/define-resource.js';
import { ANNOTATION_CREATED_AT, ANNOTATION_REQUESTED_BY, ANNOTATION_TEMPLATE } from '../../api/labels.js';
import type { KubeObject, ResourceType } from '../../api/meta.js';
import { boxNamespace } from '../../api/names.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../../api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../../api/v1alpha1/agent-skill.js';
import { AgentTemplates } from '../../api/v1alpha1/agent-template.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import type { Agent } from '../../api/v1alpha1/agent.js';
import { isAlreadyExists, isConflict, isNotFound } from '../../kube/errors.js';
import { isoNow } from '../../runtime/clock.js';
import { renameMentions } from '../../templates/mentions.js';
import { fromSnapshot, mapPrompts } from '../../templates/snapshot.js';
import type { AgentSnapshot } from '../../templates/snapshot.js';
import { newChild } from '../agent-children.js';
import { ACTIVE_WAIT_MS, freeHandle, inactiveReasonOf, takenHandles } from '../agents.js';
import { bounded } from '../bounded.js';
import { connectorSummaries } from '../connectors.js';
import type { Caller } from '../key-check.js';
import { chooseBox, idOf, kubeCall } from '../scope.js';
import { ACKNOWLEDGE_MS } from '../start-run.js';
import { newTokenId } from '../trigger-token.js';
import { currentKey } from '../triggers.js';
import { UserError } from '../user-error.js';
import { projectAgent } from '../views.js';
import type { AgentView, BoxView, TemplateView } from '../views.js';
import { findTemplate, readTemplate, templateIdOf } from './find.js';
import type { TemplateDeps } from './find.js';
import { readVersion, versionOf } from './read.js';

/** Installs of the same template at once in one workspace: the one that finds a handle taken starts over. */
const MAX_ATTEMPTS = 5;
/** Tries to take one object back. */
const MAX_UNDO_ATTEMPTS = 3;

export interface InstallRequest {
  templateId: string;
  spaceId?: string | undefined;
  version?: number | undefined;
}

interface Installed {
  snapshot: AgentSnapshot;
  agent: AgentView;
}

/** The result of install_template. */
export async function installTemplate(deps: TemplateDeps, caller: Caller, request: InstallRequest) {
  const template = await findTemplate(deps, caller, request.templateId);
  const box = chooseBox(deps, caller, request.spaceId);
  const version = versionOf(template, caller, { version: request.version, default: 'latest' });
  const snapshots = await readVersion(deps, template, version ?? template.draft);
  if (snapshots.length === 0) throw new UserError('the template has no agent: add one with add_template_agent');
  const keyId = currentKey(deps);
  const source = `${templateIdOf(template)}@${version?.version ?? 0}`;
  const install = new Installation(deps, caller, { box, keyId, source });
  const installed = await install.run(snapshots);
  await countInstall(deps, template);
  return {
    templateId: templateIdOf(template),
    version: version?.version ?? 0,
    spaceId: box.name,
    agents: installed,
  };
}

interface Target {
  box: BoxView;
  keyId: string;
  /** What stands in the annotation of the new agents. */
  source: string;
}

/** One install: what it has made so far, so that it can be taken back. */
class Installation {
  readonly #made: { type: ResourceType; object: KubeObject }[] = [];

  constructor(
    private readonly deps: TemplateDeps,
    private readonly caller: Caller,
    private readonly target: Target,
  ) {}

  async run(snapshots: readonly AgentSnapshot[]) {
    const taken = takenHandles(this.deps, this.caller, this.target.box);
    for (let attempt = 1; ; attempt++) {
      try {
        const installed = await this.#create(snapshots, new Set(taken));
        return await this.#startSetups(await this.#seen(installed));
      } catch (error) {
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
      const snapshot = mapPrompts(captured, (text) => renameMentions(text, handles));
      const agent = await this.#createAgent(snapshot, handles.get(captured.handle) ?? captured.handle);
      installed.push({ snapshot, agent });
    }
    return installed;
  }

  async #createAgent(snapshot: AgentSnapshot, handle: string): Promise<AgentView> {
    const { keyId, box, source } = this.target;
    const specs = fromSnapshot(snapshot, handle, () => ({ tokenId: newTokenId(), keyId }));
    const agent: Agent = {
      apiVersion: API_VERSION,
      kind: Agents.kind,
      metadata: {
        namespace: boxNamespace(box.name),
        name: handle,
        annotations: {
          [ANNOTATION_REQUESTED_BY]: this.caller.keyPrefix,
          [ANNOTATION_CREATED_AT]: isoNow(this.deps.clock),
          [ANNOTATION_TEMPLATE]: source,
        },
      },
      spec: specs.agent,
    };
    const view = projectAgent(await this.#make(Agents, agent, handle));
    for (const { slug, spec } of specs.skills) {
      await this.#make(AgentSkills, { ...this.#child(AgentSkills, view, slug), spec }, handle);
    }
    for (const { slug, spec } of specs.schedules) {
      await this.#make(AgentSchedules, { ...this.#child(AgentSchedules, view, slug), spec }, handle);
    }
    for (const { slug, spec } of specs.triggers) {
      await this.#make(AgentTriggers, { ...this.#child(AgentTriggers, view, slug), spec }, handle);
    }
    return view;
  }

  #child(type: ResourceType, agent: AgentView, slug: string) {
    return newChild(this.deps, type, this.caller, { agent, slug });
  }

  async #make<T extends KubeObject>(type: ResourceType<T>, object: T, handle: string): Promise<T> {
    try {
      const created = await kubeCall(this.deps, (signal) => this.deps.api.create(type, object, { signal }));
      this.#made.push({ type, object: created });
      return created;
    } catch (error) {
      // A namesake, or what a deleted one has left behind: another handle has room for all.
      if (isAlreadyExists(error)) throw new HandleTakenError(handle);
      throw error;
    }
  }

  /** Waits until every API pod has seen the objects, and at most 5 s for the controller's word on the slots. */
  async #seen(installed: readonly Installed[]): Promise<Installed[]> {
    const last = new Map(this.#made.map(({ object }) => [object.kind, object.metadata.resourceVersion ?? '']));
    const barriers = [...last].map(([kind, resourceVersion]) => this.deps.barrier.passed({ kind, resourceVersion }));
    const agents = installed.map(async ({ snapshot, agent }) => {
      const key = `${agent.namespace}/${agent.name}`;
      const until = (view: AgentView) => view.active !== undefined;
      return { snapshot, agent: (await this.deps.waiter.wait({ key, until, ms: ACTIVE_WAIT_MS })) ?? agent };
    });
    const [seen] = await Promise.all([Promise.all(agents), Promise.all(barriers)]);
    return seen;
  }

  /** The setup of an agent without a slot waits in the queue like every run of such an agent. */
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

  async #startSetup({ spec }: AgentSnapshot, agent: AgentView) {
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
    return bounded(this.deps.clock, ACKNOWLEDGE_MS, (signal) => this.deps.startRun(request, signal));
  }

  /** Last made, first taken back; the agents' controller removes their runs. */
  async #undo(): Promise<void> {
    for (const { type, object } of this.#made.toReversed()) await this.#takeBack(type, object);
    this.#made.length = 0;
  }

  async #takeBack(type: ResourceType, { metadata }: KubeObject): Promise<void> {
    const { namespace = '', name, uid = '' } = metadata;
    for (let attempt = 1; attempt <= MAX_UNDO_ATTEMPTS; attempt++) {
      try {
        return await kubeCall(this.deps, (signal) => this.deps.api.delete(type, { namespace, name }, { uid, signal }));
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

function inWords(error: unknown, box: BoxView): unknown {
  if (error instanceof HandleTakenError) {
    return new UserError('nothing was installed: the handles of the agents are taken again and again; try again');
  }
  if (isNotFound(error)) {
    return new UserError(`Box ${box.name} is not ready: its namespace is not there yet; try again in a moment`);
  }
  return error;
}

/** How often a template was installed is a number for people: when it cannot be written, the install stands. */
async function countInstall(deps: TemplateDeps, known: TemplateView): Promise<void> {
  for (let attempt = 1; attempt <= MAX_UNDO_ATTEMPTS; attempt++) {
    try {
      const template = await readTemplate(deps, known);
      if (template === undefined) return;
      const metadata = { resourceVersion: template.metadata.resourceVersion };
      const body = { metadata, status: { installs: (template.status?.installs ?? 0) + 1 } };
      const options = { type: 'merge', subresource: 'status' } as const;
      const written = await kubeCall(deps, (signal) =>
        deps.api.patch(AgentTemplates, known, body, { ...options, signal }),
      );
      await deps.barrier.passed({
        kind: AgentTemplates.kind,
        resourceVersion: written.metadata.resourceVersion ?? '',
      });
      return;
    } catch (error) {
      if (!isConflict(error)) return;
    }
  }
}

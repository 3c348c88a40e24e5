/**
 * Standings of all agents, computed from caches and memoized until a relevant change: a thousand agents that are created
 * at once cost a few computations, not a thousand.
 */
import { findCondition } from '../../api/conditions.js';
import { objectKey } from '../../api/meta.js';
import { agentId, boxNamespace, boxOfNamespace } from '../../api/names.js';
import type { Box } from '../../api/v1alpha1/box.js';
import type { Workspace } from '../../api/v1alpha1/workspace.js';
import type { Cache } from '../../kube/types.js';
import { all } from '../common/controller-part.js';
import { READY } from '../common/ready.js';
import { sameStanding, standings } from './standing.js';
import type { AgentEntry, Standing } from './standing.js';
import type { ControllerAgent } from '../../projections/agent.js';
import { BY_NAMESPACE, BY_WORKSPACE } from '../../projections/indexes.js';

export interface DirectoryCaches {
  agents: Cache<ControllerAgent>;
  boxes: Cache<Box>;
  workspaces: Cache<Workspace>;
}

export class AgentDirectory {
  readonly #known = new Map<string, Map<string, Standing>>();
  readonly #changed = new Set<string>();
  #enqueue: (key: string) => void = () => undefined;

  constructor(private readonly caches: DirectoryCaches) {}

  /**
   * Subscribes. Keys come back for the agents that an event is about; agents whose standing it moved (the next one for
   * a freed slot) follow from {@link refresh}, which every reconcile calls.
   */
  watch(enqueue: (key: string) => void): () => void {
    this.#enqueue = enqueue;
    const { agents, boxes, workspaces } = this.caches;
    return all([
      agents.onChange(({ key, previous, current }) => {
        if (previous === undefined || current === undefined || hasMoved(previous, current)) {
          this.#touch(this.#boxOf(current ?? previous)?.spec.workspace);
        }
        enqueue(key);
      }),
      boxes.onChange(({ previous, current }) => {
        if (previous !== undefined && current !== undefined && isOpen(previous) === isOpen(current)) return;
        this.#touchBox(current ?? previous);
      }),
      workspaces.onChange(({ key, previous, current }) => {
        if (previous?.spec.slots === current?.spec.slots) return;
        this.#touch(key);
        for (const box of boxes.byIndex(BY_WORKSPACE, key)) this.#touchBox(box);
      }),
    ]);
  }

  /** Recomputes what changed and calls back with every agent whose standing has changed. */
  refresh(): void {
    for (const workspace of this.#changed) {
      const before = this.#known.get(workspace) ?? new Map<string, Standing>();
      const after = this.#compute(workspace);
      this.#known.set(workspace, after);
      for (const [key, standing] of after) {
        const previous = before.get(key);
        if (previous !== undefined && !sameStanding(previous, standing)) this.#enqueue(key);
      }
    }
    this.#changed.clear();
  }

  /** The agent's standing; undefined when it is not in a Box that is ours. */
  standing(agent: ControllerAgent): Standing | undefined {
    const box = this.#boxOf(agent);
    if (box === undefined || !isOpen(box)) return undefined;
    const { workspace } = box.spec;
    if (!this.#known.has(workspace)) this.#known.set(workspace, this.#compute(workspace));
    return this.#known.get(workspace)?.get(objectKey(agent.metadata));
  }

  #compute(workspace: string): Map<string, Standing> {
    const { agents, boxes, workspaces } = this.caches;
    const entries = boxes
      .byIndex(BY_WORKSPACE, workspace)
      .filter(isOpen)
      .flatMap((box) =>
        agents
          .byIndex(BY_NAMESPACE, boxNamespace(box.metadata.name))
          .filter((agent) => agent.metadata.deletionTimestamp === undefined)
          .map((agent) => entryOf(box, agent, this.#known.get(workspace)?.get(objectKey(agent.metadata)))),
      );
    return standings({ name: workspace, slots: workspaces.get(workspace)?.spec.slots }, entries);
  }

  #boxOf(agent: ControllerAgent | undefined): Box | undefined {
    const name = boxOfNamespace(agent?.metadata.namespace ?? '');
    return name === undefined ? undefined : this.caches.boxes.get(name);
  }

  #touch(workspace: string | undefined): void {
    if (workspace !== undefined) this.#changed.add(workspace);
  }

  #touchBox(box: Box | undefined): void {
    if (box === undefined) return;
    this.#touch(box.spec.workspace);
    for (const agent of this.caches.agents.byIndex(BY_NAMESPACE, boxNamespace(box.metadata.name))) {
      this.#enqueue(objectKey(agent.metadata));
    }
  }
}

/** False for a Box whose namespace belongs to somebody else: the agents in it are not ours. */
function isOpen(box: Box): boolean {
  return findCondition(box.status?.conditions, READY)?.reason !== 'NamespaceExists';
}

function hasMoved(previous: ControllerAgent, current: ControllerAgent): boolean {
  return (
    handleOf(previous) !== handleOf(current) ||
    previous.metadata.uid !== current.metadata.uid ||
    previous.metadata.deletionTimestamp !== current.metadata.deletionTimestamp
  );
}

function handleOf(agent: ControllerAgent): string {
  return agent.spec.handle ?? agent.metadata.name;
}

/** What an agent holds is in its status, but a decision made here a moment ago is newer than the cache. */
function entryOf(box: Box, agent: ControllerAgent, decided: Standing | undefined): AgentEntry {
  const handle = handleOf(agent);
  return {
    key: objectKey(agent.metadata),
    agentId: agentId({ box: box.metadata.name, agent: agent.metadata.name }),
    createdAt: Date.parse(agent.metadata.creationTimestamp ?? ''),
    handle,
    holdsSlot: decided?.active ?? agent.status?.active === true,
    holdsHandle: (decided ?? agent.status)?.handle === handle,
  };
}

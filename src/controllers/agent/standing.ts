/**
 * Who holds the slots and the handles of a workspace (spec 3), as pure functions: the oldest agents do. A slot
 * or handle that becomes free goes to the oldest agent that waits for it.
 */

/** The fields of an agent that decide its standing. */
export interface AgentEntry {
  /** `<namespace>/<name>`. */
  key: string;
  /** `<box>.<agent>`, for messages. */
  agentId: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  /** spec.handle, else the object name. */
  handle: string;
  /** What the agent held last; decides only between agents of the same age. */
  holdsSlot: boolean;
  holdsHandle: boolean;
}

export interface WorkspaceSlots {
  name: string;
  /** Undefined: there is no such Workspace. */
  slots: number | undefined;
}

export interface Standing {
  active: boolean;
  /** Set when not active. */
  inactiveReason?: string;
  /** Absent when an older agent has it. */
  handle?: string;
  /** The agentId of that older agent. */
  conflictsWith?: string;
}

/**
 * Oldest first. Creation times count in seconds: within the same second the agent that already holds the slot
 * or handle comes first, so that a newcomer takes nothing away; then the key decides, so that every controller decides alike.
 */
function byAge(holds: 'holdsSlot' | 'holdsHandle'): (a: AgentEntry, b: AgentEntry) => number {
  return (a, b) => {
    if (a.createdAt !== b.createdAt) return a.createdAt - b.createdAt;
    if (a[holds] !== b[holds]) return a[holds] ? -1 : 1;
    return a.key < b.key ? -1 : 1;
  };
}

/** The keys of the agents that hold a slot; `agents` are sorted oldest first. */
export function assignSlots(agents: readonly Pick<AgentEntry, 'key'>[], slots: number): ReadonlySet<string> {
  return new Set(agents.slice(0, slots).map((agent) => agent.key));
}

/** Handle -> the agent that it resolves to; `agents` are sorted oldest first. */
export function resolveHandles(agents: readonly AgentEntry[]): ReadonlyMap<string, AgentEntry> {
  const owners = new Map<string, AgentEntry>();
  for (const agent of agents) if (!owners.has(agent.handle)) owners.set(agent.handle, agent);
  return owners;
}

/** Every agent's standing in its workspace, by key. Agents that are being deleted must not be in the list. */
export function standings(workspace: WorkspaceSlots, agents: readonly AgentEntry[]): Map<string, Standing> {
  const holders = assignSlots(agents.toSorted(byAge('holdsSlot')), workspace.slots ?? 0);
  const owners = resolveHandles(agents.toSorted(byAge('holdsHandle')));
  const waiting = { active: false, inactiveReason: noSlot(workspace) };
  return new Map(
    agents.map((agent) => {
      const slot = holders.has(agent.key) ? { active: true } : waiting;
      const owner = owners.get(agent.handle);
      const isOwner = owner === undefined || owner.key === agent.key;
      return [agent.key, { ...slot, ...(isOwner ? { handle: agent.handle } : { conflictsWith: owner.agentId }) }];
    }),
  );
}

/** Whether nothing has changed for the agent. */
export function sameStanding(a: Standing, b: Standing): boolean {
  return (
    a.active === b.active &&
    a.inactiveReason === b.inactiveReason &&
    a.handle === b.handle &&
    a.conflictsWith === b.conflictsWith
  );
}

function noSlot({ name, slots }: WorkspaceSlots): string {
  if (slots === undefined) return `workspace ${name} does not exist; create it, then its agents get their slots`;
  return (
    `plan limit reached: ${slots} of ${slots} agent slots of workspace ${name} are in use; ` +
    `the agent does not run until a slot frees: delete an agent or raise spec.slots of the Workspace`
  );
}

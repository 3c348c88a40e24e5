/** Whose budgets limit a run: its Agent, its Box and its Workspace; and the runs whose grants it shares. */
import { boxNamespace, boxOfNamespace, callersOf } from '../../api/names.js';
import type { Grant } from '../../run/usage/budget.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { Budgets, FoldedTotals } from '../../api/v1alpha1/common.js';
import type { Cache } from '../../kube/types.js';
import { BY_CALLER } from '../../projections/agent-run.js';
import { BY_AGENT, BY_NAMESPACE, BY_WORKSPACE, agentKey } from '../../projections/indexes.js';

/** What matters here of an Agent, Box or Workspace. */
export interface BudgetOwner {
  spec: { budget?: Budgets | undefined };
  status?: Sums | undefined;
}

/** What removed runs used, in the status of those who count them. */
export interface Sums {
  folded?: FoldedTotals | undefined;
  folding?: string[] | undefined;
}

export interface BudgetCaches {
  runs: Pick<Cache<AgentRun>, 'get' | 'byIndex' | 'onChange'>;
  jobs: Pick<Cache<{ ownerUid: string | undefined; grant?: Grant | undefined }>, 'get'>;
  agents: Pick<Cache<BudgetOwner>, 'get' | 'onChange'>;
  boxes: Pick<
    Cache<BudgetOwner & { metadata: { name: string }; spec: { workspace: string } }>,
    'get' | 'byIndex' | 'onChange'
  >;
  workspaces: Pick<Cache<BudgetOwner>, 'get' | 'onChange'>;
}

/** Where a run is, or was if it is gone. */
export interface Place {
  namespace: string;
  agent: string;
  /** UIDs of the runs above it. */
  callers: readonly string[];
}

/** Some runs that are counted together. */
export interface RunSet {
  /** For an owner: `<kind>:<key in the cache of its kind>`. */
  id?: string;
  sums: Sums | undefined;
  runs: () => readonly AgentRun[];
  has: (place: Place) => boolean;
}

export type OwnerKind = 'Agent' | 'Box' | 'Workspace';

/** The runs of one owner. */
export interface OwnerScope extends RunSet {
  kind: OwnerKind;
  name: string;
  id: string;
  budget: Budgets;
}

/** How often the gateway returned what a run did not use. */
export function returnsOf(run: Pick<AgentRun, 'status'>): number {
  return run.status?.budget?.returned ?? 0;
}

export function placeOf(run: AgentRun): Place {
  const { namespace = '' } = run.metadata;
  return { namespace, agent: run.spec.agent, callers: callersOf(run).map(({ uid }) => uid) };
}

/** Those of Agent, Box and Workspace of a run that exist. */
export function ownerScopes(
  caches: BudgetCaches,
  { namespace, agent }: Pick<Place, 'namespace' | 'agent'>,
): OwnerScope[] {
  const { runs, agents, boxes, workspaces } = caches;
  const key = agentKey(namespace, agent);
  const boxName = boxOfNamespace(namespace) ?? '';
  const box = boxes.get(boxName);
  const workspace = box?.spec.workspace ?? '';
  const namespaces = () =>
    new Set(boxes.byIndex(BY_WORKSPACE, workspace).map(({ metadata }) => boxNamespace(metadata.name)));
  const scope = (kind: OwnerKind, key: string, owner: BudgetOwner | undefined, set: Omit<RunSet, 'sums'>) => {
    if (owner === undefined) return [];
    const name = kind === 'Agent' ? agent : key;
    return [{ kind, name, id: `${kind}:${key}`, budget: owner.spec.budget ?? [], sums: owner.status, ...set }];
  };
  return [
    ...scope('Agent', key, agents.get(key), {
      runs: () => runs.byIndex(BY_AGENT, key),
      has: (place) => place.namespace === namespace && place.agent === agent,
    }),
    ...scope('Box', boxName, box, {
      runs: () => runs.byIndex(BY_NAMESPACE, namespace),
      has: (place) => place.namespace === namespace,
    }),
    ...scope('Workspace', workspace, box === undefined ? undefined : workspaces.get(workspace), {
      runs: () => [...namespaces()].flatMap((one) => runs.byIndex(BY_NAMESPACE, one)),
      has: (place) => namespaces().has(place.namespace),
    }),
  ];
}

/** The runs above a run that exist, the outermost first. */
export function callerRuns({ runs }: Pick<BudgetCaches, 'runs'>, run: AgentRun): AgentRun[] {
  return callersOf(run).flatMap(({ name, uid }) => {
    const caller = runs.get(`${run.metadata.namespace ?? ''}/${name}`);
    return caller?.metadata.uid === uid ? [caller] : [];
  });
}

/** The runs below a run. */
export function familyOf({ runs }: Pick<BudgetCaches, 'runs'>, { metadata: { uid = '' }, status }: AgentRun): RunSet {
  return { sums: status, runs: () => runs.byIndex(BY_CALLER, uid), has: ({ callers }) => callers.includes(uid) };
}

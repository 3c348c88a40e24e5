/** Takes one finished run with its transcript from the cluster to the archive. */
import { boxOfNamespace } from '../../api/names.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import type { ArchiveWriter } from '../../archive/types.js';
import { orUndefined } from '../../kube/errors.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import { sessionTitleOf } from '../../run/session/title.js';
import { readFinished } from '../../transcript/chunk-store.js';
import { refOf } from '../common/finalizer.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import type { ControllerAgent } from '../../projections/agent.js';
import { agentUidOf } from '../../run/status.js';
import { agentKey } from '../../projections/indexes.js';

export interface ArchiverDependencies {
  api: Pick<KubeApi, 'get'>;
  store: Pick<ArchiveWriter, 'put'>;
  agents: Pick<Cache<ControllerAgent>, 'get'>;
  /** The Workspace of a Box; undefined when the Box is gone. */
  workspaceOf(box: string, signal: AbortSignal): Promise<string | undefined>;
}

/** `needless`: nobody could ever read it, since its agent or Box is going or gone. */
export type ArchiveResult = 'stored' | 'needless';

export class RunArchiver {
  constructor(private readonly deps: ArchiverDependencies) {}

  /**
   * Resolves when the archive has the finished run, or never needs it. Repeating it is a success. One GET of the run and
   * one a chunk. Rejects with an ArchiveUnavailableError, or when the API server does.
   */
  async archive(run: ControllerRun, signal: AbortSignal): Promise<ArchiveResult> {
    const box = boxOfNamespace(run.metadata.namespace ?? '');
    const agentUid = agentUidOf(run);
    if (box === undefined || agentUid === undefined) return 'needless';
    if (!(await this.#agentStays(run, agentUid, signal))) return 'needless';
    const workspace = await this.deps.workspaceOf(box, signal);
    const live = await this.#read(run, signal);
    if (workspace === undefined || live === undefined) return 'needless';
    const entry = {
      workspace,
      box,
      agentUid,
      run: live,
      sessionTitle: titleOf(live),
      chunks: await this.#chunks(live),
    };
    return (await this.deps.store.put(entry, signal)) === 'stored' ? 'stored' : 'needless';
  }

  /** The archive of an agent goes with the agent. A cache that does not know it may be behind. */
  async #agentStays(run: ControllerRun, uid: string, signal: AbortSignal): Promise<boolean> {
    const ref = { ...refOf(run.metadata), name: run.spec.agent };
    const known = this.deps.agents.get(agentKey(run.metadata.namespace, run.spec.agent));
    const agent = known?.metadata.uid === uid ? known : await orUndefined(this.deps.api.get(Agents, ref, { signal }));
    return agent?.metadata.uid === uid && agent.metadata.deletionTimestamp === undefined;
  }

  async #read(run: ControllerRun, signal: AbortSignal): Promise<AgentRun | undefined> {
    const live = await orUndefined(this.deps.api.get(AgentRuns, refOf(run.metadata), { signal }));
    return live?.metadata.uid === run.metadata.uid ? live : undefined;
  }

  async #chunks(run: AgentRun) {
    const state = run.status?.transcript?.state;
    if (state === 'archived' || state === 'expired') return [];
    return (await readFinished(this.deps.api, run)).flatMap((chunk) => (chunk === undefined ? [] : [chunk.spec]));
  }
}

function titleOf({ spec }: AgentRun): string | undefined {
  return spec.sessionTitle ?? (spec.message === undefined ? undefined : sessionTitleOf(spec.message));
}

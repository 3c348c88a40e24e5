/** Starts the runs of triggers: adds the agent's UID from the cache to what a fire knows (DESIGN 4, Webhook fire). */
import { boxNamespace } from '../api/names.js';
import type { Cache } from '../kube/types.js';
import { StartRunError, startRun } from './start-run.js';
import type { StartRunDeps, StartRunRequest, StartedRun } from './start-run.js';
import type { AgentView } from './views.js';

export interface TriggeredRunRequest extends Pick<StartRunRequest, 'message' | 'trigger' | 'actor'> {
  box: string;
  agent: string;
  sessionTitle: string;
}

/** `startRun` for triggers: every fire opens a new session (spec 4.3.5). */
export function createTriggeredRuns(deps: StartRunDeps, agents: Pick<Cache<AgentView>, 'get'>) {
  return {
    async startRun({ box, agent, ...run }: TriggeredRunRequest, signal: AbortSignal): Promise<StartedRun> {
      const known = agents.get(`${boxNamespace(box)}/${agent}`);
      if (known === undefined || known.deleting) throw new StartRunError('refused', 'the agent is gone');
      return startRun(deps, { ...run, agent: { box, agent }, agentUid: known.uid }, signal);
    },
  };
}

/** Answers the wishes of working runs: the gateway writes `status.budget.wanted`, this `granted`. */
import { AgentRuns, type AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { ControllerPart } from '../common/controller-part.js';
import { all } from '../common/controller-part.js';
import { patchStatus } from '../common/status-patch.js';
import { wantsMore, type BudgetLedger } from './ledger.js';

export interface BudgetDependencies {
  api: Pick<KubeApi, 'patch'>;
  runs: Pick<Cache<AgentRun>, 'get' | 'onChange'>;
  ledger: Pick<BudgetLedger, 'enlarge' | 'watch'>;
}

export function createBudgetController({ api, runs, ledger }: BudgetDependencies): ControllerPart {
  return {
    name: 'run-budget',
    workers: 4,
    watch: (enqueue) =>
      all([
        ledger.watch(),
        runs.onChange(({ key, current }) => {
          if (current !== undefined && wantsMore(current)) enqueue(key);
        }),
      ]),
    async reconcile(key, signal) {
      const run = runs.get(key);
      const budget = run === undefined ? undefined : ledger.enlarge(run);
      if (run?.status === undefined || budget === undefined) return;
      const draft = { metadata: run.metadata, status: { ...run.status, budget } };
      await patchStatus(api, { type: AgentRuns, before: run, draft }, signal);
    },
  };
}

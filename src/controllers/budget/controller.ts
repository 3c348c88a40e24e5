/** Answers working runs that want a larger grant: the gateway writes `status.budget.wanted`, this controller `granted`. */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { orUndefined } from '../../kube/errors.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import { RunStatusWriter } from '../../run/status-writer.js';
import type { ControllerPart } from '../common/controller-part.js';
import { all } from '../common/controller-part.js';
import { wantsMore, type BudgetLedger } from './ledger.js';

export interface BudgetDependencies {
  api: Pick<KubeApi, 'patch'>;
  runs: Pick<Cache<AgentRun>, 'get' | 'onChange'>;
  ledger: Pick<BudgetLedger, 'enlarge' | 'watch'>;
  log: Pick<Logger, 'warn'>;
}

export function createBudgetController({ api, runs, ledger, log }: BudgetDependencies): ControllerPart {
  const status = new RunStatusWriter(api, 'budget controller', log);
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
      if (run === undefined || budget === undefined) return;
      // Nobody needs an answer for a run that is gone.
      await orUndefined(status.apply(run, { type: 'budget-granted', budget }, signal));
    },
  };
}

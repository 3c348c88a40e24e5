/** The runs of a controller's cache as the backlog budget counts them (DESIGN 8). */
import { boxOfNamespace } from '../../api/names.js';
import { isTerminal } from '../../api/run-status.js';
import type { Cache } from '../../kube/types.js';
import type { CountedRun, RunSource } from '../../services/backlog.js';
import type { RunView } from './views.js';

export function countableRuns(runs: Pick<Cache<RunView>, 'values' | 'onChange'>): RunSource {
  return {
    values: () => [...runs.values()].map(counted),
    onChange: (listener) =>
      runs.onChange(({ key, current }) =>
        listener({ key, ...(current === undefined ? {} : { current: counted(current) }) }),
      ),
  };
}

function counted(run: RunView): CountedRun {
  const { namespace = '', name } = run.metadata;
  return {
    namespace,
    name,
    box: boxOfNamespace(namespace) ?? '',
    agent: run.spec.agent,
    terminal: isTerminal(run),
    inputBytes: run.liveInputBytes ?? 0,
  };
}

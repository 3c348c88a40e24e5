/** How full the backlog budgets are. The label is a closed list: of Boxes and agents the fullest one is shown. */
import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import { BACKLOG_SCOPES, backlogLimit } from './backlog-budget.js';
import type { BacklogCount } from './backlog-budget.js';
import type { LiveRuns } from './backlog.js';

export interface BacklogMetrics {
  /** From now on the gauges show these counts, read at every scrape. */
  track(runs: Pick<LiveRuns, 'fullest'>): void;
}

/**
 * `boxwright_backlog_runs` and `boxwright_backlog_bytes` by `scope`, beside the limits at which calls are turned away,
 * `boxwright_backlog_limit_runs` and `boxwright_backlog_limit_bytes`.
 */
export function createBacklogMetrics(registry: Registry): BacklogMetrics {
  const limit = (name: string, help: string, unit: keyof BacklogCount) => {
    const gauge = new Gauge({ name, help, labelNames: ['scope'], registers: [registry] });
    for (const scope of BACKLOG_SCOPES) gauge.set({ scope }, backlogLimit(scope)[unit]);
  };
  limit('boxwright_backlog_limit_runs', 'Waiting and working runs at which calls are turned away.', 'runs');
  limit('boxwright_backlog_limit_bytes', 'Bytes of input of such runs at which calls are turned away.', 'bytes');
  let tracked: Pick<LiveRuns, 'fullest'> = { fullest: () => ({ runs: 0, bytes: 0 }) };
  const used = (name: string, help: string, unit: keyof BacklogCount) =>
    new Gauge({
      name,
      help,
      labelNames: ['scope'],
      registers: [registry],
      collect() {
        for (const scope of BACKLOG_SCOPES) this.set({ scope }, tracked.fullest(scope)[unit]);
      },
    });
  used(
    'boxwright_backlog_runs',
    'Waiting and working runs of the installation, its fullest Box and fullest agent.',
    'runs',
  );
  used('boxwright_backlog_bytes', 'Bytes of input that those runs store.', 'bytes');
  return { track: (runs) => void (tracked = runs) };
}

/** The Grafana dashboard of the chart, charts/boxwright/files/dashboard.json: one row for each question of an operator. */

type Unit = 'short' | 'reqps' | 's' | 'bytes' | 'currencyUSD' | 'percentunit';

interface PanelSpec {
  title: string;
  description: string;
  unit: Unit;
  /** PromQL with the legend of its series. `$ns` becomes the selector of the namespace. */
  queries: readonly (readonly [expr: string, legend: string])[];
}

const rate = (metric: string, by: string, more = '') =>
  `sum by (${by}) (rate(${metric}{$ns${more}}[$__rate_interval]))`;
const slow = (metric: string, by: string) =>
  `histogram_quantile(0.95, sum by (le, ${by}) (rate(${metric}_bucket{$ns}[$__rate_interval])))`;

const ROWS: readonly { title: string; panels: readonly PanelSpec[] }[] = [
  {
    title: 'Calls',
    panels: [
      {
        title: 'Trigger URLs',
        description: 'Calls by outcome; only fired started a run.',
        unit: 'reqps',
        queries: [[rate('boxwright_webhook_calls_total', 'outcome'), '{{outcome}}']],
      },
      {
        title: 'Tools',
        description: 'Calls of the MCP endpoint by tool.',
        unit: 'reqps',
        queries: [[rate('boxwright_mcp_tool_calls_total', 'tool'), '{{tool}}']],
      },
      {
        title: 'Slow answers',
        description: '95 of 100 requests are answered within this time; send_message may wait for a run.',
        unit: 's',
        queries: [[slow('boxwright_http_request_duration_seconds', 'route'), '{{route}}']],
      },
    ],
  },
  {
    title: 'Queue',
    panels: [
      {
        title: 'Waiting and working runs',
        description: 'Of the installation, of its fullest Box and of its fullest agent.',
        unit: 'short',
        queries: [['max by (scope) (boxwright_backlog_runs{$ns})', '{{scope}}']],
      },
      {
        title: 'Backlog budget used',
        description: 'At 100 % calls are turned away.',
        unit: 'percentunit',
        queries: [
          ['max by (scope) (boxwright_backlog_runs{$ns} / boxwright_backlog_limit_runs{$ns})', '{{scope}}, runs'],
          ['max by (scope) (boxwright_backlog_bytes{$ns} / boxwright_backlog_limit_bytes{$ns})', '{{scope}}, bytes'],
        ],
      },
      {
        title: 'Oldest waiting run',
        description: 'kubectl get agentruns -A says for what it waits.',
        unit: 's',
        queries: [['max(boxwright_oldest_waiting_run_seconds{$ns})', 'oldest']],
      },
      {
        title: 'Turned away',
        description: 'Ticks of schedules and calls between agents for which there was no room.',
        unit: 'reqps',
        queries: [
          [rate('boxwright_schedule_turned_away_total', 'scope'), 'ticks, {{scope}}'],
          [rate('boxwright_gateway_agent_calls_turned_away_total', 'scope'), 'agents, {{scope}}'],
        ],
      },
    ],
  },
  {
    title: 'Runs',
    panels: [
      {
        title: 'Starts and ends',
        description: 'Runs that a pod claimed, that ended, and that went back to the queue for lack of room.',
        unit: 'reqps',
        queries: [
          ['sum(rate(boxwright_gateway_runs_claimed_total{$ns}[$__rate_interval]))', 'claimed'],
          ['sum(rate(boxwright_runs_ended_total{$ns}[$__rate_interval]))', 'ended'],
          ['sum(rate(boxwright_runs_returned_total{$ns}[$__rate_interval]))', 'returned to the queue'],
        ],
      },
      {
        title: 'Outcomes by reason',
        description: 'docs/reasons.md explains each.',
        unit: 'reqps',
        queries: [[rate('boxwright_runs_ended_total', 'reason'), '{{reason}}']],
      },
      {
        title: 'Working now',
        description: 'Runs that each gateway pod serves.',
        unit: 'short',
        queries: [['sum by (pod) (boxwright_gateway_runs_served{$ns})', '{{pod}}']],
      },
    ],
  },
  {
    title: 'Models',
    panels: [
      {
        title: 'Calls by provider and result',
        description: 'refused and failed end runs with ModelError when they go on.',
        unit: 'reqps',
        queries: [[rate('boxwright_gateway_model_calls_total', 'provider, result'), '{{provider}} {{result}}']],
      },
      {
        title: 'Tokens by model',
        description: 'Input, output and what came from the prompt cache, a second.',
        unit: 'short',
        queries: [
          [rate('boxwright_gateway_model_tokens_total', 'provider, model, kind'), '{{provider}} {{model}} {{kind}}'],
        ],
      },
      {
        title: 'Cost by model, an hour',
        description: 'Only of models with a known price.',
        unit: 'currencyUSD',
        queries: [
          [
            'sum by (provider, model) (increase(boxwright_gateway_model_cost_usd_total{$ns}[1h]))',
            '{{provider}} {{model}}',
          ],
        ],
      },
      {
        title: 'MCP servers and web searches',
        description: 'Messages of runs to MCP servers, and searches, by result.',
        unit: 'reqps',
        queries: [
          [rate('boxwright_gateway_mcp_messages_total', 'kind, result'), '{{kind}} {{result}}'],
          [rate('boxwright_gateway_web_searches_total', 'engine, result'), '{{engine}} {{result}}'],
        ],
      },
    ],
  },
  {
    title: 'Health',
    panels: [
      {
        title: 'Ready pods',
        description: 'Pods of each process whose readiness probe succeeds, and controllers that lead.',
        unit: 'short',
        queries: [
          ['sum by (component) (boxwright_ready{$ns})', '{{component}}'],
          ['sum(boxwright_leader{$ns})', 'leader'],
        ],
      },
      {
        title: 'Reconciles that failed',
        description: 'By controller; conflicts are normal and repeated at once.',
        unit: 'reqps',
        queries: [[rate('boxwright_controller_reconcile_total', 'controller', ',outcome="error"'), '{{controller}}']],
      },
      {
        title: 'Watches',
        description: 'Watches that were reopened, by reason, and full lists.',
        unit: 'reqps',
        queries: [
          [rate('boxwright_watch_restarts_total', 'reason'), '{{reason}}'],
          ['sum(rate(boxwright_relists_total{$ns}[$__rate_interval]))', 'full lists'],
        ],
      },
      {
        title: 'API server',
        description: '95 of 100 requests are answered within this time.',
        unit: 's',
        queries: [[slow('boxwright_kube_request_duration_seconds', 'verb'), '{{verb}}']],
      },
      {
        title: 'Memory',
        description: 'Resident memory of each pod.',
        unit: 'bytes',
        queries: [['max by (pod) (boxwright_process_resident_memory_bytes{$ns})', '{{pod}}']],
      },
      {
        title: 'Kept runs',
        description: 'Finished runs in the cluster, and removed ones that wait for the archive.',
        unit: 'short',
        queries: [
          ['max(boxwright_finished_runs{$ns})', 'finished'],
          ['max(boxwright_archive_waiting_runs{$ns})', 'wait for the archive'],
        ],
      },
    ],
  },
];

const COLUMNS = 24;
const HEIGHT = 8;
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };

/** The dashboard as Grafana imports it. */
export function grafanaDashboard(): object {
  const panels: object[] = [];
  let y = 0;
  for (const row of ROWS) {
    panels.push({ id: panels.length + 1, type: 'row', title: row.title, gridPos: { h: 1, w: COLUMNS, x: 0, y } });
    y += 1;
    const perLine = row.panels.length === 4 ? 2 : 3;
    const width = COLUMNS / perLine;
    for (const [at, panel] of row.panels.entries()) {
      const gridPos = { h: HEIGHT, w: width, x: (at % perLine) * width, y: y + Math.floor(at / perLine) * HEIGHT };
      panels.push(panelOf(panel, panels.length + 1, gridPos));
    }
    y += Math.ceil(row.panels.length / perLine) * HEIGHT;
  }
  return {
    uid: 'boxwright',
    title: 'Boxwright',
    tags: ['boxwright'],
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    timezone: 'browser',
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' },
        {
          name: 'namespace',
          type: 'query',
          label: 'Namespace',
          datasource: DATASOURCE,
          query: { query: 'label_values(boxwright_ready, namespace)', refId: 'namespace' },
          refresh: 2,
          sort: 1,
        },
      ],
    },
    panels,
  };
}

function panelOf({ title, description, unit, queries }: PanelSpec, id: number, gridPos: object): object {
  return {
    id,
    type: 'timeseries',
    title,
    description,
    gridPos,
    datasource: DATASOURCE,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
    targets: queries.map(([expr, legendFormat], at) => ({
      refId: String.fromCodePoint(65 + at),
      datasource: DATASOURCE,
      expr: expr.replaceAll('$ns', 'namespace="$namespace"'),
      legendFormat,
    })),
  };
}

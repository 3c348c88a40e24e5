/** Metrics of the gateway. Labels are words from closed lists, never ids. */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { RunPhase } from '../api/v1alpha1/agent-run.js';
import { BACKLOG_SCOPES, type BacklogScope } from '../run/start/backlog-budget.js';
import type { SearchEngineName } from '../api/v1alpha1/box.js';
import type { CallUsage } from '../run/usage/usage.js';
import type { McpKind } from './mcp/server-list.js';

export type ReviewResult = 'accepted' | 'rejected' | 'failed' | 'limited';
export type ReportResult = 'stored' | 'live' | 'heartbeat' | 'conflict';
export type CallResult = 'answered' | 'refused' | 'failed' | 'aborted';

export interface GatewayMetrics {
  claimed(): void;
  finished(phase: RunPhase, reason: string): void;
  reported(result: ReportResult): void;
  tookOver(): void;
  reviewed(result: ReviewResult): void;
  called(provider: string, result: CallResult): void;
  /** A try of a model call used this; `model` is a name of the catalogue, or `other`. */
  used(of: { provider: string; model: string }, usage: CallUsage): void;
  /** A message to an MCP server. */
  proxied(kind: McpKind, result: CallResult): void;
  /** A web_search of a run. */
  searched(engine: SearchEngineName, result: CallResult): void;
  /** The backlog budget had no room for the run of a call_agent. */
  turnedAway(scope: BacklogScope): void;
  /** Runs that this pod serves, read at every scrape. */
  trackServed(count: () => number): void;
}

/** Registers the metrics of the gateway. */
export function createGatewayMetrics(registry: Registry): GatewayMetrics {
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers: [registry] });
  const claims = counter('boxwright_gateway_runs_claimed_total', 'Runs claimed by a pod.', []);
  const finishes = counter('boxwright_gateway_runs_finished_total', 'Runs whose outcome this pod wrote.', [
    'phase',
    'reason',
  ]);
  const reports = counter('boxwright_gateway_reports_total', 'Reports of runs.', ['result']);
  const takeovers = counter('boxwright_gateway_takeovers_total', 'Runs taken over from another gateway pod.', []);
  const reviews = counter('boxwright_gateway_token_reviews_total', 'Tokens that were not in the cache.', ['result']);
  const calls = counter('boxwright_gateway_model_calls_total', 'Model calls of runs.', ['provider', 'result']);
  const tokens = counter('boxwright_gateway_model_tokens_total', 'Tokens of model calls, as the runs are charged.', [
    'provider',
    'model',
    'kind',
  ]);
  const cost = counter('boxwright_gateway_model_cost_usd_total', 'Cost of model calls with a known price, in USD.', [
    'provider',
    'model',
  ]);
  const proxied = counter('boxwright_gateway_mcp_messages_total', 'Messages of runs to MCP servers.', [
    'kind',
    'result',
  ]);
  const searches = counter('boxwright_gateway_web_searches_total', 'Web searches of runs.', ['engine', 'result']);
  const turnedAway = counter(
    'boxwright_gateway_agent_calls_turned_away_total',
    'Calls of agents by agents that the backlog budget turned away, by the budget that is used up.',
    ['scope'],
  );
  // An alert sees a rise only of what was there before.
  for (const scope of BACKLOG_SCOPES) turnedAway.inc({ scope }, 0);
  return {
    claimed: () => claims.inc(),
    finished: (phase, reason) => finishes.inc({ phase, reason }),
    reported: (result) => reports.inc({ result }),
    tookOver: () => takeovers.inc(),
    reviewed: (result) => reviews.inc({ result }),
    called: (provider, result) => calls.inc({ provider, result }),
    used: (of, { inputTokens, cacheReadTokens = 0, cacheWriteTokens = 0, outputTokens, costMicroUsd = 0 }) => {
      tokens.inc({ ...of, kind: 'input' }, Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens));
      tokens.inc({ ...of, kind: 'cache_read' }, cacheReadTokens);
      tokens.inc({ ...of, kind: 'cache_write' }, cacheWriteTokens);
      tokens.inc({ ...of, kind: 'output' }, outputTokens);
      cost.inc(of, costMicroUsd / 1_000_000);
    },
    proxied: (kind, result) => proxied.inc({ kind, result }),
    searched: (engine, result) => searches.inc({ engine, result }),
    turnedAway: (scope) => turnedAway.inc({ scope }),
    trackServed: (count) =>
      void new Gauge({
        name: 'boxwright_gateway_runs_served',
        help: 'Runs that this pod owns.',
        registers: [registry],
        collect() {
          this.set(count());
        },
      }),
  };
}

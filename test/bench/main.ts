/**
 * `make bench [BENCH=webhook|mcp|burst|flood]`: measures on this machine and prints what was found, with the facts of the
 * machine. Nothing here gates anything: counts are asserted by the load tests, and times belong to a machine.
 */
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { runBurst } from './burst.js';
import { runFlood } from './flood.js';
import { startLoadClients } from './load.js';
import { runMcpBench } from './mcp.js';
import { table } from './pairs.js';
import type { Row } from './pairs.js';
import { runWebhookBench } from './webhook.js';
import type { BenchContext } from './webhook.js';

const say = (line: string) => console.log(`  ${line}`);

/** Those that compare give rows for the table at the end. */
const BENCHES: Record<string, (context: BenchContext) => Promise<object & { rows?: Row[] }>> = {
  webhook: runWebhookBench,
  mcp: runMcpBench,
  burst: () => runBurst({ runs: count('BENCH_RUNS', 5_000), say }),
  flood: () => runFlood({ hits: count('BENCH_HITS', 100_000), say }),
};

function count(variable: string, fallback: number): number {
  const value = Number(process.env[variable] ?? fallback);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${variable} must be a whole number above 0`);
  return value;
}

function machine(): string {
  const memory = Math.round(totalmem() / 2 ** 30);
  const load = loadavg().map((one) => one.toFixed(1));
  return `${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'}), ${memory} GiB, Node ${process.version}, load ${load.join(' ')}`;
}

const wanted = process.env['BENCH'] ?? '';
const names = wanted === '' ? Object.keys(BENCHES) : [wanted];
const rows: Row[] = [];
const clients = await startLoadClients(say);
try {
  for (const name of names) {
    const bench = BENCHES[name];
    if (bench === undefined) throw new Error(`BENCH must be one of ${Object.keys(BENCHES).join(', ')}`);
    console.log(`\n${name}: ${machine()}`);
    const report = await bench({ clients: clients.all, say });
    rows.push(...(report.rows ?? []));
    console.log(JSON.stringify(report, null, 2));
  }
} finally {
  await clients.stop();
}
if (rows.length > 0) console.log(['', machine(), ...table(rows)].join('\n'));

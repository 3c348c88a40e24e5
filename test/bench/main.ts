/**
 * `make bench [BENCH=webhook|burst|flood]`: measures on this machine and prints what was found, with the facts of the
 * machine. Nothing here gates anything: counts are asserted by the load tests, and times belong to a machine.
 */
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { runBurst } from './burst.js';
import { runFlood } from './flood.js';
import { runWebhookBench } from './webhook.js';

const say = (line: string) => console.log(`  ${line}`);

const BENCHES: Record<string, () => Promise<unknown>> = {
  webhook: () => runWebhookBench({ say }),
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
for (const name of names) {
  const bench = BENCHES[name];
  if (bench === undefined) throw new Error(`BENCH must be one of ${Object.keys(BENCHES).join(', ')}`);
  console.log(`\n${name}: ${machine()}`);
  console.log(JSON.stringify(await bench(), null, 2));
}

/**
 * Comparing in turns: what is measured and what it is compared with have the same minutes of the same machine, so that
 * their ratio can be compared with that of another day. Times alone belong to a machine.
 */
import { readFile } from 'node:fs/promises';
import { round } from './load.js';
import type { Phase } from './load.js';

/** Turns; an odd number has a median. */
const TURNS = 5;

export interface Compared {
  what: string;
  atOnce: number;
  /** Whose CPU time is told. */
  pid: number;
  /** Requests of one phase. */
  requests: number;
  ours(): Promise<Phase>;
  /** What the same work costs without us, by name; the best one of each turn is the limit. */
  limits: Record<string, () => Promise<Phase>>;
}

/** One row of the table: medians over all turns. */
export interface Row {
  what: string;
  atOnce: number;
  ours: Phase;
  /** Requests a second of each limit. */
  limits: Record<string, number>;
  /** Ours by the best limit of the same turn. */
  ratio: { median: number; min: number; max: number };
  /** CPU time of the process for one request. */
  cpuMs: number;
}

export async function compare(compared: Compared, say: (line: string) => void): Promise<Row> {
  const { what, atOnce, pid, requests } = compared;
  const turns: { ours: Phase; limits: Record<string, number>; ratio: number }[] = [];
  let cpu = 0;
  for (let turn = 1; turn <= TURNS; turn++) {
    const limits: Record<string, number> = {};
    for (const [name, act] of Object.entries(compared.limits)) limits[name] = (await act()).perSecond;
    const before = await cpuMs(pid);
    const ours = await compared.ours();
    cpu += (await cpuMs(pid)) - before;
    turns.push({ ours, limits, ratio: ours.perSecond / Math.max(...Object.values(limits)) });
  }
  const ratios = turns.map(({ ratio }) => ratio);
  const ofLimit = (name: string) => median(turns.map(({ limits }) => limits[name] ?? 0));
  const row: Row = {
    what,
    atOnce,
    ours: {
      perSecond: median(turns.map(({ ours }) => ours.perSecond)),
      p50: median(turns.map(({ ours }) => ours.p50)),
      p99: median(turns.map(({ ours }) => ours.p99)),
    },
    limits: Object.fromEntries(Object.keys(compared.limits).map((name) => [name, ofLimit(name)])),
    ratio: { median: median(ratios), min: round(Math.min(...ratios)), max: round(Math.max(...ratios)) },
    cpuMs: round(cpu / (TURNS * requests)),
  };
  say(`${what}, ${atOnce} at once: ${row.ours.perSecond}/s, ratio ${row.ratio.median}`);
  return row;
}

/** Of an odd number of values. */
export function median(values: readonly number[]): number {
  return round(values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0);
}

/** The rows as text, one line each, with a head. */
export function table(rows: readonly Row[]): string[] {
  const head = ['', 'at once', 'a second', 'p50 ms', 'p99 ms', 'CPU ms', 'ratio (min-max)', 'compared with, a second'];
  const cells = rows.map(({ what, atOnce, ours, limits, ratio, cpuMs: cpu }) => [
    what,
    String(atOnce),
    ours.perSecond.toFixed(0),
    ours.p50.toFixed(1),
    ours.p99.toFixed(1),
    cpu.toFixed(2),
    `${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)}-${ratio.max.toFixed(2)})`,
    Object.entries(limits).map(([name, rate]) => `${name} ${rate.toFixed(0)}`).join(', '),
  ]); // prettier-ignore
  const lines = [head, ...cells];
  const widths = head.map((_cell, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ').trimEnd()); // prettier-ignore
}

/** CPU time of a process in milliseconds; its clock ticks every 10. */
async function cpuMs(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

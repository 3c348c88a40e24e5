/** Outcomes of calls of download URLs. */
import { Counter } from 'prom-client';
import type { Registry } from 'prom-client';

/** A closed list, fit for a label. */
const OUTCOMES = ['sent', 'not_modified', 'range', 'unknown', 'gone', 'method', 'limited', 'failed'] as const;
export type DownloadOutcome = (typeof OUTCOMES)[number];

export interface DownloadMetrics {
  called(outcome: DownloadOutcome): void;
}

/** `boxwright_file_downloads_total`. */
export function createDownloadMetrics(registry: Registry): DownloadMetrics {
  const calls = new Counter({
    name: 'boxwright_file_downloads_total',
    help: 'Calls of download URLs of published files by what became of them.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  for (const outcome of OUTCOMES) calls.inc({ outcome }, 0);
  return { called: (outcome) => calls.inc({ outcome }) };
}

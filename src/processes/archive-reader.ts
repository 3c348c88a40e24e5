/** The archive as API and gateway use it: they only read, and the controller makes the tables. */
import type { Registry } from 'prom-client';
import { PostgresArchive } from '../archive/postgres-archive.js';
import type { Logger } from '../observability/logger.js';
import { createArchiveMetrics } from '../observability/metrics.js';
import type { Clock } from '../runtime/clock.js';

const CONNECTIONS = 4;

/** Undefined without a URL. Connects when it is first used. */
export function openArchiveReader(
  url: string | undefined,
  { registry, log, clock }: { log: Logger; clock: Clock; registry: Registry },
): PostgresArchive | undefined {
  if (url === undefined) return undefined;
  const metrics = createArchiveMetrics(registry);
  return PostgresArchive.open({ url, metrics, connections: CONNECTIONS, makesTables: false, log, clock });
}

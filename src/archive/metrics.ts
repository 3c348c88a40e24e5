/** Metrics of the archive. */

export interface ArchiveMetrics {
  /** One call of the archive. */
  called(operation: string, result: 'ok' | 'failed', seconds: number): void;
  /** Whether the last call reached the archive. */
  reachable(isReachable: boolean): void;
  /** Removed runs that are kept in the cluster until they are archived. */
  waiting(runs: number): void;
}

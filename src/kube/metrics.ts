/** What src/kube reports about itself. src/observability implements it; tests may leave it out. */

export interface RequestObservation {
  /** Kubernetes verb: get, list, watch, create, update, patch, delete. */
  verb: string;
  /** Plural of the kind, with the subresource if any: `agentruns`, `agentruns/status`. */
  resource: string;
  /** HTTP status, or 0 when there was no answer. */
  status: number;
  seconds: number;
}

/** Why a watch was started again. */
export type WatchRestartReason = 'ended' | 'error' | 'gone' | 'silent';

export interface KubeMetrics {
  /** One HTTP request ended (a watch: its headers arrived). Retries count one by one. */
  requested(observation: RequestObservation): void;
  /** An informer read the whole list; the first time included. */
  relisted(resource: string): void;
  watchRestarted(resource: string, reason: WatchRestartReason): void;
}

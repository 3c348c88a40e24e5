import type { Clock } from '../runtime/clock.js';
/** How to reach and authenticate at one API server. */
export interface ClusterConnection {
  server: string;
  ca?: string;
  cert?: string;
  key?: string;
  skipTlsVerify?: boolean;
  tlsServerName?: string;
  token?: () => Promise<string>;
  /** Namespace of the pod or of the kubeconfig's context. */
  namespace?: string;
}
export interface LoadConnectionOptions {
  clock: Clock;
  /** Path of a kubeconfig; wins over KUBECONFIG. */
  kubeconfig?: string;
  env?: Record<string, string | undefined>;
}
export declare function loadConnection(options: LoadConnectionOptions): Promise<ClusterConnection>;

import type { Clock } from '../runtime/clock.js';
import type { ClusterConnection } from './kube-config.js';
import type { KubeMetrics } from './metrics.js';
export interface KubeRequest {
  verb: string;
  resource: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  query?: Record<string, string | undefined>;
  body?: unknown;
  contentType?: string;
  signal?: AbortSignal;
}
export interface KubeTransport {
  request(request: KubeRequest): Promise<unknown>;
  watch(request: Omit<KubeRequest, 'body' | 'contentType'>): Promise<AsyncIterable<unknown>>;
  close(): Promise<void>;
}
export interface TransportOptions {
  clock: Clock;
  userAgent?: string;
  connections?: number;
  timeoutMs?: number;
  metrics?: Pick<KubeMetrics, 'requested'>;
}
export declare function createTransport(connection: ClusterConnection, options: TransportOptions): KubeTransport;

import type { KubeObject } from '../api/meta.js';
import type { Logger } from '../observability/logger.js';
import type { Clock } from '../runtime/clock.js';
import type { KubeMetrics } from './metrics.js';
import type { KubeTransport } from './transport.js';
import type { Informer, InformerOptions } from './types.js';
export interface InformerDependencies {
  clock: Clock;
  log: Logger;
  metrics?: Pick<KubeMetrics, 'relisted' | 'watchRestarted'>;
  /** Replays the cache to the listeners this often; absent = never. */
  resyncMs?: number;
  random?: () => number;
}
export declare function createInformer<T extends KubeObject, P>(
  transport: KubeTransport,
  options: InformerOptions<T, P>,
  dependencies: InformerDependencies,
): Informer<P>;

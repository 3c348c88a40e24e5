import type { KubeTransport } from './transport.js';
import type { KubeApi } from './types.js';
export declare function createKubeApi(transport: KubeTransport): KubeApi;
/** Every write rejects with NotLeadingError while `isLeading()` is false. */
export declare function leaderOnlyWrites(api: KubeApi, isLeading: () => boolean): KubeApi;

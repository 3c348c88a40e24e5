/** A client that writes only for the leader: a controller that lost its lease in mid-reconcile changes nothing more. */
import { NotLeadingError } from '../runtime/errors.js';
import type { KubeApi } from './types.js';

/** Reads pass; every write rejects with NotLeadingError while `isLeading()` is false. */
export function leaderOnlyWrites(api: KubeApi, isLeading: () => boolean): KubeApi {
  const guarded = async <R>(write: () => Promise<R>): Promise<R> => {
    if (!isLeading()) throw new NotLeadingError('this process does not hold the lease');
    return write();
  };
  return {
    get: (type, ref, options) => api.get(type, ref, options),
    list: (type, options) => api.list(type, options),
    create: (type, object, options) => guarded(() => api.create(type, object, options)),
    replace: (type, object, options) => guarded(() => api.replace(type, object, options)),
    patch: (type, ref, body, options) => guarded(() => api.patch(type, ref, body, options)),
    delete: (type, ref, options) => guarded(() => api.delete(type, ref, options)),
  };
}

/** What events are about, and from when on they are old. */
import { API_VERSION } from '../../api/define-resource.js';
import type { ObjectMeta } from '../../api/meta.js';
import type { EventSubject } from '../../runtime/event-recorder.js';

/** Events that are older than this when an object is first seen were told by the process that led then. */
export const OLD_NEWS_MS = 60_000;

export function subjectOf(kind: string, { name, namespace, uid = '' }: ObjectMeta): EventSubject {
  return { apiVersion: API_VERSION, kind, name, ...(namespace === undefined ? {} : { namespace }), uid };
}

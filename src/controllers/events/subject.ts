/** What events are about, and what they may say. */
import { API_VERSION } from '../../api/define-resource.js';
import type { ObjectMeta } from '../../api/meta.js';
import { redact } from '../../observability/logger.js';
import { MAX_NOTE_BYTES } from '../../runtime/event-recorder.js';
import type { EventSubject } from '../../runtime/event-recorder.js';
import { cutUtf8 } from '../../runtime/text.js';

/** Events that are older than this when an object is first seen were told by the process that led then. */
export const OLD_NEWS_MS = 60_000;

export function subjectOf(kind: string, { name, namespace, uid = '' }: ObjectMeta): EventSubject {
  return { apiVersion: API_VERSION, kind, name, ...(namespace === undefined ? {} : { namespace }), uid };
}

/** A message of a status as the text of an event: short, and without secrets whoever wrote it. */
export function noteOf(message: string): string {
  return cutUtf8(redact(message), MAX_NOTE_BYTES);
}

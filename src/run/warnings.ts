/** What people should know of a run beside its outcome: a bounded list in its status. Pure. */
import { MAX_RUN_WARNINGS, MAX_RUN_WARNING_BYTES } from '../api/v1alpha1/agent-run.js';
import type { RunEvent } from '../protocol/run.js';
import { cutUtf8 } from '../runtime/text.js';

const MORE = 'There were more warnings than are kept here.';

/** The known warnings and those that are new, each text once and in the order in which they came; the same list when none is. */
export function withWarnings(known: readonly string[], texts: readonly string[]): readonly string[] {
  const all = new Set(known);
  for (const text of texts) {
    const short = cutUtf8(text, MAX_RUN_WARNING_BYTES);
    if (!all.has(short)) all.add(all.size < MAX_RUN_WARNINGS - 1 ? short : MORE);
  }
  return all.size === known.length ? known : [...all];
}

/** The texts of the warnings among the events. */
export function warningsIn(events: readonly RunEvent[]): string[] {
  return events.flatMap((event) => (event.type === 'warning' ? [event.text] : []));
}

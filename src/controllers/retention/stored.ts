/** What finished runs store besides their own object, from the caches alone. */
import { acceptedAt } from '../../api/names.js';
import { isTerminal } from '../../run/status.js';
import { MAX_CHUNK_STORED_BYTES } from '../../api/v1alpha1/agent-run-chunk.js';
import { USAGE_WAIT_MS } from '../agent-run/settlement/settle.js';
import type { FinishedRun } from './plan.js';
import { sessionKeyOf } from '../../run/session/key.js';
import type { ControllerRun } from '../../projections/agent-run.js';

/** When the run ended, in milliseconds since the epoch. */
function finishedAtOf(run: ControllerRun): number {
  return Date.parse(run.status?.finishedAt ?? acceptedAt(run));
}

/** Chunks that the run may still have. */
export function chunksOf(run: ControllerRun): number {
  const { state, chunks = 0 } = run.status?.transcript ?? {};
  return state === 'full' || state === 'truncated' ? chunks : 0;
}

/** Bytes of the files in base64; the same content is stored once. */
function fileBytesOf(run: ControllerRun): number {
  const sizes = new Map((run.status?.files ?? []).map(({ sha256, bytes }) => [sha256, Math.ceil(bytes / 3) * 4]));
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** Bytes of the stored input, the chunks and the files, as the API server keeps them. */
export function storedBytesOf(run: ControllerRun): number {
  const chunks = chunksOf(run);
  const { storedBytes, bytes = 0 } = run.status?.transcript ?? {};
  // Without a stored size assume the worst: base64 of content that did not compress.
  const ofChunks = storedBytes ?? Math.min(Math.ceil((bytes * 4) / 3), chunks * MAX_CHUNK_STORED_BYTES);
  return (run.inputDataBytes ?? 0) + (chunks === 0 ? 0 : ofChunks) + fileBytesOf(run);
}

/**
 * What goes with the run only: a long message that stands in the object, which nobody may change. Short ones are
 * bounded by the number of runs.
 */
export function fixedBytesOf(run: ControllerRun): number {
  return run.messageBytes ?? 0;
}

/** The finished runs as the plan sees them; runs that are being deleted count as gone. Cheap: there may be 60,000. */
export function finishedRuns(runs: readonly ControllerRun[], now: number): FinishedRun[] {
  const open = openSessions(runs);
  const finished: FinishedRun[] = [];
  for (const run of runs) {
    if (!isTerminal(run) || run.metadata.deletionTimestamp !== undefined) continue;
    const { namespace = '', name } = run.metadata;
    const finishedAt = finishedAtOf(run);
    // Until its last word the gateway may still add chunks.
    const closed = run.status?.usageFinal === true || now - finishedAt > USAGE_WAIT_MS;
    finished.push({
      key: `${namespace}/${name}`,
      namespace,
      agent: `${namespace}/${run.spec.agent}`,
      finishedAt,
      sessionOpen: open.size > 0 && open.has(sessionKeyOf(run)),
      storedBytes: closed ? storedBytesOf(run) : 0,
      fixedBytes: fixedBytesOf(run),
    });
  }
  return finished;
}

/** Sessions in which a run waits or works, and those whose last run waits for an answer. */
function openSessions(runs: readonly ControllerRun[]): ReadonlySet<string> {
  const open = new Set<string>();
  const asking = new Map<string, ControllerRun>();
  for (const run of runs) {
    if (!isTerminal(run)) open.add(sessionKeyOf(run));
    if (run.waitsForAnswer === true) asking.set(sessionKeyOf(run), run);
  }
  if (asking.size === 0) return open;
  for (const run of runs) {
    const session = sessionKeyOf(run);
    const asked = asking.get(session);
    if (asked !== undefined && acceptedAt(run) > acceptedAt(asked)) asking.set(session, run);
  }
  for (const [session, run] of asking) if (run.waitsForAnswer === true) open.add(session);
  return open;
}

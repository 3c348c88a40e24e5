/**
 * Pages of a conversation (get_session). Finished runs state how many messages they have, so that those
 * outside the page cost no request; the others are read, newest first, until the page is full.
 */

/** Runs that are read at the same time. */
const READS_AT_ONCE = 8;

export interface PageQuery {
  limit: number;
  /** Messages to leave out, counted from the newest. */
  offset: number;
}

/** A run, as far as paging needs it. */
export interface PagedRun {
  /** How many messages it has; undefined when only reading it can tell. */
  messages: number | undefined;
}

export interface MessagePage<Message> {
  /** Oldest first; fewer than the limit where a counted message is lost. */
  messages: Message[];
  /** Whether there are older ones. */
  more: boolean;
}

interface Step<Run> {
  run: Run;
  read: boolean;
}

/**
 * One page of the messages of `runs`, which are newest first. `read` gives those of one run, newest first. A run takes as many
 * places as it says, also when a part of it is lost: the next page begins where this one ends.
 */
export async function readPage<Run extends PagedRun, Message>(
  runs: readonly Run[],
  { limit, offset }: PageQuery,
  read: (run: Run) => Promise<Message[]>,
): Promise<MessagePage<Message>> {
  const end = offset + limit;
  const newestFirst: Message[] = [];
  let place = 0;
  for (let next = 0; next < runs.length && place <= end;) {
    const batch = batchOf(runs.slice(next), place, { offset, end });
    const ofRuns = await Promise.all(batch.map(async (step) => (step.read ? await read(step.run) : [])));
    for (const [index, messages] of ofRuns.entries()) {
      newestFirst.push(...messages.slice(Math.max(0, offset - place), Math.max(0, end - place)));
      place += Math.max(batch[index]?.run.messages ?? 0, messages.length);
    }
    next += batch.length;
  }
  return { messages: newestFirst.reverse(), more: place > end };
}

/** The next runs from `place` on, of which at most {@link READS_AT_ONCE} are to be read; at least one. */
function batchOf<Run extends PagedRun>(
  runs: readonly Run[],
  place: number,
  page: { offset: number; end: number },
): Step<Run>[] {
  const batch: Step<Run>[] = [];
  let at: number | undefined = place;
  let reads = 0;
  for (const run of runs) {
    if (reads === READS_AT_ONCE || (at !== undefined && at > page.end)) break;
    // Behind a run that does not say its number nobody knows where the next one stands: first that run is read.
    if (at === undefined && run.messages !== undefined) break;
    const read = at === undefined || run.messages === undefined || overlaps(at, run.messages, page);
    batch.push({ run, read });
    if (read) reads += 1;
    at = at === undefined || run.messages === undefined ? undefined : at + run.messages;
  }
  return batch;
}

function overlaps(at: number, count: number, { offset, end }: { offset: number; end: number }): boolean {
  return at + count > offset && at < end;
}

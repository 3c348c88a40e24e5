import { FakeClock } from '../../test/builders/fake-clock.js';
import type { EventsAnswer, FinishRequest, RunEvent } from '../protocol/run.js';
import { Reporter } from './reporter.js';
import { RunRefused } from './run-gateway.js';

type Answer = { [K in keyof EventsAnswer]?: EventsAnswer[K] | undefined } | Error | 'hang';

/** A reporter with a gateway in memory that acknowledges everything and holds what is told, unless the test gives its answers. */
function setUp(answers: Answer[] = []) {
  let told = 0;
  const clock = new FakeClock();
  const reports: { at: number; events: readonly RunEvent[]; live: readonly RunEvent[] }[] = [];
  const finishes: Pick<FinishRequest, 'events' | 'outcome'>[] = [];
  const journal: RunEvent[] = [];
  const happened: string[] = [];
  const reporter = new Reporter({
    gateway: {
      events: async ({ events, live }, signal) => {
        reports.push({ at: clock.monotonic() / 1000, events, live });
        const answer = answers.shift() ?? {};
        if (answer instanceof Error) throw answer;
        if (answer === 'hang') {
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          throw signal.reason;
        }
        told = Math.max(told, events.at(-1)?.seq ?? 0, live.at(-1)?.seq ?? 0);
        const ack = events.at(-1)?.seq ?? 0;
        return { ack, cancel: false, epoch: 1, live: told, ...answer } as EventsAnswer;
      },
      finish: (report) => {
        finishes.push(report);
        return Promise.resolve({ phase: 'done' });
      },
    },
    journal: {
      append: (event) => {
        journal.push(event);
        return Promise.resolve();
      },
    },
    clock,
    intervals: { heartbeatSeconds: 30, reportSeconds: 5 },
    onSteer: (messages) => happened.push(...messages.map(({ run }) => `steer ${run}`)),
    onCancel: () => happened.push('cancel'),
    onFailed: (error) => happened.push(error instanceof RunRefused ? `refused ${error.status}` : 'failed'),
  });
  const never = new AbortController().signal;
  const note = (text = 'x', signal = never) => reporter.record({ type: 'warning', text }, signal);
  const notes = async (count: number, text?: string) => {
    for (let i = 0; i < count; i++) await note(text);
  };
  const outcome = { reason: 'Completed', message: '', output: null };
  const finish = () => reporter.finish(outcome, never, 60_000);
  return { clock, reports, finishes, journal, happened, reporter, note, notes, finish };
}

const seqs = (events: readonly RunEvent[]) => events.map((event) => event.seq);

test('a short run stores nothing but its finish, with every event', async () => {
  const { reporter, clock, notes, finish, reports, finishes, journal } = setUp();
  reporter.start();
  await notes(3);
  await clock.advance(4_999);
  await finish();
  expect(reports.flatMap(({ events }) => events)).toEqual([]);
  expect(seqs(finishes[0]?.events ?? [])).toEqual([1, 2, 3]);
  expect(finishes).toHaveLength(1);
  expect(seqs(journal)).toEqual([1, 2, 3]);
  expect(clock.pending).toBe(0);
});

test('reports come after 5 s, then at intervals that double up to 120 s; heartbeats in between', async () => {
  // A gateway that is told nothing in between.
  const { reporter, clock, note, reports, finish } = setUp(Array.from({ length: 100 }, () => ({ live: undefined })));
  reporter.start();
  for (let second = 0; second < 700; second++) {
    await note();
    await clock.advance(1_000);
  }
  await finish();
  const full = reports.filter((report) => report.events.length > 0);
  const pauses = full.map((report, index) => report.at - (full[index - 1]?.at ?? 0));
  // The run makes more than 64 events in 120 s, so the longest pause here is the one that fills the buffer.
  expect(pauses.slice(0, 4)).toEqual([5, 10, 20, 40]);
  expect(full.every((report) => report.events.length <= 64)).toBe(true);
  const gaps = reports.map((report, index) => report.at - (reports[index - 1]?.at ?? 0));
  expect(Math.max(...gaps)).toBe(30);
});

test('the interval stays at 120 s', async () => {
  const { reporter, clock, note, reports, finish } = setUp();
  reporter.start();
  for (let minute = 0; minute < 20; minute++) {
    await note();
    await clock.advance(60_000);
  }
  await finish();
  const full = reports.filter((report) => report.events.length > 0).map((report) => report.at);
  const pauses = full.map((at, index) => at - (full[index - 1] ?? 0)).slice(-3);
  expect(pauses).toEqual([120, 120, 120]);
});

test('a run that does nothing beats every 30 s, with no events', async () => {
  const { reporter, clock, reports, finish } = setUp();
  reporter.start();
  await clock.advance(95_000);
  expect(reports).toEqual([
    { at: 30, events: [], live: [] },
    { at: 60, events: [], live: [] },
    { at: 90, events: [], live: [] },
  ]);
  await finish();
});

test('what is not acknowledged is sent again', async () => {
  const { reporter, clock, notes, reports, finish, finishes } = setUp([{}, { ack: 1 }]);
  reporter.start();
  await notes(3);
  await clock.advance(5_000);
  expect(seqs(reports[1]?.events ?? [])).toEqual([1, 2, 3]);
  await finish();
  expect(seqs(finishes[0]?.events ?? [])).toEqual([2, 3]);
});

test('with 64 events unacknowledged the loop waits, until there is room', async () => {
  const { reporter, clock, notes, note, reports, finish } = setUp(['hang']);
  await notes(63);
  let went = false;
  const waiting = note().then(() => (went = true));
  await clock.advance(0);
  expect(went).toBe(false);
  reporter.start();
  await clock.advance(0);
  expect(seqs(reports[0]?.events ?? [])).toHaveLength(64);
  expect(went).toBe(false);
  await Promise.all([finish(), clock.advance(2_000)]);
  await waiting;
});

test('a full buffer is sent at once and frees the loop', async () => {
  const { reporter, clock, notes, reports, finish } = setUp();
  reporter.start();
  await Promise.all([notes(100), clock.advance(1)]);
  expect(reports[0]?.at).toBeLessThan(0.01);
  expect(seqs(reports.flatMap((report) => [...report.events]))).toEqual(Array.from({ length: 64 }, (_, i) => i + 1));
  await finish();
});

test('8 MiB unacknowledged make the loop wait as well, and reports stay below 1 MiB', async () => {
  const { reporter, clock, notes, note, reports, finish, finishes } = setUp();
  await notes(15, 'x'.repeat(512 * 1024));
  let went = false;
  const waiting = note('x'.repeat(512 * 1024)).then(() => (went = true));
  await clock.advance(0);
  expect(went).toBe(false);
  reporter.start();
  await clock.advance(0);
  await waiting;
  await finish();
  for (const { events } of [...reports, ...finishes]) expect(JSON.stringify(events).length).toBeLessThan(1024 * 1024);
  expect(seqs([...reports, ...finishes].flatMap((report) => [...report.events]))).toEqual(
    Array.from({ length: 16 }, (_, i) => i + 1),
  );
});

test('an abort ends the wait for room', async () => {
  const { clock, notes, note } = setUp();
  await notes(63);
  const abort = new AbortController();
  const waiting = note('x', abort.signal);
  await clock.advance(0);
  abort.abort();
  await waiting;
});

test('an answer that asks to cancel is told', async () => {
  const { reporter, clock, happened, finish } = setUp([{ cancel: true }]);
  reporter.start();
  await clock.advance(30_000);
  expect(happened).toEqual(['cancel']);
  await finish();
});

test.each([
  ['a refusal for good', new RunRefused(410), 'refused 410'],
  ['an answer that should not be', new Error('HTTP 400'), 'failed'],
])('%s is told once, ends reporting, and nothing waits for room any more', async (_name, error, told) => {
  const { reporter, clock, notes, happened, reports } = setUp([error]);
  reporter.start();
  await clock.advance(30_000);
  await notes(200);
  await clock.advance(300_000);
  expect(happened).toEqual([told]);
  expect(reports).toHaveLength(1);
});

test('a finish lets a report in flight end for 2 s, then sends its events again', async () => {
  const { reporter, clock, note, finish, finishes, happened } = setUp([{}, 'hang']);
  reporter.start();
  await note();
  await clock.advance(5_000);
  const finishing = finish();
  await clock.advance(1_999);
  expect(finishes).toEqual([]);
  await clock.advance(1);
  await finishing;
  expect(seqs(finishes[0]?.events ?? [])).toEqual([1]);
  expect(happened).toEqual([]);
});

test('a gateway that acknowledges nothing does not hold the finish in a circle', async () => {
  const { notes, finish } = setUp([{ ack: 0 }]);
  await notes(3, 'x'.repeat(512 * 1024));
  await expect(finish()).rejects.toThrow('The gateway acknowledged no event of a report.');
});

const lives = (reports: readonly { at: number; live: readonly RunEvent[] }[]) =>
  reports.filter(({ live }) => live.length > 0).map(({ at, live }) => [at, seqs(live)]);

test('what is not stored yet is told at once: each event once, at most four times a second, with every one that came meanwhile', async () => {
  const { reporter, clock, note, reports, finish } = setUp();
  reporter.start();
  for (let tenth = 0; tenth < 10; tenth++) {
    await note();
    await clock.advance(100);
  }
  await clock.advance(1_000);
  expect(lives(reports)).toEqual([
    [0.25, [1, 2, 3]],
    [0.55, [4, 5, 6]],
    [0.85, [7, 8, 9]],
    [1.15, [10]],
  ]);
  await clock.advance(3_000);
  expect(reports.slice(4).map(({ at, events }) => [at, seqs(events)])).toEqual([[5, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]]);
  await finish();
});

test('a gateway that takes the run over is told everything that is not stored', async () => {
  const { reporter, clock, notes, reports, finish } = setUp([{}, { live: 0 }]);
  reporter.start();
  await notes(2);
  await clock.advance(1_000);
  await notes(1);
  await clock.advance(1_000);
  expect(lives(reports)).toEqual([
    [0.25, [1, 2]],
    [1.25, [3]],
    [1.5, [1, 2, 3]],
  ]);
  await finish();
});

test('a gateway that does not know of it is told nothing more, until another one does', async () => {
  const older = { live: undefined };
  const { reporter, clock, notes, reports, finish } = setUp([older, older, {}]);
  reporter.start();
  await notes(1);
  await clock.advance(4_000);
  await notes(1);
  await clock.advance(1_000);
  await notes(1);
  await clock.advance(9_000);
  expect(lives(reports)).toEqual([[0.25, [1]]]);
  expect(reports.slice(1).map(({ at, events }) => [at, seqs(events)])).toEqual([[5, [1, 2]]]);
  await clock.advance(1_000);
  await notes(1);
  await clock.advance(250);
  expect(lives(reports).slice(1)).toEqual([[15.25, [4]]]);
  await finish();
});

test('what is told at once stays below 1 MiB', async () => {
  const { reporter, clock, notes, reports, finish } = setUp();
  reporter.start();
  await notes(3, 'x'.repeat(512 * 1024));
  await clock.advance(1_000);
  expect(lives(reports).map(([, live]) => live)).toEqual([[1], [2], [3]]);
  await finish();
});

const STEERED = { role: 'user' as const, text: 'Stop.', steered: 'helper-2' };

test('what people sent is told with every answer', async () => {
  const { reporter, clock, happened, finish } = setUp([{ steer: [{ run: 'helper-2', text: 'Stop.' }] }, {}]);
  reporter.start();
  await clock.advance(60_000);
  expect(happened).toEqual(['steer helper-2']);
  await finish();
});

test('whoever asks hears the next answer at once, with what was not told yet', async () => {
  const { reporter, clock, note, happened, reports, finish } = setUp([{ steer: [{ run: 'helper-2', text: 'Stop.' }] }]);
  reporter.start();
  await note();
  const heard = reporter.hear().then(() => happened.push('heard'));
  await clock.advance(0);
  await heard;
  expect(happened).toEqual(['steer helper-2', 'heard']);
  expect(lives(reports)).toEqual([[0, [1]]]);
  await finish();
});

test('an answer that does not come is waited for no longer than a second; an older gateway is not asked', async () => {
  const slow = setUp(['hang']);
  slow.reporter.start();
  let went = false;
  void slow.reporter.hear().then(() => (went = true));
  await slow.clock.advance(999);
  expect(went).toBe(false);
  await slow.clock.advance(1);
  expect(went).toBe(true);
  await Promise.all([slow.finish(), slow.clock.advance(2_000)]);

  const older = setUp([{ live: undefined }]);
  older.reporter.start();
  await older.clock.advance(30_000);
  await older.reporter.hear();
  expect(older.reports).toHaveLength(1);
  await older.finish();
  await older.reporter.hear();
});

test('a message that was taken is stored at once', async () => {
  const { reporter, clock, note, reports, finish } = setUp();
  reporter.start();
  await note();
  await reporter.record({ type: 'message', v: 1, message: STEERED }, new AbortController().signal);
  await clock.advance(0);
  expect(reports.map(({ at, events }) => [at, seqs(events)])).toEqual([[0, [1, 2]]]);
  await note();
  await clock.advance(1_000);
  expect(reports.filter(({ events }) => events.length > 0)).toHaveLength(1);
  await finish();
});

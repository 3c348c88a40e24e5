import { FakeClock } from '../../test/builders/fake-clock.js';
import { recordingLog } from '../../test/builders/log.js';
import { EventRecorder } from './event-recorder.js';
import type { EventSeries, EventWriter, ObjectEvent } from './event-recorder.js';

const MINUTE = 60_000;

/** Keeps what is written; `fail` and `hang` are for the next writes. */
class RecordingWriter implements EventWriter {
  readonly written: string[] = [];
  fail = false;
  hang = false;

  create({ subject, reason, note }: ObjectEvent, series: EventSeries | undefined, signal: AbortSignal) {
    return this.#write(`create ${subject.name} ${reason}: ${note}${countOf(series)}`, signal);
  }

  repeat({ subject, reason, note }: ObjectEvent, series: EventSeries, signal: AbortSignal) {
    return this.#write(`repeat ${subject.name} ${reason}: ${note}${countOf(series)}`, signal);
  }

  async #write(line: string, signal: AbortSignal): Promise<void> {
    await Promise.resolve();
    if (this.hang) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('late'))));
    if (this.fail) throw new Error('refused');
    this.written.push(line);
  }
}

const countOf = (series: EventSeries | undefined) => (series === undefined ? '' : ` x${series.count}`);

function setUp() {
  const clock = new FakeClock();
  const writer = new RecordingWriter();
  const dropped: string[] = [];
  const logged = recordingLog();
  const recorder = new EventRecorder({ writer, clock, log: logged.log, metrics: { dropped: (c) => dropped.push(c) } });
  const record = (event: Partial<ObjectEvent> & { name?: string } = {}) => {
    const { name = 'one', ...more } = event;
    recorder.record({
      subject: { apiVersion: 'example.com/v1', kind: 'Thing', name, uid: `uid-${name}` },
      type: 'Warning',
      reason: 'Broken',
      note: 'It broke.',
      action: 'Used',
      at: new Date(clock.now()).toISOString(),
      ...more,
    });
  };
  return { clock, writer, dropped, logged, recorder, record };
}

test('recording returns at once, and what is recorded is written in its order', async () => {
  const { clock, writer, dropped, record } = setUp();
  record({ name: 'one' });
  record({ name: 'two', type: 'Normal', reason: 'Mended', note: 'It works.' });
  expect(writer.written).toEqual([]);
  await clock.advance(0);
  expect(writer.written).toEqual(['create one Broken: It broke.', 'create two Mended: It works.']);
  expect(dropped).toEqual([]);
});

test('a note is cut to what Kubernetes takes, also when it is combined from others', async () => {
  const { clock, writer, record } = setUp();
  for (let i = 1; i <= 12; i++) record({ note: `${i} ${'é'.repeat(600)}` });
  await clock.advance(0);
  const sizes = writer.written.map((line) => Buffer.byteLength(line.replace(/^create one Broken: | x2$/g, '')));
  expect([sizes.length, Math.min(...sizes) > 1_000, Math.max(...sizes)]).toEqual([11, true, 1_024]);
});

describe('the same of the same object', () => {
  test('within 10 minutes is one event with a count', async () => {
    const { clock, writer, record } = setUp();
    for (let i = 0; i < 3; i++) {
      record();
      await clock.advance(9 * MINUTE);
    }
    expect(writer.written).toEqual([
      'create one Broken: It broke.',
      'repeat one Broken: It broke. x2',
      'repeat one Broken: It broke. x3',
    ]);
  });

  test('later is a new event', async () => {
    const { clock, writer, record } = setUp();
    record();
    await clock.advance(10 * MINUTE);
    record();
    await clock.advance(0);
    expect(writer.written).toEqual(['create one Broken: It broke.', 'create one Broken: It broke.']);
  });

  test('while the first one waits to be written is one write', async () => {
    const { clock, writer, record } = setUp();
    record({ name: 'other' });
    for (let i = 0; i < 5; i++) record();
    await clock.advance(0);
    expect(writer.written).toEqual(['create other Broken: It broke.', 'create one Broken: It broke. x5']);
  });

  test('of another type, reason, note or object is another event', async () => {
    const { clock, writer, record } = setUp();
    for (const other of [{}, { type: 'Normal' as const }, { reason: 'Worse' }, { note: 'Why?' }, { name: 'two' }]) {
      record(other);
    }
    await clock.advance(0);
    expect(writer.written.map((line) => line.split(' ')[0])).toEqual(Array.from({ length: 5 }, () => 'create'));
  });

  test('many that differ in the note alone are combined', async () => {
    const { clock, writer, record } = setUp();
    for (let i = 1; i <= 13; i++) record({ note: `try ${i}` });
    await clock.advance(0);
    expect(writer.written.slice(-2)).toEqual([
      'create one Broken: try 10',
      'create one Broken: (combined from similar events) try 11 x3',
    ]);
  });
});

describe('too many', () => {
  test('of one object are dropped and counted, and those of others are written', async () => {
    const { clock, writer, dropped, record } = setUp();
    for (let i = 1; i <= 30; i++) record({ reason: `R${i}` });
    record({ name: 'two' });
    await clock.advance(0);
    expect(writer.written).toHaveLength(21);
    expect(writer.written.at(-1)).toBe('create two Broken: It broke.');
    expect(dropped).toEqual(Array.from({ length: 10 }, () => 'object_rate'));
    // One a minute comes back.
    await clock.advance(MINUTE);
    record({ reason: 'R31' });
    record({ reason: 'R32' });
    await clock.advance(0);
    expect(writer.written.at(-1)).toBe('create one R31: It broke.');
  });

  test('repetitions of one object are not written one by one, and the next write has them all', async () => {
    const { clock, writer, record } = setUp();
    for (let i = 0; i < 100; i++) {
      record();
      await clock.advance(1_000);
    }
    expect(writer.written.length).toBeLessThanOrEqual(22);
    await clock.advance(MINUTE);
    record();
    await clock.advance(0);
    expect(writer.written.at(-1)).toBe('repeat one Broken: It broke. x101');
  });

  test('of all are written at 10 a second', async () => {
    const { clock, writer, dropped, record } = setUp();
    for (let i = 0; i < 200; i++) record({ name: `n${i}` });
    await clock.advance(0);
    expect(writer.written).toHaveLength(50);
    await clock.advance(5_000);
    expect(writer.written).toHaveLength(100);
    await clock.advance(10_000);
    expect(writer.written).toHaveLength(200);
    expect(dropped).toEqual([]);
  });

  test('for the queue are dropped and counted: first the normal ones', async () => {
    const { clock, writer, dropped, record } = setUp();
    writer.hang = true;
    record({ name: 'first' });
    for (let i = 0; i < 600; i++) record({ name: `normal-${i}`, type: 'Normal' });
    expect(dropped).toHaveLength(100);
    for (let i = 0; i < 600; i++) record({ name: `warning-${i}` });
    expect(dropped).toEqual(Array.from({ length: 200 }, () => 'queue_full'));
    expect(clock.pending).toBeGreaterThan(0);
  });
});

describe('a write that fails', () => {
  test('is counted and logged at debug, and the next one is told as the first', async () => {
    const { clock, writer, dropped, logged, record } = setUp();
    writer.fail = true;
    record();
    await clock.advance(0);
    expect(dropped).toEqual(['failed']);
    expect(logged.lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
      'debug event could not be written',
    ]);
    writer.fail = false;
    record();
    await clock.advance(0);
    expect(writer.written).toEqual(['create one Broken: It broke. x2']);
  });

  test('by not ending is given up, and the others are written', async () => {
    const { clock, writer, dropped, record } = setUp();
    writer.hang = true;
    record();
    record({ name: 'two' });
    await clock.advance(4_000);
    expect(dropped).toEqual([]);
    writer.hang = false;
    await clock.advance(1_000);
    expect(dropped).toEqual(['failed']);
    expect(writer.written).toEqual(['create two Broken: It broke.']);
  });
});

describe('at the stop', () => {
  test('what waits for its turn is written at once', async () => {
    const { clock, writer, dropped, recorder, record } = setUp();
    for (let i = 0; i < 80; i++) record({ name: `n${i}` });
    await clock.advance(0);
    expect(writer.written).toHaveLength(50);
    await recorder.stop();
    expect(writer.written).toHaveLength(80);
    record({ name: 'late' });
    await clock.advance(MINUTE);
    expect([writer.written.length, dropped]).toEqual([80, []]);
    expect(clock.pending).toBe(0);
  });

  test('it takes 2 seconds at most; the rest is dropped and counted', async () => {
    const { clock, writer, dropped, recorder, record } = setUp();
    writer.hang = true;
    for (let i = 0; i < 3; i++) record({ name: `n${i}` });
    let isStopped = false;
    void recorder.stop().then(() => (isStopped = true));
    await clock.advance(1_999);
    expect(isStopped).toBe(false);
    await clock.advance(1);
    expect(isStopped).toBe(true);
    expect(dropped).toEqual(['failed', 'stopped', 'stopped']);
    expect(clock.pending).toBe(0);
  });

  test('nothing is waited for when nothing waits', async () => {
    const { clock, recorder } = setUp();
    await recorder.stop();
    expect(clock.pending).toBe(0);
  });
});

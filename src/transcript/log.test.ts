import { createCipheriv, createHash } from 'node:crypto';
import { jest } from '@jest/globals';
import * as fc from '../../test/builders/properties.js';
import { AgentRunChunks, AgentRunChunkSpec } from '../api/v1alpha1/agent-run-chunk.js';
import type { RunEvent } from '../protocol/run.js';
import { RecordingApi, apiError } from '../../test/builders/recording-api.js';
import { turnsDuring } from '../../test/builders/turns.js';
import { assistantMessage, outputEvent, toolEvent, userMessage } from '../../test/builders/run-events.js';
import { collect } from './chunk-store.js';
import { decodeChunk } from './codec.js';
import { hasCutResult } from './in-order.js';
import { TranscriptLog } from './log.js';

const OWNER = { namespace: 'bw-lab', name: 'helper-1', uid: 'uid-run' };
const KIB = 1024;

/** Text that gzip cannot shrink below about three quarters; the same in every run of the tests. */
const NOISE = createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16))
  .update(Buffer.alloc(1200 * KIB))
  .toString('base64');

function noise(bytes: number, place = 0): string {
  const from = (place * 50_021) % (NOISE.length - bytes);
  return NOISE.slice(from, from + bytes);
}

/** Takes all chunks but the last two, and leaves nothing that could make room: what people say is never cut. */
async function fill(log: TranscriptLog): Promise<void> {
  for (let seq = 1; seq <= 22; seq++) await log.append([userMessage(seq, noise(100 * KIB, seq))]);
}

/** Events without their long texts: a failed comparison stays readable. */
function prints(events: readonly RunEvent[]): string[] {
  const digest = (event: RunEvent) => createHash('sha256').update(JSON.stringify(event)).digest('hex').slice(0, 12);
  return events.map((event) => `${event.seq} ${event.type} ${digest(event)}`);
}

async function stored(api: RecordingApi) {
  const chunks = api.all(AgentRunChunks).map(({ spec }) => spec);
  const events = (await Promise.all(chunks.map((spec) => decodeChunk(spec)))).flat();
  return { chunks, events };
}

test('what is too large for one chunk is split in order', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  const events = Array.from({ length: 12 }, (_, i) => toolEvent(i + 1, JSON.stringify(noise(30 * KIB, i))));

  await log.append(events);

  const { chunks, events: kept } = await stored(api);
  expect(chunks.length).toBeGreaterThan(1);
  expect(prints(kept)).toEqual(prints(events));
  expect(log.summary).toEqual({
    state: 'full',
    chunks: chunks.length,
    bytes: chunks.reduce((sum, { bytes }) => sum + bytes, 0),
    storedBytes: chunks.reduce((sum, { data }) => sum + data.length, 0),
    messages: 1,
  });
});

test('messages are the input and what the agent said, each once, also after a take-over', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  const first = [userMessage(1, 'hello'), assistantMessage(2, 'I look.'), assistantMessage(3, ''), toolEvent(4)];
  await log.append(first);
  expect(log.summary.messages).toBe(2);

  const other = await TranscriptLog.load(api, OWNER, false);
  expect(other.summary.messages).toBe(2);
  await other.append([...first, assistantMessage(5, 'Found it.')]);
  expect(other.summary.messages).toBe(3);

  // The first one finds the chunk of the other in its place.
  await log.close([assistantMessage(5, 'Found it.'), assistantMessage(6, 'Done.'), outputEvent(7, 'Done.')]);
  expect(log.summary).toMatchObject({ chunks: 3, messages: 4 });
});

test('what found no room is no message', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  await fill(log);
  for (let seq = 23; seq <= 30; seq++) await log.append([assistantMessage(seq, 'on it')]);
  expect(log.summary).toMatchObject({ state: 'truncated', chunks: 22, messages: 1 });

  await log.close([assistantMessage(31, 'the end'), outputEvent(32, 'the end')]);
  expect(log.summary).toMatchObject({ chunks: 23, messages: 2 });
});

test('a report of nothing new makes no chunk', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  await log.append([toolEvent(1)]);
  await log.append([toolEvent(1)]);
  await log.append([]);

  expect(log.summary.chunks).toBe(1);
});

test('a single event that is larger than a chunk loses text, stays valid and can be repeated', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  const event = toolEvent(1, JSON.stringify(noise(600 * KIB)));

  await log.append([event]);
  await log.append([event]);

  const { events } = await stored(api);
  expect(log.summary).toMatchObject({ state: 'truncated', chunks: 1 });
  const [kept] = events as Extract<RunEvent, { type: 'tool' }>[];
  expect(JSON.parse(kept?.result ?? '')).toMatchObject({ truncated: true, bytes: 600 * KIB + 2 });
  const loaded = await TranscriptLog.load(api, OWNER, false);
  await loaded.append([event]);
  expect(loaded.summary.chunks).toBe(1);
});

test('when a run has used its chunks, events are acknowledged but left out, and the end still fits', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  await fill(log);
  for (let seq = 23; seq <= 30; seq++) await log.append([toolEvent(seq)]);
  expect(log.ack).toBe(30);
  expect(log.summary).toMatchObject({ state: 'truncated', chunks: 22 });

  const last = [assistantMessage(31, 'the end'), outputEvent(32, 'the end')];
  await log.close(last);

  expect(log.summary).toMatchObject({ state: 'truncated', chunks: 23 });
  expect((await stored(api)).events.slice(-2)).toEqual(last);
});

test('a run of any length keeps everything in its chunks: two that are half empty become one', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  const events = Array.from({ length: 120 }, (_, i) => toolEvent(i + 1, JSON.stringify(noise(4 * KIB, i))));
  for (const event of events) await log.append([event]);

  expect(log.summary).toMatchObject({ state: 'full', chunks: 22 });
  const { chunks } = await stored(api);
  expect(prints((await collect(chunks, 'full')).events)).toEqual(prints(events));
  expect(log.summary.bytes).toBe(chunks.reduce((sum, { bytes }) => sum + bytes, 0));
  const other = await TranscriptLog.load(api, OWNER, false);
  expect(other.summary).toEqual(log.summary);
  await other.append([...events.slice(-1), toolEvent(121)]);
  expect(other.ack).toBe(121);
});

/** A step of a run: what people and agent say, one call. */
function step(first: number, result: string): RunEvent[] {
  const at = '2026-01-01T00:00:00.000Z';
  const said = { role: 'tool' as const, callId: `c${first}`, tool: 'shell', result, isError: false };
  const message: RunEvent = { type: 'message', v: 1, seq: first + 2, at, message: said };
  return [userMessage(first, `Next ${first}`), toolEvent(first + 1, result), message];
}

test('a run above the bound keeps what is new: results of tools are cut, the oldest first, and marked', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  const steps = Array.from({ length: 80 }, (_, i) => step(1 + 3 * i, JSON.stringify('y'.repeat(100 * KIB))));
  for (const events of steps) await log.append(events);
  const end = [assistantMessage(241, 'Done.'), outputEvent(242, 'Done.')];
  await log.close(end);

  expect(log.summary).toMatchObject({ state: 'truncated', onlyResultsCut: true, messages: 2 });
  expect(log.summary.bytes).toBeLessThanOrEqual(3 * 1024 * KIB + 1024);
  const { chunks } = await stored(api);
  const { events } = await collect(chunks, 'truncated');
  expect(events.map(({ seq }) => seq)).toEqual(Array.from({ length: 242 }, (_, i) => i + 1));
  const cut = events.map(hasCutResult);
  // What is cut is older than anything that is whole.
  const newestCut = cut.lastIndexOf(true);
  expect(cut.slice(0, newestCut + 1).filter(Boolean).length).toBe(Math.floor((newestCut + 1) * (2 / 3)));
  expect(events.length - newestCut).toBeGreaterThan(3 * 11);
  expect(prints(events.slice(newestCut + 1))).toEqual(prints([...steps.flat(), ...end].slice(newestCut + 1)));
  expect(events.filter((event) => event.type === 'message' && event.message.role === 'user')).toEqual(
    steps.map(([said]) => said),
  );
});

test('a pod that takes over a run whose results were cut gets the same report again, and goes on', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  const steps = Array.from({ length: 20 }, (_, i) => step(1 + 3 * i, JSON.stringify('y'.repeat(100 * KIB))));
  for (const events of steps) await log.append(events);
  const other = await TranscriptLog.load(api, OWNER, false);
  expect(other.summary).toEqual(log.summary);

  await other.append(steps[0] ?? []);
  await other.append(step(61, '"done"'));
  expect(other.summary).toMatchObject({ state: 'truncated', onlyResultsCut: true });
  expect(other.ack).toBe(63);
});

/** One patch fails, after so many that do not. */
function failPatchAfter(api: RecordingApi, count: number, error: Error): void {
  const patch = api.patch.bind(api);
  let left = count;
  const spy = jest.spyOn(api, 'patch');
  spy.mockImplementation((...args) => {
    left -= 1;
    return left === -1 ? Promise.reject(error) : patch(...args);
  });
}

test.each([
  ['a crash', apiError(500, 'InternalError')],
  ['another pod', apiError(409, 'Conflict')],
])('%s between any two writes that make room loses and doubles nothing', async (_what, error) => {
  for (let writes = 0; writes <= 4; writes++) {
    const api = new RecordingApi();
    const log = new TranscriptLog(api, OWNER);
    for (let seq = 1; seq <= 22; seq++) await log.append([toolEvent(seq)]);
    failPatchAfter(api, writes, error);
    const more = [toolEvent(23), toolEvent(24)];
    try {
      for (const event of more) await log.append([event]);
    } catch (thrown) {
      expect(thrown).toBe(error);
    }

    const other = await TranscriptLog.load(api, OWNER, false);
    await other.append(more);
    const { events } = await collect((await stored(api)).chunks, 'full');
    expect(prints(events)).toEqual(prints(Array.from({ length: 24 }, (_, i) => toolEvent(i + 1))));
    expect(other.summary.state).toBe('full');
  }
});

test('two pods that write at once, the one before and the one after a take-over, lose and double nothing', async () => {
  const api = new RecordingApi();
  const events = Array.from({ length: 60 }, (_, i) => toolEvent(i + 1, JSON.stringify(noise(500 * (i % 5), i))));
  const write = async (log: TranscriptLog, size: number) => {
    for (let i = 0; i < events.length; i += size) await log.append(events.slice(i, i + size));
  };
  await Promise.all([write(new TranscriptLog(api, OWNER), 1), write(new TranscriptLog(api, OWNER), 2)]);

  const { chunks } = await stored(api);
  expect(chunks).toHaveLength(22);
  expect(prints((await collect(chunks, 'full')).events)).toEqual(prints(events));
  expect((await TranscriptLog.load(api, OWNER, false)).summary).toMatchObject({ state: 'full', chunks: 22 });
});

test('a pod that takes over while the one before moves events between chunks misses none', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  const events = Array.from({ length: 23 }, (_, i) => toolEvent(i + 1));
  for (const event of events.slice(0, 22)) await log.append([event]);
  const get = api.get.bind(api);
  let reads = 0;
  // The two oldest chunks become one when the first of them was read.
  const slow = {
    get: async (...args: Parameters<RecordingApi['get']>) => {
      const found = await get(...args);
      reads += 1;
      if (reads === 1) await log.append(events);
      return found;
    },
    create: api.create.bind(api),
    patch: api.patch.bind(api),
  } as RecordingApi;

  const other = await TranscriptLog.load(slow, OWNER, false);
  expect(other.summary.state).toBe('full');
  expect(other.ack).toBe(23);
});

test('what was left out is not remembered: a run may leave out any number of events', async () => {
  const log = new TranscriptLog(new RecordingApi(), OWNER);
  await fill(log);
  await log.append([userMessage(23, 'more')]);
  const last = log.ack;

  await log.append([toolEvent(last, '"other"')]);
  await expect(log.append([userMessage(1, 'other')])).rejects.toThrow('event 1 is stored already with other content');
  expect(log.ack).toBe(last);
});

test('others are served while large events are compared with what is stored', async () => {
  const log = new TranscriptLog(new RecordingApi(), OWNER);
  const events = Array.from({ length: 4 }, (_, i) => outputEvent(i + 1, 'x'.repeat(700 * KIB)));
  await log.append(events);

  expect(await turnsDuring(() => log.append(events))).toBeGreaterThanOrEqual(events.length);
});

test('the bytes of a run are bounded too', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  for (let seq = 1; seq <= 6; seq++) await log.append([userMessage(seq, 'x'.repeat(900 * KIB))]);

  expect(log.summary).toMatchObject({ state: 'truncated', chunks: 3 });
  await log.close([outputEvent(7, 'x'.repeat(900 * KIB))]);
  expect(log.summary).toMatchObject({ chunks: 4 });
});

test('of an end that does not fit, tool calls go first and the output stays', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  await fill(log);
  const calls = Array.from({ length: 40 }, (_, i) => toolEvent(23 + i, JSON.stringify(noise(30 * KIB, i))));

  await log.close([...calls, assistantMessage(63, 'bye'), outputEvent(64, 'bye')]);

  const end = [assistantMessage(63, 'bye'), outputEvent(64, 'bye')];
  expect(prints((await stored(api)).events.slice(22))).toEqual(prints(end));
  expect(log.summary).toMatchObject({ state: 'truncated', chunks: 23 });
  expect(log.hasOutput).toBe(true);
});

test('an end that lost text is the same end for the pod that takes over', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  await fill(log);
  const said = Array.from({ length: 20 }, (_, i) => assistantMessage(23 + i, noise(60 * KIB, i)));
  const end = [...said, outputEvent(43, noise(60 * KIB))];
  await log.close(end);
  expect(log.summary).toMatchObject({ state: 'truncated', chunks: 24 });

  const other = await TranscriptLog.load(api, OWNER, false);
  await other.close(end);
  expect(other.summary).toEqual(log.summary);
});

test.each([
  ['texts', Array.from({ length: 12 }, (_, i) => assistantMessage(23 + i, noise(60 * KIB, i)))],
  ['tool calls', [assistantMessage(23, 'Wait.'), ...[24, 25, 26].map((seq) => toolEvent(seq, noise(150 * KIB, seq)))]],
])('an end that lost nothing but %s is truncated for the pod that takes over, too', async (_name, before) => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  await fill(log);
  const end = [...before, outputEvent(23 + before.length, noise(60 * KIB))];
  await log.close(end);
  expect(log.summary.state).toBe('truncated');

  const other = await TranscriptLog.load(api, OWNER, false);
  await other.close(end);
  expect(other.summary).toEqual(log.summary);
});

test('what was left out before another pod took over is missing there, too', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  await fill(log);
  await log.append([toolEvent(23)]);
  expect(log.ack).toBe(23);

  const other = await TranscriptLog.load(api, OWNER, false);
  await other.close([assistantMessage(24, 'Done.'), outputEvent(25, 'Done.')]);
  expect(other.summary).toMatchObject({ state: 'truncated', chunks: 23 });
});

test('the last chunks take a summary of the session, an open call and the output, whatever came before', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  await fill(log);
  for (let seq = 23; seq <= 40; seq++) await log.append([toolEvent(seq, JSON.stringify(noise(30 * KIB, seq)))]);
  expect(log.summary).toMatchObject({ state: 'truncated', chunks: 22 });

  const at = '2026-01-01T00:00:00.000Z';
  const compacted: RunEvent = { type: 'compaction', seq: 41, at, text: 'What happened so far.', kept: 1 };
  const open: RunEvent = {
    type: 'message',
    v: 1,
    seq: 42,
    at,
    message: {
      role: 'assistant',
      text: '',
      toolCalls: [{ id: 'a', tool: 'ask_user', input: '{"question":"Which?"}' }],
    },
  };
  const output = outputEvent(43, noise(60 * KIB));
  await log.close([compacted, open, output]);

  expect(log.summary.chunks).toBeLessThanOrEqual(24);
  expect(prints((await stored(api)).events.slice(-3))).toEqual(prints([compacted, open, output]));
});

test('a namespace that takes no more objects does not stop a run', async () => {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  api.failNext({ verb: 'create', error: apiError(403, 'Forbidden') });

  await log.append([toolEvent(1)]);
  await log.append([toolEvent(2)]);

  expect(log.ack).toBe(2);
  expect((await stored(api)).events).toEqual([toolEvent(2)]);
  expect(log.summary.state).toBe('truncated');
});

test('a chunk of an earlier run of the same name is never taken for ours', async () => {
  const api = new RecordingApi();
  await new TranscriptLog(api, { ...OWNER, uid: 'uid-before' }).append([toolEvent(1)]);

  await expect(new TranscriptLog(api, OWNER).append([toolEvent(1)])).rejects.toThrow('belongs to an earlier run');
  expect((await TranscriptLog.load(api, OWNER, false)).ack).toBe(0);
});

test('a damaged chunk of another process counts as truncated', async () => {
  const api = new RecordingApi();
  await new TranscriptLog(api, OWNER).append([toolEvent(1)]);
  const [chunk] = api.all(AgentRunChunks);
  if (chunk !== undefined) api.seed(AgentRunChunks, { ...chunk, spec: { ...chunk.spec, data: 'bm90IGd6aXA=' } });

  expect((await TranscriptLog.load(api, OWNER, false)).summary).toMatchObject({ state: 'truncated', chunks: 1 });
});

const anyEvent = (seq: number) =>
  fc.oneof(
    fc.nat(40_000).map((size) => toolEvent(seq, JSON.stringify(noise(size, seq)))),
    fc.nat(400_000).map((size) => userMessage(seq, 'ä'.repeat(size / 2))),
    fc.nat(150_000).map((size) => assistantMessage(seq, noise(size, seq))),
    fc.nat(300_000).map((size) => outputEvent(seq, noise(size, seq))),
  );
const anyReports = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 8 }).chain((sizes) => {
  let seq = 0;
  return fc.tuple(...sizes.map((size) => fc.tuple(...Array.from({ length: size }, () => anyEvent((seq += 1))))));
});

test('whatever a run reports, in whatever pieces and however often, the bounds hold and nothing is doubled', async () => {
  await fc.assert(
    fc.asyncProperty(anyReports, fc.boolean(), async (reports, repeat) => {
      const api = new RecordingApi();
      let log = new TranscriptLog(api, OWNER);
      for (const [index, report] of reports.entries()) {
        const write = () => (index === reports.length - 1 ? log.close(report) : log.append(report));
        await write();
        if (repeat) {
          await write();
          log = await TranscriptLog.load(api, OWNER, log.summary.state === 'truncated');
        }
      }
      const { chunks, events } = await stored(api);
      expect(chunks.length).toBeLessThanOrEqual(24);
      expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_, index) => index));
      let total = 0;
      for (const spec of chunks) {
        expect(AgentRunChunkSpec.safeParse(spec).success).toBe(true);
        expect(Buffer.from(spec.data, 'base64').length).toBeLessThanOrEqual(128 * KIB);
        expect(spec.bytes).toBeLessThanOrEqual(1024 * KIB);
        total += spec.bytes;
      }
      expect(total).toBeLessThanOrEqual(4 * 1024 * KIB);
      const seqs = events.map(({ seq }) => seq);
      expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
      const sent = reports.flat();
      if (log.summary.state === 'full') expect(prints(events)).toEqual(prints(sent));
      expect(log.summary).toMatchObject({ chunks: chunks.length, bytes: total });
    }),
    { numRuns: 12 },
  );
});

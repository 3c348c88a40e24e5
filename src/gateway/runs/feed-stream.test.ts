import type { FeedMessage } from '../../protocol/feed.js';
import type { RunEvent } from '../../protocol/run.js';
import { assistantMessage, stepEvent, toolEvent, userMessage } from '../../../test/builders/run-events.js';
import { FeedStream } from './feed-stream.js';
import { GatewayWorld } from '../../../test/builders/gateway-world.js';

const EVENTS = [userMessage(1, 'hello'), toolEvent(2), stepEvent(3), assistantMessage(4, 'done')];
const OUTCOME = { reason: 'Completed', message: '', output: 'done' };

async function followed(after = 0) {
  const world = new GatewayWorld();
  const token = world.addApiPod('api-1');
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');
  await world.claim(gateway, pod);
  const tell = (live: readonly RunEvent[]) => world.call(gateway, pod, 'events', { epoch: 1, events: [], live });
  const store = (events: readonly RunEvent[]) => world.call(gateway, pod, 'events', { epoch: 1, events });
  await tell(EVENTS.slice(0, 2));
  const stream = world.follow(gateway, 'helper-1', token, after);
  await world.clock.advance(0);
  const served = gateway.gateway.served.get({ namespace: pod.namespace, name: 'helper-1' });
  if (served === undefined) throw new Error('the run is not served');
  return { world, gateway, pod, token, stream, served, tell, store };
}

const seqs = (messages: readonly FeedMessage[]) =>
  messages.flatMap((message) => (message.type === 'event' ? [message.event.seq] : []));
const texts = (messages: readonly FeedMessage[]) =>
  messages.flatMap((message) => (message.type === 'text' ? [[message.from, message.text]] : []));

test('a follower gets what is not stored, everything that happens, each once, and the end', async () => {
  const { world, gateway, pod, stream, tell, store } = await followed();
  const uid = world.run('helper-1').metadata.uid;
  const begun = stream.messages();
  expect(begun).toMatchObject([
    { type: 'run', uid, incomplete: false },
    { type: 'event', event: EVENTS[0] },
    { type: 'event', event: EVENTS[1] },
    { type: 'usage', usage: { steps: 0 } },
  ]);
  await tell(EVENTS.slice(0, 3));
  // Stored before it was told.
  await store(EVENTS);
  await world.chat(gateway, pod, { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] });
  await world.clock.advance(250);
  const then = stream.messages();
  expect(seqs(then)).toEqual([3, 4]);
  expect(then.at(-1)).toMatchObject({ type: 'usage', usage: { steps: 1 } });
  const last = { ...userMessage(5, 'x'), type: 'output' as const, text: 'done' };
  await world.call(gateway, pod, 'finish', { epoch: 1, events: [last], outcome: OUTCOME });
  await stream.done;
  const ended = stream.messages();
  expect(seqs(ended)).toEqual([5]);
  expect(ended.at(-1)).toEqual({ type: 'end' });
  expect(world.clock.pending).toBe(1);
});

test('one that comes back asks for what comes after the last event that it saw', async () => {
  const { stream } = await followed(1);
  expect(seqs(stream.messages())).toEqual([2]);
});

test('text comes while it is written, at most four times a second; another try begins it again', async () => {
  const { world, stream, served } = await followed();
  const answer = { said: '' };
  served.call = { open: undefined, abort: () => undefined, answer };
  const seen: unknown[] = [];
  for (const letter of 'abcdefghij') {
    answer.said += letter;
    await world.clock.advance(100);
    seen.push(...texts(stream.messages()));
  }
  expect(seen).toEqual([
    [0, 'abc'],
    [3, 'de'],
    [5, 'fgh'],
    [8, 'ij'],
  ]);
  served.call = { open: undefined, abort: () => undefined, answer: { said: 'ab' } };
  await world.clock.advance(250);
  expect(texts(stream.messages())).toEqual([[0, 'ab']]);
});

test('a follower that went away costs nothing more', async () => {
  const { world, stream, tell } = await followed();
  stream.messages();
  stream.leave();
  await stream.done;
  await tell(EVENTS);
  expect(stream.messages()).toEqual([]);
  expect(world.clock.pending).toBe(1);
});

test('a pod that stops lets its followers go, without an end', async () => {
  const { world, gateway, stream } = await followed();
  gateway.drain();
  await world.clock.advance(250);
  await stream.done;
  expect(stream.messages().map(({ type }) => type)).not.toContain('end');
});

test('a follower that is silent for long gets a sign of life', async () => {
  const { world, gateway, token } = await followed();
  const other = world.follow(gateway, 'helper-1', token);
  await world.clock.advance(15_250);
  expect(other.raw()).toMatch(/\n\n:\n\n$/);
});

test('a follower that is too slow is let go, and holds no more than 4 MiB', async () => {
  const { world, served, tell } = await followed();
  const written: string[] = [];
  let go = (): void => undefined;
  const free = new Promise<void>((resolve) => (go = resolve));
  const sink = {
    start: () => undefined,
    write: (piece: string | Uint8Array) => free.then(() => void written.push(String(piece))),
  };
  const { clock } = world;
  const gone = new AbortController().signal;
  const usage = () => ({ steps: 0, inputTokens: 0, outputTokens: 0, totalTokens: 0 });
  const done = new FeedStream({ served, usage, clock, isDraining: () => false, sink, gone }).run(0);
  for (let seq = 3; seq < 13; seq++) await tell([userMessage(seq, 'x'.repeat(512 * 1024))]);
  go();
  await done;
  expect(written.join('').length).toBeLessThan(4.5 * 1024 * 1024);
  expect(written.join('')).not.toContain('"end"');
});

test('one pod has 256 followers; the next is told to try again', async () => {
  const { world, gateway, token } = await followed();
  for (let one = 1; one < 256; one++) world.follow(gateway, 'helper-1', token);
  await world.clock.advance(0);
  const refused = world.follow(gateway, 'helper-1', token);
  await refused.done;
  expect(refused.raw()).toContain('too many follow runs of this gateway pod');
});

test('a run that is not served here has nothing to follow', async () => {
  const { world, gateway, token } = await followed();
  const stream = world.follow(gateway, 'nobody-1', token);
  await stream.done;
  expect(stream.raw()).toContain('this pod does not serve the run');
});

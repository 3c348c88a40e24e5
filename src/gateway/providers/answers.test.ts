import { PassThrough, Readable } from 'node:stream';
import { turnsDuring } from '../../../test/builders/turns.js';
import { BODY_BASE_BYTES, BodyBudget } from '../../net/body-budget.js';
import { readModelAnswer } from './answers.js';
import { chatCompletions } from './chat-completions.js';

const MEBIBYTE = 1024 * 1024;

function read(body: Readable, contentType: string, all = new BodyBudget(16 * MEBIBYTE)) {
  return readModelAnswer(
    { status: 200, contentType, body },
    {
      provider: 'boxwright',
      dialect: chatCompletions,
      asEvents: false,
      secret: '',
      budget: { all, address: 'https://models.example.com' },
      follow: () => undefined,
    },
  );
}

/** An answer whose text comes in one event, in pieces of 64 KiB. */
function inOneEvent(length: number) {
  const choice = { index: 0, delta: { content: 'x'.repeat(length) }, finish_reason: 'stop' };
  const text = `data: ${JSON.stringify({ choices: [choice] })}\n\ndata: [DONE]\n\n`;
  const pieces = Array.from({ length: Math.ceil(text.length / 65_536) }, (_, n) =>
    Buffer.from(text.slice(n * 65_536, (n + 1) * 65_536)),
  );
  return read(Readable.from(pieces), 'text/event-stream');
}

test('an answer that comes in one long event is whole', async () => {
  const { pieces } = await inOneEvent(3 * MEBIBYTE);
  const { choices } = JSON.parse(pieces.join('')) as { choices: { message: { content: string } }[] };
  expect(choices[0]?.message.content).toHaveLength(3 * MEBIBYTE);
});

test('an answer of which an event is too long to be read is an error, and never a shorter answer', async () => {
  await expect(inOneEvent(5 * MEBIBYTE)).rejects.toMatchObject({
    again: false,
    error: { message: expect.stringContaining('is larger than 4194304 bytes') },
  });
});

test.each([
  ['{"ok":true}', 'JSON that is no answer of a model'],
  ['{"choices":[],"content":[]}', 'JSON that is no answer of a model'],
  ['[1,2]', 'JSON that is no answer of a model'],
  ['{"choices":[{', 'something that is not JSON'],
])('%s is asked for again', async (text, what) => {
  await expect(read(Readable.from([Buffer.from(text)]), 'application/json')).rejects.toMatchObject({
    again: true,
    error: { message: `boxwright answered ${what}.` },
  });
});

test('a whole answer above 4 MiB is an error', async () => {
  const text = JSON.stringify({ choices: [{ message: { content: 'x'.repeat(4 * MEBIBYTE) } }] });
  await expect(read(Readable.from([Buffer.from(text)]), 'application/json')).rejects.toMatchObject({
    again: false,
    error: { message: expect.stringContaining('is larger than 4194304 bytes') },
  });
});

test.each(['text/event-stream', 'application/json'])(
  'answers of type %s share a budget with all other bodies: the slowest goes, and is asked for again',
  async (contentType) => {
    const all = new BodyBudget(3 * BODY_BASE_BYTES);
    const slow = read(new PassThrough(), contentType, all);
    const others = [1, 2].map(() => all.open('https://models.example.com', () => undefined));
    expect(all.bytes).toBe(3 * BODY_BASE_BYTES);
    others[1]?.holds(1);
    await expect(slow).rejects.toMatchObject({ again: true, message: 'boxwright broke its answer off.' });
    for (const other of others) other.release();
    expect(all.bytes).toBe(0);
  },
);

test('between the pieces of a stream that is there at once others are served', async () => {
  const piece = Buffer.from('data: {"choices":[{"delta":{"content":"a"}}]}\n\n'.repeat(1400));
  const stream = () => read(Readable.from([...Array<Buffer>(40).fill(piece)]), 'text/event-stream');
  expect(await turnsDuring(() => stream().catch(() => undefined))).toBeGreaterThanOrEqual(15);
});

test('between the steps of reading a whole answer others are served, also when it is none', async () => {
  const turnsFor = (text: string) =>
    turnsDuring(() => read(Readable.from([Buffer.from(text)]), 'application/json').catch(() => undefined));
  for (const shape of ['{"choices":[{"x":"_"}]}', '{"choices":"_"', '_']) {
    const small = await turnsFor(shape.replace('_', 'a'));
    expect(await turnsFor(shape.replace('_', 'a'.repeat(3 * MEBIBYTE)))).toBeGreaterThan(small);
  }
});

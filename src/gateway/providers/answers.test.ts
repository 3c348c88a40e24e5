import { Readable } from 'node:stream';
import { readModelAnswer } from './answers.js';
import { chatCompletions } from './chat-completions.js';

const MEBIBYTE = 1024 * 1024;

/** An answer whose text comes in one event, in pieces of 64 KiB. */
function inOneEvent(length: number) {
  const choice = { index: 0, delta: { content: 'x'.repeat(length) }, finish_reason: 'stop' };
  const text = `data: ${JSON.stringify({ choices: [choice] })}\n\ndata: [DONE]\n\n`;
  const pieces = Array.from({ length: Math.ceil(text.length / 65_536) }, (_, n) =>
    Buffer.from(text.slice(n * 65_536, (n + 1) * 65_536)),
  );
  const response = { status: 200, contentType: 'text/event-stream', body: Readable.from(pieces) };
  const options = {
    provider: 'boxwright',
    dialect: chatCompletions,
    asEvents: false,
    secret: '',
    follow: () => undefined,
  };
  return readModelAnswer(response, options);
}

test('an answer that comes in one long event is whole', async () => {
  const { pieces } = await inOneEvent(15 * MEBIBYTE);
  const { choices } = JSON.parse(pieces.join('')) as { choices: { message: { content: string } }[] };
  expect(choices[0]?.message.content).toHaveLength(15 * MEBIBYTE);
});

test('an answer of which an event is too long to be read is an error, and never a shorter answer', async () => {
  await expect(inOneEvent(17 * MEBIBYTE)).rejects.toMatchObject({
    again: false,
    error: { message: expect.stringContaining('is larger than 16777216 bytes') },
  });
});

/** Pictures in results of tools on their way to a model: the real SDK of each vendor, and the real handler of the gateway. */
import { z } from 'zod';
import type { TranscriptMessage } from '../../src/protocol/run.js';
import { pictureOf } from '../../src/protocol/pictures.js';
import type { EngineTool } from '../../src/runner/engine.js';
import { pngOf } from '../builders/png.js';
import { ANTHROPIC, PROVIDER_APIS, runAgent, scene } from './support/vendor-scene.js';

const PNG = pngOf(4, 4, 6000);
const DATA = PNG.toString('base64');
const SEEING = ['anthropic', 'openai', 'google', 'xai'];

const look = (bytes = PNG): EngineTool => ({
  name: 'look',
  family: 'test',
  description: 'Shows a picture.',
  input: z.object({}),
  execute: () =>
    Promise.resolve({ isError: false, result: { path: 'a.png' }, text: 'a.png', pictures: [pictureOf(bytes)!] }),
});
const LOOK = { calls: [{ tool: 'look', input: {} }] };
const DONE = { text: 'A square.' };

test.each(PROVIDER_APIS)('$provider: a model that sees gets the picture, others a line', async (one) => {
  const at = await scene(one, [LOOK, DONE]);
  const stored: TranscriptMessage[] = [];
  const warnings: string[] = [];
  const outcome = await runAgent(at, { tools: [look()], stored, warnings });
  expect(outcome).toMatchObject({ reason: 'Completed', output: 'A square.' });
  expect(warnings).toEqual([]);
  const sent = JSON.stringify(at.vendor.requests[1]?.body);
  const seen = SEEING.includes(one.provider);
  expect(sent.split(DATA)).toHaveLength(seen ? 2 : 1);
  expect(sent.includes('not shown, because this model reads text alone: image/png, 6000 bytes')).toBe(!seen);
  // What is stored of it has no bytes of a picture.
  const marked = [
    { type: 'text', text: 'a.png' },
    { type: 'text', text: '[a picture that was shown here: image/png, 6000 bytes]' },
  ];
  const line = 'a.png\n[not shown, because this model reads text alone: image/png, 6000 bytes]';
  expect(stored).toContainEqual(
    expect.objectContaining({
      role: 'tool',
      tool: 'look',
      form: seen ? 'content' : 'text',
      result: JSON.stringify(seen ? marked : line),
    }),
  );
});

test('what Anthropic gets is a picture in the result of the tool', async () => {
  const at = await scene(ANTHROPIC, [LOOK, DONE]);
  await runAgent(at, { tools: [look()] });
  const { messages } = at.vendor.requests[1]!.body as unknown as { messages: { content: { content?: unknown }[] }[] };
  expect(messages.at(-1)?.content[0]?.content).toMatchObject([
    { type: 'text', text: 'a.png' },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: DATA } },
  ]);
});

test('a model that refuses pictures goes on without them, and is shown no more', async () => {
  const refusal = { fault: 'status' as const, status: 400, message: 'Could not process image' };
  const at = await scene(ANTHROPIC, [LOOK, refusal, LOOK, DONE]);
  const warnings: string[] = [];
  const outcome = await runAgent(at, { tools: [look()], warnings });
  expect(outcome).toMatchObject({ reason: 'Completed', output: 'A square.', steps: 3 });
  expect(warnings).toEqual(['The model refused a call with pictures: it is shown none any more.']);
  const sent = at.vendor.requests.map(({ body }) => JSON.stringify(body));
  expect(sent.map((text) => text.includes(DATA))).toEqual([false, true, false, false]);
  expect(sent[2]).toContain('[a picture that the model does not take: image/png, 6000 bytes]');
  expect(sent[3]).toContain('not shown, because this model reads text alone');
});

test('a refusal of a call without pictures stays one', async () => {
  const at = await scene(ANTHROPIC, [{ fault: 'status', status: 400, message: 'no' }]);
  expect(await runAgent(at, { tools: [look()] })).toMatchObject({ reason: 'ModelError', steps: 0 });
  expect(at.vendor.requests).toHaveLength(1);
});

test('only the newest pictures stay in the requests, and the cut is a block', async () => {
  const big = pngOf(4, 4, 600 * 1024);
  const data = big.toString('base64');
  const at = await scene(ANTHROPIC, [LOOK, LOOK, LOOK, LOOK, LOOK, LOOK, DONE], { stepLimit: 20 });
  await runAgent(at, { tools: [look(big)] });
  const counts = at.vendor.requests.map(({ body }) => JSON.stringify(body).split(data).length - 1);
  // Five have less than 4 MiB; with the sixth, 2 MiB go.
  expect(counts).toEqual([0, 1, 2, 3, 4, 5, 3]);
  expect(JSON.stringify(at.vendor.requests[6]?.body)).toContain(
    '[an old picture that was cut: image/png, 614400 bytes]',
  );
});

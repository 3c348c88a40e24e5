import type { ModelMessage } from 'ai';
import { pngOf } from '../../test/builders/png.js';
import { pictureOf } from '../protocol/pictures.js';
import { bytesOf, summaryRequest } from './compaction.js';
import { jsonWithoutPictures, PictureShow } from './pictures.js';

const CLAUDE = { provider: 'anthropic', model: 'claude-sonnet-5' };
const png = pictureOf(pngOf(4, 4, 60_000))!;
const result = { isError: false, result: { path: 'a.png' }, pictures: [png] };

function shown(show: PictureShow, id: number): ModelMessage {
  const output = show.outputOf(result);
  return { role: 'tool', content: [{ type: 'tool-result', toolCallId: `${id}`, toolName: 'look', output }] };
}

test.each([
  ['anthropic', 'any', true],
  ['openai', 'any', true],
  ['google', 'any', true],
  ['xai', 'grok-4.3', true],
  ['xai', 'grok-3-mini', false],
  ['xai', 'grok-4-code', false],
  ['mistral', 'mistral-large-latest', false],
  ['boxwright', 'my-model', false],
])('%s %s sees: %s', (provider, model, sees) => {
  expect(new PictureShow({ provider, model }).outputOf(result).type).toBe(sees ? 'content' : 'text');
});

test('a result without pictures, and an error, stay as they are', () => {
  const show = new PictureShow(CLAUDE);
  expect(show.outputOf({ isError: false, result: { a: 1 } })).toEqual({ type: 'json', value: { a: 1 } });
  expect(show.outputOf({ isError: true, result: { error: 'no' }, pictures: [png] })).toEqual({
    type: 'error-json',
    value: { error: 'no' },
  });
  expect(show.outputOf({ isError: false, result: {}, text: 'a' })).toEqual({ type: 'text', value: 'a' });
});

test('a run is shown 60 pictures', () => {
  const show = new PictureShow(CLAUDE);
  const types = Array.from({ length: 61 }, () => show.outputOf(result).type);
  expect(types.lastIndexOf('content')).toBe(59);
  expect(types[60]).toBe('text');
});

test('of more than 20 pictures the oldest ten become marks', () => {
  const show = new PictureShow(CLAUDE);
  const messages = Array.from({ length: 21 }, (_, id) => shown(show, id));
  expect(show.bounded(messages.slice(0, 20))).toEqual(messages.slice(0, 20));
  const cut = show.bounded(messages).map((message) => JSON.stringify(message).includes(png.data));
  expect(cut).toEqual([...Array<boolean>(10).fill(false), ...Array<boolean>(11).fill(true)]);
});

test('estimates and summaries are of words, not of the bytes of pictures', () => {
  const message = shown(new PictureShow(CLAUDE), 1);
  const bytes = bytesOf([message]);
  expect(bytes).toBeGreaterThan(6400);
  expect(bytes).toBeLessThan(7000);
  const plan = { first: 'Look.', earlier: undefined, middle: [message], tail: [] };
  expect(summaryRequest(plan, 100_000)).toContain('[a picture: image/png, 60000 bytes]');
  expect(jsonWithoutPictures({ a: [1, null, 'x'] })).toEqual({ json: '{"a":[1,null,"x"]}', pictureBytes: 0 });
});

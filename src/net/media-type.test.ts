import { mediaTypeOf } from './media-type.js';

test.each([
  ['application/json', 'application/json'],
  ['Application/JSON', 'application/json'],
  ['text/event-stream;charset=utf-8', 'text/event-stream'],
  [' Text/Event-Stream ; charset="utf-8"; a=b', 'text/event-stream'],
  ['application/json-seq', 'application/json-seq'],
  ['; charset=utf-8', ''],
  ['', ''],
  [undefined, ''],
])('of %p it is %p', (header, expected) => expect(mediaTypeOf(header)).toBe(expected));

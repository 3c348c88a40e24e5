import { EventStream } from './event-stream.js';

function eventsOf(pieces: readonly string[], maxLength = 1000) {
  const events = new EventStream(maxLength);
  const read = pieces.flatMap((piece) => events.read(Buffer.from(piece)));
  return { read, end: events.end() };
}

const message = (data: string) => ({ type: 'message', data });

test.each([
  ['one', ['data: a\n\n'], [message('a')]],
  ['in pieces', ['da', 'ta: a\n', '\nda', 'ta:b\n\n'], [message('a'), message('b')]],
  ['of several lines', ['data: a\ndata:  b\ndata\n\n'], [message('a\n b\n')]],
  ['with a type', ['event: ping\ndata: a\n\ndata: b\n\n'], [{ type: 'ping', data: 'a' }, message('b')]],
  ['with other fields and comments', [': hello\r\n\r\nid: 7\r\nretry: x\r\nwhat\r\ndata: a\r\n\r\n'], [message('a')]],
  ['without data', ['event: ping\n\n'], []],
])('an event %s', (_name, pieces, read) => {
  expect(eventsOf(pieces)).toEqual({ read, end: [] });
});

test('the end of the stream ends the last event', () => {
  expect(eventsOf(['data: a\n\ndata: b\ndata: c'])).toEqual({ read: [message('a')], end: [message('b\nc')] });
});

test('an event that grows too long is passed over whole', () => {
  const { read } = eventsOf(['data: 12345\n\ndata: 123\n', 'data: 456\n', 'data: 7\n\ndata: a\n\n'], 5);
  expect(read).toEqual([message('12345'), message('a')]);
});

test('lines without a meaning cost little', () => {
  // Eight MiB; an error for each would take half a minute.
  const { read } = eventsOf(Array.from({ length: 128 }, () => 'x\n'.repeat(32 * 1024)));
  expect(read).toEqual([]);
});

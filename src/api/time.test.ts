import { createdAtOf } from './time.js';

test.each([
  ['the noted milliseconds', '2026-05-01T10:00:00.123Z', '2026-05-01T10:00:00.123Z'],
  ['whole seconds without a note', undefined, '2026-05-01T10:00:00.000Z'],
  ['whole seconds when the note is of another creation', '2026-04-01T10:00:00.123Z', '2026-05-01T10:00:00.000Z'],
  ['whole seconds when the note is no time', 'x', '2026-05-01T10:00:00.000Z'],
])('createdAt is %s', (_name, note, expected) => {
  const annotations = note === undefined ? {} : { 'boxwright.dev/created-at': note };
  expect(createdAtOf({ name: 'a', creationTimestamp: '2026-05-01T10:00:00Z', annotations })).toBe(expected);
});

import { withRevision } from './self-tools.js';

const revision = (run: string, soul = 'text') => ({ at: '2026-01-01T00:00:00.000Z', run, soul });
const runs = (revisions: { run: string }[]) => revisions.map(({ run }) => run);

test('the newest five are kept, the newest first', () => {
  const before = ['e', 'd', 'c', 'b', 'a'].map((run) => revision(run));
  expect(runs(withRevision(before, revision('f')))).toEqual(['f', 'e', 'd', 'c', 'b']);
});

test('together they have at most 64 KiB, but the newest is always there', () => {
  const large = 'x'.repeat(30_000);
  expect(runs(withRevision([revision('b', large), revision('a', large)], revision('c', large)))).toEqual(['c', 'b']);
  expect(runs(withRevision([revision('a')], revision('b', 'é'.repeat(60_000))))).toEqual(['b']);
});

test('a second try of the same change keeps the text once', () => {
  expect(runs(withRevision([revision('a')], revision('a')))).toEqual(['a']);
  expect(runs(withRevision([revision('a')], revision('a', 'other')))).toEqual(['a', 'a']);
});

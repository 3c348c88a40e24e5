import { feedPath } from '../../protocol/feed.js';
import { runPath } from '../../protocol/run.js';
import { routeOf } from './routes.js';

test.each(['claim', 'events', 'tool', 'finish'] as const)('the path of %s', (call) => {
  expect(routeOf(runPath('bw-lab', 'helper-1', call))).toEqual({
    kind: 'run',
    call,
    namespace: 'bw-lab',
    run: 'helper-1',
    pattern: `/internal/v1/runs/:namespace/:run/${call}`,
  });
});

test.each([
  ['', 0],
  ['?after=17', 17],
  ['?after=-1', 0],
  ['?after=1e3&x=2', 0],
])('the path of the feed with %j asks for what came after %d', (query, after) => {
  const pattern = '/internal/v1/runs/:namespace/:run/feed';
  const expected = { kind: 'feed', namespace: 'bw-lab', run: 'helper-1', after, pattern };
  expect(routeOf(`${feedPath('bw-lab', 'helper-1')}${query}`)).toEqual(expected);
});

test.each([
  ['/gateway/boxwright/v1/chat/completions', 'boxwright', 'v1/chat/completions'],
  ['/gateway/boxwright/v1/chat/completions?x=1', 'boxwright', 'v1/chat/completions'],
  ['/gateway/google/v1beta/models/m:generateContent', 'google', 'v1beta/models/m:generateContent'],
])('%s is a call of provider %s', (target, provider, path) => {
  expect(routeOf(target)).toEqual({ kind: 'model', provider, path, pattern: '/gateway/:provider' });
});

test.each([
  '/',
  '/internal/v1/runs/bw-lab/helper-1/delete',
  '/internal/v1/runs/bw-lab/helper-1/claim/x',
  '/internal/v1/runs/bw-lab/../claim',
  '/internal/v1/runs/BW/helper-1/claim',
  '/gateway//v1',
])('%s is no call', (path) => {
  expect(routeOf(path)).toEqual({ kind: 'none', pattern: 'unknown' });
});

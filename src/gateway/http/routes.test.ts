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
  ['/gateway/boxwright/v1/chat/completions', 'boxwright', true],
  ['/gateway/boxwright/v1/chat/completions?x=1', 'boxwright', true],
  ['/gateway/boxwright/v1/models', 'boxwright', false],
  ['/gateway/google/v1beta/models/m:generateContent', 'google', false],
])('%s is a call of provider %s', (path, provider, isChat) => {
  expect(routeOf(path)).toEqual({ kind: 'model', provider, isChat, pattern: '/gateway/:provider' });
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

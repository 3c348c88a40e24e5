import { isTriggerPath, parseTriggerPath, splitUrl } from './trigger-path.js';

describe('parseTriggerPath', () => {
  it('reads agent, slug and token', () => {
    expect(parseTriggerPath('/api/t/team.cleo/deploy/tok_-en')).toEqual({
      agent: { box: 'team', agent: 'cleo' },
      agentId: 'team.cleo',
      slug: 'deploy',
      token: 'tok_-en',
    });
  });

  it('reads escapes', () => {
    expect(parseTriggerPath('/api/t/team%2Ecleo/de%70loy/t%6fken')).toMatchObject({ slug: 'deploy', token: 'token' });
  });

  it.each([
    '/api/t',
    '/api/t/',
    '/api/t/team.cleo',
    '/api/t/team.cleo/deploy',
    '/api/t/team.cleo/deploy/',
    '/api/t/team.cleo/deploy/token/',
    '/api/t/team.cleo/deploy/token/more',
    '/api/t//team.cleo/deploy/token',
    '/api/t/team.cleo//token',
    '/api/t/cleo/deploy/token',
    '/api/t/a.b.c/deploy/token',
    '/api/t/team.cleo/De ploy/token',
    '/api/t/team.cleo/Deploy/token',
    '/api/t/team.cleo/%ZZ/token',
    '/api/t/team.cleo/deploy/%ZZ',
    '/api/t/team.cleo/deploy%00/token',
    '/api/t/%00/deploy/token',
    '/api/t/../deploy/token',
    `/api/t/team.cleo/${'a'.repeat(37)}/token`,
  ])('%s names no trigger', (path) => expect(parseTriggerPath(path)).toBeUndefined());
});

it.each([
  ['/api/t', true],
  ['/api/t/', true],
  ['/api/t/%ZZ', true],
  ['/api/team', false],
  ['/api/mcp/account', false],
  ['/API/T/a/b/c', false],
  ['/', false],
])('%s belongs to the trigger URL: %s', (path, expected) => expect(isTriggerPath(path)).toBe(expected));

it.each([
  ['/a', { path: '/a', query: '' }],
  ['/a?', { path: '/a', query: '' }],
  ['/a?b=1?c', { path: '/a', query: 'b=1?c' }],
])('%s splits in path and query', (url, expected) => expect(splitUrl(url)).toEqual(expected));

import { BoxSpec } from '../../api/v1alpha1/box.js';
import { searchOf, type InstallationSearch } from './targets.js';

const SECRET = { namespace: 'boxwright', name: 'models' };
const NONE: InstallationSearch = { engine: undefined, baseUrl: undefined, secret: SECRET };
const BRAVE: InstallationSearch = { engine: 'brave', baseUrl: undefined, secret: SECRET };

function seen(spec: object, installation: InstallationSearch) {
  const { webSearch, credentialsSecret, egress } = BoxSpec.parse({ workspace: 'w', ...spec });
  const target = searchOf({ name: 'lab', webSearch, credentialsSecret, egress: egress.mode }, installation);
  if (target === undefined) return 'none';
  const { source } = target;
  const key = source === undefined ? 'no key' : `${source.key} of ${source.ref.namespace}/${source.ref.name}`;
  return `${target.name} at ${target.baseUrl}: ${key}${source?.labelled === true ? ', labelled' : ''}, ${target.searches}`;
}

const INTERNET = { egress: { mode: 'internet' } };
const OWN = 'https://api.search.brave.com/res/v1';

test.each([
  ['nothing is set', {}, NONE, 'none'],
  ['the installation has one', INTERNET, BRAVE, `brave at ${OWN}: BRAVE_API_KEY of boxwright/models, 50`],
  [
    'the Box has keys for models',
    { ...INTERNET, credentialsSecret: 's' },
    BRAVE,
    `brave at ${OWN}: BRAVE_API_KEY of boxwright/models, 50`,
  ],
  ['the Box has no network', {}, BRAVE, 'none'],
  ['the Box wants none', { ...INTERNET, webSearch: { engine: 'none' } }, BRAVE, 'none'],
  [
    'the Box names one, without a network',
    { webSearch: { engine: 'brave', searchesPerRun: 3 } },
    NONE,
    `brave at ${OWN}: BRAVE_API_KEY of boxwright/models, 3`,
  ],
  [
    'the Box has its key',
    { credentialsSecret: 's', webSearch: { engine: 'tavily' } },
    BRAVE,
    'tavily at https://api.tavily.com: TAVILY_API_KEY of bw-lab/s, labelled, 50',
  ],
  ['the Box names an address', { webSearch: { engine: 'brave', baseUrl: 'https://proxy.example.com' } }, BRAVE, 'none'],
  [
    'the Box names an address and has the key',
    { credentialsSecret: 's', webSearch: { engine: 'brave', baseUrl: 'https://p.example.com/v1/' } },
    BRAVE,
    'brave at https://p.example.com/v1: BRAVE_API_KEY of bw-lab/s, labelled, 50',
  ],
  ['nobody has a key', INTERNET, { ...BRAVE, secret: undefined }, 'none'],
  [
    'a server of its own',
    { webSearch: { engine: 'searxng', baseUrl: 'http://searxng.search.svc:8080' } },
    NONE,
    'searxng at http://searxng.search.svc:8080: no key, 50',
  ],
  ['a server without address', INTERNET, { ...BRAVE, engine: 'searxng' }, 'none'],
] as const)('%s', (_case, spec, installation, expected) => {
  expect(seen(spec, installation)).toBe(expected);
});

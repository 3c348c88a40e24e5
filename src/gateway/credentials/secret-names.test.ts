import { FakeClock } from '../../../test/builders/fake-clock.js';
import { RecordingApi, apiError } from '../../../test/builders/recording-api.js';
import { API_VERSION } from '../../api/define-resource.js';
import { AgentSpec, Agents } from '../../api/v1alpha1/agent.js';
import type { Agent } from '../../api/v1alpha1/agent.js';
import { Secrets } from '../../kube/core-types.js';
import { createLogger } from '../../observability/logger.js';
import { RECHECK_MS, createSecretNames, namesIn } from './secret-names.js';
import { agentCredentialsInformer } from '../../projections/agent.js';

const LABELS = { 'boxwright.dev/credential': 'true' };
const HOSTS = { 'boxwright.dev/hosts': 'api.example.com, mcp.example.com' };
const KEY = 'bw-team/cleo';

function secret(data: Record<string, string>, metadata: object = { labels: LABELS, annotations: HOSTS }) {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'bw-team', name: 'cleo-secrets', ...metadata },
    data: Object.fromEntries(
      Object.entries(data).map(([name, value]) => [name, Buffer.from(value).toString('base64')]),
    ),
  };
}

function setup(spec: object = { connectors: ['github'] }) {
  const clock = new FakeClock();
  const api = new RecordingApi({ clock });
  const logged: string[] = [];
  const log = createLogger('gateway', 'debug', { write: (line) => logged.push(line) });
  const names = createSecretNames({ api, clock, log, agents: api.informer(agentCredentialsInformer) });
  const agent = (more: Partial<Agent> = {}) =>
    api.seed(Agents, {
      apiVersion: API_VERSION,
      kind: 'Agent',
      metadata: { namespace: 'bw-team', name: 'cleo' },
      spec: AgentSpec.parse({ name: 'Cleo', ...spec }),
      ...more,
    });
  const status = () => api.peek(Agents, KEY)?.status;
  return { api, clock, names, agent, status, logged };
}

test('tells the names and hosts of a labelled Secret, never a value', async () => {
  const { api, clock, names, agent, status, logged } = setup();
  const { metadata } = agent({ status: { active: true } });
  api.seed(Secrets, secret({ GITHUB_TOKEN: 'ghp-value', 'not.a.name': 'x', ABC: 'y' }));
  await names.start(new AbortController().signal);
  await clock.advance(0);
  expect(status()).toEqual({
    active: true,
    presentSecrets: ['ABC', 'GITHUB_TOKEN'],
    secretHosts: ['api.example.com', 'mcp.example.com'],
  });
  expect(api.writes).toEqual([
    {
      verb: 'patch',
      resource: 'agents/status',
      key: KEY,
      body: {
        metadata: { uid: metadata.uid, resourceVersion: metadata.resourceVersion },
        status: { presentSecrets: ['ABC', 'GITHUB_TOKEN'], secretHosts: ['api.example.com', 'mcp.example.com'] },
      },
    },
  ]);
  expect(JSON.stringify([api.writes, logged])).not.toContain('ghp-value');
  await names.stop?.();
});

test('what is right already is not written, whoever wrote it; the Secret is looked at again every 30 seconds', async () => {
  const { api, clock, names, agent, status } = setup();
  agent();
  await names.start(new AbortController().signal);
  await clock.advance(RECHECK_MS * 2);
  expect(api.writes).toEqual([]);
  api.seed(Secrets, secret({ GITHUB_TOKEN: 'v' }));
  await clock.advance(RECHECK_MS);
  expect(status()?.presentSecrets).toEqual(['GITHUB_TOKEN']);
  api.vanish(Secrets, 'bw-team/cleo-secrets');
  await clock.advance(RECHECK_MS);
  expect(status()?.presentSecrets).toEqual([]);
  expect(api.writes).toHaveLength(2);
  await names.stop?.();
});

test('an agent that gets its first connector is looked at at once', async () => {
  const { api, clock, names, agent, status } = setup({});
  agent();
  api.seed(Secrets, secret({ GITHUB_TOKEN: 'v' }));
  await names.start(new AbortController().signal);
  await clock.advance(1);
  expect(api.reads).toEqual([]);
  agent({ spec: AgentSpec.parse({ name: 'Cleo', connectors: ['github'] }) });
  await clock.advance(1);
  expect(status()?.presentSecrets).toEqual(['GITHUB_TOKEN']);
  await names.stop?.();
});

test('an agent that lost its last reference is told to have none, without reading its Secret', async () => {
  const { api, clock, names, agent, status } = setup({});
  agent({ status: { presentSecrets: ['A'], secretHosts: ['x.example.com'] } });
  await names.start(new AbortController().signal);
  await clock.advance(1);
  expect(status()).toEqual({ presentSecrets: [], secretHosts: [] });
  expect(api.reads).toEqual([]);
  await names.stop?.();
});

test.each([
  ['without the label', { annotations: HOSTS }],
  ['with another value of the label', { labels: { 'boxwright.dev/credential': 'yes' }, annotations: HOSTS }],
  ['without hosts', { labels: LABELS }],
  ['with empty hosts', { labels: LABELS, annotations: { 'boxwright.dev/hosts': ' , ' } }],
])('a Secret %s is not for agents', (_name, metadata) => {
  expect(namesIn(secret({ A: 'v' }, metadata))).toEqual({ presentSecrets: [], secretHosts: [] });
});

test('a failure is logged without values and tried again; a conflict is nobody’s fault', async () => {
  const { api, clock, names, agent, status, logged } = setup();
  agent();
  api.seed(Secrets, secret({ GITHUB_TOKEN: 'v' }));
  api.failNext({ verb: 'get', error: apiError(403, 'Forbidden') });
  api.failNext({ verb: 'patch', error: apiError(409, 'Conflict') });
  await names.start(new AbortController().signal);
  await clock.advance(RECHECK_MS * 2);
  expect(status()?.presentSecrets).toEqual(['GITHUB_TOKEN']);
  expect(logged).toHaveLength(1);
  expect(logged[0]).toContain('credentials of an agent could not be looked at');
  await names.stop?.();
});

test('a Secret for stdio servers alone tells its names too', () => {
  const annotations = { 'boxwright.dev/expose-to-tools': 'true' };
  expect(namesIn(secret({ WORD: 'x' }, { labels: LABELS, annotations }))).toEqual({
    presentSecrets: ['WORD'],
    secretHosts: [],
  });
  expect(namesIn(secret({ WORD: 'x' }, { annotations }))).toEqual({ presentSecrets: [], secretHosts: [] });
});

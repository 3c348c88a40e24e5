import * as fc from '../../../test/builders/properties.js';
import { uncountedInstall } from '../../api/install-count.js';
import { AgentTemplates, MAX_COUNTING } from '../../api/v1alpha1/agent-template.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import type { KubeApi } from '../../kube/types.js';
import { RecordingApi, apiError } from '../../../test/builders/recording-api.js';
import { CountingFullError, countInstall } from './install-count.js';
import type { ControllerAgent } from '../../projections/agent.js';

const TEMPLATE = { namespace: 'bw-ws-acme', name: 'team' };
const KEY = `${TEMPLATE.namespace}/${TEMPLATE.name}`;
const apiVersion = 'boxwright.dev/v1alpha1';
const signal = new AbortController().signal;

function setup(status?: object) {
  const api = new RecordingApi();
  const template = api.seed(AgentTemplates, {
    apiVersion,
    kind: 'AgentTemplate',
    metadata: TEMPLATE,
    spec: { name: 'Team' },
    ...(status === undefined ? {} : { status }),
  } as never);
  const uid = template.metadata.uid ?? '';
  /** The first agent of an install that is committed; what a controller has of it in its cache. */
  const commit = (name: string, templateUid = uid): ControllerAgent => {
    const at = { apiVersion, kind: 'Agent', spec: { name } };
    const made = api.seed(Agents, { ...at, metadata: { namespace: 'bw-lab', name } } as never);
    const mark = uncountedInstall({ ...TEMPLATE, uid: templateUid }, made.metadata.uid ?? '');
    const annotations = { 'boxwright.dev/uncounted-install': mark };
    return api.seed(Agents, { ...made, metadata: { ...made.metadata, annotations } });
  };
  const stored = () => api.peek(AgentTemplates, KEY)?.status;
  const marks = () =>
    api.all(Agents).filter(({ metadata }) => Object.keys(metadata.annotations ?? {}).length > 0).length;
  const count = (agent: ControllerAgent) => countInstall(api, { ...agent, metadata: { ...agent.metadata } }, signal);
  api.clearRecords();
  return { api, commit, stored, marks, count };
}

test('one write on the template, and one that takes the mark away', async () => {
  const { api, commit, stored, marks } = setup();
  const lead = commit('lead');
  const draft = { ...lead };
  api.clearRecords();
  await countInstall(api, draft, signal);
  expect(api.writes.map(({ verb, resource, key }) => `${verb} ${resource} ${key}`)).toEqual([
    `patch agenttemplates/status ${KEY}`,
    'patch agents bw-lab/lead',
  ]);
  expect(stored()).toEqual({ installs: 1, counting: [{ agent: 'bw-lab/lead', uid: lead.metadata.uid }] });
  expect(marks()).toBe(0);
  expect(draft.metadata.resourceVersion).toBe(api.peek(Agents, 'bw-lab/lead')?.metadata.resourceVersion);
});

test('an agent without a mark costs nothing', async () => {
  const { api, count } = setup();
  await count({ metadata: { namespace: 'bw-lab', name: 'lead', uid: 'u' }, spec: { name: 'a' } } as ControllerAgent);
  expect([...api.reads, ...api.writes]).toEqual([]);
});

test('an older number goes on, and what was counted before is forgotten when its mark is gone', async () => {
  const { commit, stored, count } = setup({ installs: 41 });
  await count(commit('one'));
  const two = commit('two');
  await count(two);
  expect(stored()).toEqual({ installs: 43, counting: [{ agent: 'bw-lab/two', uid: two.metadata.uid }] });
});

test('what was counted and still has its mark is not forgotten', async () => {
  const { api, commit, stored, count } = setup();
  const one = commit('one');
  api.failNext({ verb: 'patch', resource: 'agents', error: apiError(500, 'InternalError') });
  await expect(count(one)).rejects.toThrow('injected');
  const two = commit('two');
  await count(two);
  expect(stored()?.installs).toBe(2);
  expect(stored()?.counting?.map(({ agent }) => agent)).toEqual(['bw-lab/one', 'bw-lab/two']);
  await count(one);
  expect(stored()?.installs).toBe(2);
});

test.each([
  ['is gone', (api: RecordingApi) => api.vanish(AgentTemplates, KEY)],
  [
    'has a successor of the same name',
    (api: RecordingApi) => {
      api.vanish(AgentTemplates, KEY);
      api.seed(AgentTemplates, { apiVersion, kind: 'AgentTemplate', metadata: TEMPLATE, spec: { name: 'x' } } as never);
    },
  ],
])('for a template that %s nothing is counted, and the mark goes', async (_what, change) => {
  const { api, commit, stored, marks, count } = setup();
  const lead = commit('lead');
  change(api);
  await count(lead);
  expect([stored()?.installs, marks()]).toEqual([undefined, 0]);
});

test('a controller with an old cache counts nothing twice', async () => {
  const { api, commit, stored, count } = setup();
  const lead = commit('lead');
  await count(lead);
  await count(commit('other'));
  // The name of the first agent is not in `counting` any more, and this controller has not seen that its mark is gone.
  await expect(count(lead)).rejects.toMatchObject({ status: 409 });
  api.vanish(Agents, 'bw-lab/lead');
  await expect(count(lead)).rejects.toMatchObject({ status: 404 });
  expect(stored()?.installs).toBe(2);
});

test('more at once than the template can name wait', async () => {
  const { api, commit, stored, count } = setup();
  const agents = Array.from({ length: MAX_COUNTING + 1 }, (_, n) => commit(`a${n}`));
  api.failNext({ verb: 'patch', resource: 'agents', error: apiError(500, 'InternalError'), times: MAX_COUNTING });
  for (const agent of agents.slice(0, -1)) await expect(count(agent)).rejects.toThrow('injected');
  await expect(count(agents.at(-1) as ControllerAgent)).rejects.toThrow(CountingFullError);
  for (const agent of agents) await count(agent);
  expect(stored()?.installs).toBe(MAX_COUNTING + 1);
});

test('many installs, two controllers that die at any write: every install is counted once', async () => {
  const death = fc.constantFrom('none', 'before', 'after');
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 6 }), fc.array(death, { maxLength: 40 }), async (installs, ways) => {
      const { api, commit, stored, marks } = setup();
      const old = Array.from({ length: installs }, (_, n) => commit(`a${n}`));
      const deaths = [...ways];
      const mortal = Object.assign(Object.create(api) as KubeApi, {
        get: api.get.bind(api),
        patch: async (...args: Parameters<KubeApi['patch']>) => {
          const way = deaths.shift();
          if (way === 'before') throw new Error('died');
          const written = await api.patch(...args);
          if (way === 'after') throw new Error('died');
          return written;
        },
      });
      const work = async (agents: readonly ControllerAgent[]) => {
        for (const agent of agents) await countInstall(mortal, { ...agent }, signal).catch(() => undefined);
      };
      // Enough rounds for every death; one controller sees what is stored, the other one what was there in the beginning.
      for (let round = 0; round <= ways.length && marks() > 0; round++) {
        await Promise.all([work(api.all(Agents) as ControllerAgent[]), work(old)]);
      }
      await work(old);
      expect([stored()?.installs, marks()]).toEqual([installs, 0]);
    }),
    { numRuns: 60 },
  );
});

/** Evals on a real API server: what is refused, two controllers that both believe to lead, what kubectl and JUnit show. */
import { DOMParser } from 'linkedom';
import { API_VERSION } from '../../src/api/define-resource.js';
import { AgentEvals } from '../../src/api/v1alpha1/agent-eval.js';
import type { AgentEval } from '../../src/api/v1alpha1/agent-eval.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { createAgentEvalController } from '../../src/controllers/agent-eval/controller.js';
import { createInformer } from '../../src/kube/informer.js';
import { createLogger } from '../../src/observability/logger.js';
import { controllerEvalInformer } from '../../src/projections/agent-eval.js';
import { controllerSkillInformer } from '../../src/projections/agent-skill.js';
import { controllerRunInformer } from '../../src/projections/agent-run.js';
import { controllerAgentInformer } from '../../src/projections/agent.js';
import { systemClock } from '../../src/runtime/clock.js';
import { Controller } from '../../src/runtime/controller.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { findTools } from '../builders/kubectl.js';
import type { Tools } from '../builders/kubectl.js';

let server: TestApiServer;
let namespace: string;
let tools: Tools;

beforeAll(async () => {
  server = await startApiServer();
  await server.applyCrds();
  namespace = await server.createNamespace('bw-evals');
  tools = await findTools();
  await server.api.create(Agents, {
    apiVersion: API_VERSION,
    kind: 'Agent',
    metadata: { name: 'ada', namespace },
    spec: AgentSpec.parse({ name: 'Ada' }),
  });
});

afterAll(async () => {
  await server.stop();
});

/** A controller process of its own: caches and work queue. */
async function startController() {
  const log = createLogger('test', 'silent', { write: () => undefined });
  const common = { clock: systemClock, log };
  const evals = createInformer(server.transport, { ...controllerEvalInformer, namespace }, common);
  const agents = createInformer(server.transport, { ...controllerAgentInformer, namespace }, common);
  const skills = createInformer(server.transport, { ...controllerSkillInformer, namespace }, common);
  const runs = createInformer(server.transport, { ...controllerRunInformer, namespace }, common);
  const part = createAgentEvalController({
    api: server.api,
    ...common,
    caches: { evals, agents, skills, runs },
    backlogExceeded: () => undefined,
    reserve: () => ({ settle: () => undefined }),
  });
  const controller = new Controller({ ...part, ...common, backoff: { baseMs: 20, maxMs: 200, jitter: 0.2 } });
  part.watch((key) => controller.enqueue(key));
  for (const informer of [evals, agents, skills, runs]) informer.start();
  await Promise.all([evals.synced, agents.synced, skills.synced, runs.synced]);
  controller.start();
  return async () => {
    await controller.stop();
    await Promise.all([evals, agents, skills, runs].map((informer) => informer.stop()));
  };
}

const create = (name: string, spec: object): Promise<AgentEval> =>
  server.api.create(AgentEvals, {
    apiVersion: API_VERSION,
    kind: 'AgentEval',
    metadata: { name, namespace },
    spec,
  } as AgentEval);
const read = (name: string): Promise<AgentEval> => server.api.get(AgentEvals, { namespace, name });
const kubectl = async (...args: string[]): Promise<string> => {
  const { ok, stdout, stderr } = await tools.kubectl(server.kubeconfig, ['-n', namespace, ...args]);
  if (!ok) throw new Error(stderr);
  return stdout;
};

async function runsOf({ metadata }: AgentEval) {
  const { items } = await server.api.list(AgentRuns, {
    namespace,
    labelSelector: `boxwright.dev/eval=${metadata.name}`,
  });
  return items;
}

/** As the gateway ends a run. */
async function end(name: string, output: string): Promise<void> {
  const usage = { steps: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15, costUsd: '0.001000' };
  const finishedAt = new Date(systemClock.now()).toISOString();
  const status = { phase: 'done', reason: 'Completed', output, usage, usageFinal: true, finishedAt };
  await server.api.patch(AgentRuns, { namespace, name }, { status }, { type: 'merge', subresource: 'status' });
}

const hello = { name: 'hello', message: 'Say hello.', assertions: [{ contains: 'Hello' }] };
const json = { name: 'json', message: 'Say 1.', assertions: [{ jsonSchema: { type: 'integer' } }, { stepsBelow: 2 }] };

test('two controllers start each case once, and kubectl and JUnit show what came of it', async () => {
  const stops = [await startController(), await startController()];
  const made = await create('table', {
    agent: 'ada',
    cases: [hello, json],
    models: [{ name: 'one' }, { name: 'two' }],
  });
  const isStarted = async () =>
    (await read('table')).status?.results?.every(({ phase }) => phase === 'running') === true;
  await eventually(isStarted, 'its runs were not started');
  const runs = await runsOf(made);
  expect(runs).toHaveLength(4);
  expect(new Set(runs.map(({ spec }) => spec.model?.name))).toEqual(new Set(['one', 'two']));
  expect(runs.map(({ metadata }) => metadata.ownerReferences?.[0]?.uid)).toEqual(runs.map(() => made.metadata.uid));
  for (const { metadata, spec } of runs)
    await end(metadata.name, spec.model?.name === 'one' ? '1' : 'Hello <you> & "me"');
  await eventually(async () => (await read('table')).status?.phase === 'failed', 'it did not end');
  expect((await read('table')).status?.results?.map(({ phase }) => phase)).toEqual([
    'failed',
    'passed',
    'passed',
    'failed',
  ]);

  const [head = '', row = ''] = (await kubectl('get', 'agentevals', 'table')).split('\n');
  expect(head.split(/\s+/)).toEqual(['NAME', 'AGENT', 'STATUS', 'PASSED', 'FAILED', 'TOTAL', 'COST', 'AGE']);
  expect(row.split(/\s+/).slice(0, 7)).toEqual(['table', 'ada', 'failed', '2', '2', '4', '0.004000']);

  for (const args of [['agenteval', 'table'], ['agentevals']]) {
    const xml = await kubectl('get', ...args, '-o', 'go-template-file=examples/junit.gotmpl');
    expect(xml.startsWith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>')).toBe(true);
    const report = new DOMParser().parseFromString(xml, 'text/xml');
    const suite = report.querySelector('testsuite');
    expect(suite?.getAttribute('name')).toBe(`${namespace}/table`);
    expect([suite?.getAttribute('tests'), suite?.getAttribute('failures')]).toEqual(['4', '2']);
    const cases = [...report.querySelectorAll('testcase')];
    expect(cases.map((one) => one.getAttribute('name'))).toEqual([
      'hello (one)',
      'hello (two)',
      'json (one)',
      'json (two)',
    ]);
    const failures = [...report.querySelectorAll('failure')];
    expect(failures.map((one) => one.textContent)).toEqual(['1', 'it is not JSON alone: Hello <you> & "me"']);
    expect(failures[0]?.getAttribute('message')).toBe('contains: Hello');
  }

  // Another round: the same cases under other names.
  await server.api.patch(AgentEvals, { namespace, name: 'table' }, { spec: { round: 2 } }, { type: 'merge' });
  await eventually(
    async () => (await runsOf(made)).length === 8 && (await isStarted()),
    'the second round did not begin',
  );
  expect((await read('table')).status).toMatchObject({ generation: 2, passed: 0, failed: 0, phase: 'running' });
  await Promise.all(stops.map((stop) => stop()));
  expect(await runsOf(made)).toHaveLength(8);
  await server.api.delete(AgentEvals, { namespace, name: 'table' });
});

test('JUnit says of an eval that was not begun, and of one that cannot be run, that it is an error', async () => {
  await create('idle', { agent: 'ada', cases: [hello] });
  const report = () => kubectl('get', 'agenteval', 'idle', '-o', 'go-template-file=examples/junit.gotmpl');
  expect(await report()).toContain('<error message="it has not begun"/>');
  const wrong = { ...hello, assertions: [{ matches: '(?=a)' }] };
  await server.api.patch(AgentEvals, { namespace, name: 'idle' }, { spec: { cases: [wrong] } }, { type: 'merge' });
  const stop = await startController();
  await eventually(
    async () => (await report()).includes('<error message="InvalidEval">case hello: matches:'),
    'no error',
  );
  await kubectl('wait', '--for=condition=Finished', '--timeout=10s', 'agenteval/idle');
  await stop();
  await server.api.delete(AgentEvals, { namespace, name: 'idle' });
});

test.each([
  ['two cases of one name', { cases: [hello, hello] }, 'two cases of the same name'],
  ['a case without an expectation', { cases: [{ name: 'a', message: 'x' }] }, 'needs an assertion or a judge'],
  [
    'an assertion of two kinds',
    { cases: [{ ...hello, assertions: [{ contains: 'a', equals: 'b' }] }] },
    'exactly one of',
  ],
  [
    'a file outside of the workspace',
    { cases: [{ ...hello, files: [{ path: '/etc/passwd', content: 'x' }] }] },
    'spec.cases[0].files[0].path',
  ],
  ['an assertion of no kind', { cases: [{ ...hello, assertions: [{}] }] }, 'exactly one of'],
  [
    'models beside a recording',
    { cases: [{ ...hello, recording: { configMap: 'sum' } }], models: [{ name: 'a' }] },
    'has the answers of one model',
  ],
  ['a model twice', { cases: [hello], models: [{ name: 'a' }, { name: 'a' }] }, 'the same model twice'],
  [
    'more than 100 runs',
    {
      cases: Array.from({ length: 26 }, (_, at) => ({ ...hello, name: `c${at}` })),
      models: ['a', 'b', 'c', 'd'].map((name) => ({ name })),
    },
    'at most 100',
  ],
])('an eval with %s is refused', async (_what, spec, message) => {
  await expect(create('wrong', { agent: 'ada', ...spec })).rejects.toThrow(message);
});

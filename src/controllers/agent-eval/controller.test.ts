import { API_VERSION } from '../../api/define-resource.js';
import { findCondition } from '../../api/conditions.js';
import { AgentEvals, AgentEvalSpec } from '../../api/v1alpha1/agent-eval.js';
import type { AgentEval } from '../../api/v1alpha1/agent-eval.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { controllerEvalInformer } from '../../projections/agent-eval.js';
import { controllerRunInformer } from '../../projections/agent-run.js';
import { controllerSkillInformer } from '../../projections/agent-skill.js';
import { controllerAgentInformer } from '../../projections/agent.js';
import type { RunEvent } from '../../protocol/run.js';
import type { BacklogScope } from '../../run/start/backlog-budget.js';
import { writeChunk } from '../../transcript/chunk-store.js';
import { splitEvents } from '../../transcript/codec.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { recordingLog } from '../../../test/builders/log.js';
import { RecordingApi } from '../../../test/builders/recording-api.js';
import { NAMESPACE, makeAgent } from '../../../test/builders/run-objects.js';
import { createAgentEvalController } from './controller.js';
import { cellsOf, evalRunName } from './plan.js';

const KEY = `${NAMESPACE}/greetings`;
const NOW = Date.parse('2026-05-01T12:00:00Z');
const signal = new AbortController().signal;

const hello = { name: 'hello', message: 'Say hello.', assertions: [{ contains: 'Hello' }] };
const bye = { name: 'bye', message: 'Say bye.', assertions: [{ contains: 'Bye' }] };

/** One eval of the agent ada, and a controller on a store of its own. */
function setUp(spec: Record<string, unknown> = {}) {
  const clock = new FakeClock(NOW);
  const api = new RecordingApi({ clock });
  api.seed(Agents, makeAgent());
  api.seed(Agents, makeAgent({}, 'judge'));
  api.seed(AgentEvals, {
    apiVersion: API_VERSION,
    kind: 'AgentEval',
    metadata: {
      name: 'greetings',
      namespace: NAMESPACE,
      uid: 'uid-eval',
      generation: 1,
      creationTimestamp: '2026-05-01T11:00:00Z',
    },
    spec: AgentEvalSpec.parse({ agent: 'ada', cases: [hello], ...spec }),
  });
  const backlog: { full?: BacklogScope } = {};
  const part = createAgentEvalController({
    api,
    clock,
    log: recordingLog().log,
    caches: {
      evals: api.informer(controllerEvalInformer),
      agents: api.informer(controllerAgentInformer),
      skills: api.informer(controllerSkillInformer),
      runs: api.informer(controllerRunInformer),
    },
    backlogExceeded: () => backlog.full,
    reserve: () => ({ settle: () => undefined }),
  });
  const reconcile = () => part.reconcile(KEY, signal);
  const status = () => api.peek(AgentEvals, KEY)?.status ?? {};
  const end = async (name: string, ended: Partial<NonNullable<AgentRun['status']>>) => {
    const usage = { steps: 2, inputTokens: 10, outputTokens: 5, totalTokens: 15, costUsd: '0.010000' };
    const finishedAt = new Date(clock.now() + 3_000).toISOString();
    const whole = { phase: 'done', reason: 'Completed', usage, usageFinal: true, finishedAt, ...ended };
    const options = { type: 'merge', subresource: 'status' } as const;
    await api.patch(AgentRuns, { namespace: NAMESPACE, name }, { status: whole }, options);
  };
  return {
    api,
    backlog,
    clock,
    part,
    reconcile,
    status,
    end,
    /** Reconciles twice: the results of a generation, then its first runs. */
    begin: async () => {
      await reconcile();
      await reconcile();
    },
    runs: () => api.all(AgentRuns).map(({ metadata }) => metadata.name),
    run: (name = '') => api.peek(AgentRuns, `${NAMESPACE}/${name}`) as AgentRun,
    phases: () => (status().results ?? []).map(({ phase }) => phase),
    condition: (type: string) => findCondition(status().conditions, type),
    writes: () => api.writes.splice(0).map(({ verb, resource }) => `${verb} ${resource}`),
    change: async (changed: Partial<AgentEval['spec']>) => {
      const current = api.peek(AgentEvals, KEY) as AgentEval;
      const generation = (current.metadata.generation ?? 0) + 1;
      const spec = { ...current.spec, ...changed };
      await api.patch(
        AgentEvals,
        { namespace: NAMESPACE, name: 'greetings' },
        { metadata: { generation }, spec },
        { type: 'merge' },
      );
    },
  };
}

const nameOf = (at: AgentEval, case_: number, role: 'case' | 'judge' = 'case', agent = 'ada', attempt = 0) => {
  const cell = cellsOf(at.spec)[case_];
  if (cell === undefined) throw new Error('no such case');
  return evalRunName(at, cell, { role, agent, attempt });
};

describe('an eval', () => {
  it('shows its cases, then starts each as an ordinary run that is its own, with one status write each time', async () => {
    const { api, reconcile, writes, status, runs, run, condition } = setUp();
    await reconcile();
    expect(writes()).toEqual(['patch agentevals/status']);
    expect(status()).toMatchObject({ generation: 1, phase: 'running', total: 1, passed: 0, failed: 0 });
    expect(status().results).toEqual([{ case: 'hello', phase: 'pending' }]);
    await reconcile();
    expect(writes()).toEqual(['create agentruns', 'patch agentevals/status']);
    const [name] = runs();
    expect(name).toBe(nameOf(api.peek(AgentEvals, KEY) as AgentEval, 0));
    expect(run(name)).toMatchObject({
      metadata: {
        labels: { 'boxwright.dev/eval': 'greetings', 'boxwright.dev/agent': 'ada' },
        ownerReferences: [{ kind: 'AgentEval', name: 'greetings', uid: 'uid-eval', controller: true }],
      },
      spec: {
        agent: 'ada',
        agentUid: 'uid-agent-ada',
        message: 'Say hello.',
        trigger: { origin: 'eval', name: 'greetings', uid: 'uid-eval', case: 'hello' },
        sessionTitle: 'eval: greetings, hello',
        actor: 'eval',
      },
    });
    expect(run(name).spec).not.toHaveProperty('sessionId');
    expect(run(name).spec).not.toHaveProperty('model');
    expect(status().results).toEqual([{ case: 'hello', phase: 'running', run: name }]);
    expect(condition('Finished')).toMatchObject({ status: 'False', reason: 'EvalRunning' });
    expect(condition('Passed')).toMatchObject({ status: 'Unknown' });
    await reconcile();
    expect(writes()).toEqual([]);
  });

  it('passes when every assertion holds, once the usage of the run is final, and does nothing more', async () => {
    const { begin, runs, end, reconcile, status, condition, writes, phases } = setUp();
    await begin();
    const [name = ''] = runs();
    await end(name, { output: 'Hello!', usageFinal: false });
    await reconcile();
    expect(phases()).toEqual(['running']);
    await end(name, { output: 'Hello!' });
    writes();
    await reconcile();
    expect(writes()).toEqual(['patch agentevals/status']);
    const measured = { costUsd: '0.010000', steps: 2, totalTokens: 15, seconds: 3 };
    expect(status()).toMatchObject({ phase: 'passed', passed: 1, failed: 0, costUsd: '0.010000' });
    expect(status().results).toEqual([{ case: 'hello', phase: 'passed', run: name, ...measured }]);
    expect(status().finishedAt).toBeDefined();
    expect(condition('Finished')).toMatchObject({ status: 'True', reason: 'AllPassed', observedGeneration: 1 });
    expect(condition('Passed')).toMatchObject({ status: 'True' });
    expect(await reconcile()).toEqual({});
    expect(writes()).toEqual([]);
  });

  it('fails with what was expected and what was seen', async () => {
    const { begin, runs, end, reconcile, status, condition } = setUp({ cases: [hello, bye] });
    await begin();
    for (const name of runs()) await end(name, { output: 'Hello!' });
    await reconcile();
    expect(status()).toMatchObject({ phase: 'failed', passed: 1, failed: 1, costUsd: '0.020000' });
    expect(status().results?.[1]?.failures).toEqual([{ assertion: 'contains: Bye', seen: 'Hello!' }]);
    expect(condition('Passed')).toMatchObject({
      status: 'False',
      reason: 'CasesFailed',
      message: '1 of 2 passed, 1 failed',
    });
  });

  it('fails a case whose run ends badly, or is gone', async () => {
    const { api, begin, runs, end, reconcile, status } = setUp({ cases: [hello, bye] });
    await begin();
    const [first = '', second = ''] = runs();
    await end(first, { phase: 'error', reason: 'ModelError', message: 'The model said no.', output: 'Hello!' });
    await api.patch(
      AgentRuns,
      { namespace: NAMESPACE, name: second },
      { metadata: { finalizers: [] } },
      { type: 'merge' },
    );
    await api.delete(AgentRuns, { namespace: NAMESPACE, name: second });
    await reconcile();
    const seen = status().results?.map(({ failures }) => failures?.[0]?.seen);
    expect(new Set(seen)).toEqual(
      new Set([`run ${first} ended as error: ModelError: The model said no.`, `run ${second} is gone`]),
    );
    expect(runs()).toEqual([first]);
  });

  it('names what the agent is made of, unless that changed while the cases ran', async () => {
    const { api, begin, runs, end, reconcile, status, change } = setUp();
    await begin();
    const { content } = status();
    expect(content).toMatch(/^[0-9a-f]{64}$/);
    await end(runs()[0] ?? '', { output: 'Hello!' });
    await reconcile();
    expect(status()).toMatchObject({ phase: 'passed', content });

    await change({ round: 2 });
    await begin();
    expect(status().content).toBe(content);
    const ref = { namespace: NAMESPACE, name: 'ada' };
    await api.patch(Agents, ref, { spec: { soul: 'Be rude.' } }, { type: 'merge' });
    await end(runs().at(-1) ?? '', { output: 'Hello!' });
    await reconcile();
    expect(status()).toMatchObject({ phase: 'passed' });
    expect(status()).not.toHaveProperty('content');
  });

  it('has no more cases under way than parallelism allows', async () => {
    const cases = ['a', 'b', 'c'].map((name) => ({ ...hello, name }));
    const { begin, runs, end, reconcile, phases } = setUp({ cases, parallelism: 2 });
    await begin();
    expect(phases()).toEqual(['running', 'running', 'pending']);
    await end(runs()[0] ?? '', { output: 'Hello' });
    await reconcile();
    await reconcile();
    expect(phases().sort()).toEqual(['passed', 'running', 'running']);
    expect(runs()).toHaveLength(3);
  });

  it('runs each case with each model', async () => {
    const models = [{ name: 'small' }, { provider: 'openai', name: 'gpt-5' }];
    const { begin, status, run } = setUp({ cases: [hello, bye], models });
    await begin();
    const results = status().results ?? [];
    expect(results.map((result) => [result.case, result.model])).toEqual([
      ['hello', 'small'],
      ['hello', 'openai/gpt-5'],
      ['bye', 'small'],
      ['bye', 'openai/gpt-5'],
    ]);
    expect(results.map(({ run: name }) => run(name).spec.model)).toEqual([...models, ...models]);
  });

  it('gives the recording of a case to its run, and none to its judge', async () => {
    const recording = { configMap: 'sum', anyResultOf: ['shell'] };
    const judge = { agent: 'judge', rubric: 'It is polite.' };
    const { begin, runs, run, end, reconcile, status } = setUp({ cases: [{ ...hello, recording, judge }] });
    await begin();
    expect(run(runs()[0]).spec.recording).toEqual(recording);
    await end(runs()[0] ?? '', { output: 'Hello!' });
    await reconcile();
    const judgeRun = run(status().results?.[0]?.judgeRun).spec;
    expect(judgeRun).not.toHaveProperty('recording');
    expect(judgeRun.trigger).toEqual({ origin: 'eval', name: 'greetings', uid: 'uid-eval' });
  });

  it('reads the transcript for tools, and for an output that the status has cut', async () => {
    const assertions = [{ toolCalled: 'shell' }, { toolNotCalled: 'write' }, { contains: 'the very end' }];
    const { api, begin, runs, run, end, reconcile, status } = setUp({ cases: [{ ...hello, assertions }] });
    await begin();
    const [name = ''] = runs();
    const at = '2026-05-01T12:00:00Z';
    const events: RunEvent[] = [
      { type: 'tool', seq: 1, at, step: 1, tool: 'shell', input: '{}', result: '{}', isError: false, durationMs: 1 },
      { type: 'output', seq: 2, at, text: 'From the start to the very end' },
    ];
    const { parts } = await splitEvents(events);
    const owner = { namespace: NAMESPACE, name, uid: run(name).metadata.uid ?? '' };
    for (const [seq, content] of parts.entries()) await writeChunk(api, owner, seq, content);
    const transcript = { state: 'full', chunks: parts.length, bytes: 1 } as const;
    await end(name, { output: 'From the start', outputTruncated: true, transcript });
    await reconcile();
    expect(status().results?.[0]).toMatchObject({ phase: 'passed' });
  });
});

describe('a judge', () => {
  const judged = { ...hello, judge: { agent: 'judge', model: { name: 'large' }, rubric: 'It is polite.' } };

  it.each([
    ['PASS, it is.', 'passed', undefined],
    ['FAIL: it is rude.', 'failed', { assertion: 'judge: PASS', seen: 'FAIL: it is rude.' }],
    ['Hm.', 'failed', { assertion: 'judge: PASS or FAIL as the first word', seen: 'Hm.' }],
    ['', 'failed', { assertion: 'judge: PASS or FAIL as the first word', seen: 'an empty message' }],
  ])('that answers %j means %s', async (answer, phase, failure) => {
    const { begin, runs, run, end, reconcile, status } = setUp({ cases: [judged] });
    await begin();
    await end(runs()[0] ?? '', { output: 'Hello!' });
    await reconcile();
    const { judgeRun } = status().results?.[0] ?? {};
    expect(status().results?.[0]).toMatchObject({ phase: 'judging', costUsd: '0.010000' });
    expect(run(judgeRun).spec).toMatchObject({ agent: 'judge', model: { name: 'large' }, actor: 'eval' });
    expect(run(judgeRun).spec.message).toContain('It is polite.');
    expect(run(judgeRun).spec.message).toContain('<agent_message is="answer">\nHello!\n</agent_message>');
    await end(judgeRun ?? '', { output: answer });
    await reconcile();
    expect(status().results?.[0]).toMatchObject({ phase, verdict: answer, costUsd: '0.020000', steps: 2 });
    expect(status().results?.[0]?.failures?.[0]).toEqual(failure);
  });

  it('that asks a person, or ends badly, has judged nothing; what it cost counts', async () => {
    const ends = [
      { output: 'PASS, or what do you say?', pending: { kind: 'question' as const, text: 'PASS?', callId: 'c' } },
      { phase: 'error' as const, reason: 'EmptyAnswer', output: 'PASS' },
    ];
    for (const ended of ends) {
      const { begin, runs, end, reconcile, status } = setUp({ cases: [judged] });
      await begin();
      await end(runs()[0] ?? '', { output: 'Hello!' });
      await reconcile();
      await end(status().results?.[0]?.judgeRun ?? '', ended);
      await reconcile();
      expect(status().results?.[0]).toMatchObject({ phase: 'failed', costUsd: '0.020000' });
      expect(status().results?.[0]?.failures).toHaveLength(1);
    }
  });

  it('is not asked when an assertion failed', async () => {
    const { begin, runs, end, reconcile, phases } = setUp({ cases: [judged] });
    await begin();
    await end(runs()[0] ?? '', { output: 'Good day.' });
    await reconcile();
    expect(phases()).toEqual(['failed']);
    expect(runs()).toHaveLength(1);
  });

  it('that is missing is waited for, and the run of the case is assessed again then', async () => {
    const cases = [{ ...judged, judge: { ...judged.judge, agent: 'later' } }];
    const { api, begin, runs, end, reconcile, phases, condition } = setUp({ cases });
    await begin();
    await end(runs()[0] ?? '', { output: 'Hello!' });
    expect(await reconcile()).toEqual({ requeueAfterMs: 30_000 });
    expect(phases()).toEqual(['running']);
    expect(condition('Ready')).toMatchObject({ status: 'False', reason: 'AgentNotFound' });
    api.seed(Agents, makeAgent({}, 'later'));
    await reconcile();
    expect(phases()).toEqual(['judging']);
    expect(condition('Ready')).toMatchObject({ status: 'True' });
  });
});

describe('a start', () => {
  it('that was not recorded finds its run again: a crash between create and status write repeats nothing', async () => {
    const { api, reconcile, runs, status } = setUp({ cases: [hello, bye] });
    await reconcile();
    const patch = api.patch.bind(api);
    api.patch = () => Promise.reject(new Error('the process died'));
    await expect(reconcile()).rejects.toThrow('the process died');
    expect(runs()).toHaveLength(2);
    expect(status().results?.map(({ phase }) => phase)).toEqual(['pending', 'pending']);
    api.patch = patch;
    await reconcile();
    expect(runs()).toHaveLength(2);
    expect(
      status()
        .results?.map(({ run }) => run)
        .sort(),
    ).toEqual(runs().sort());
  });

  it("takes another name when somebody else's run has it", async () => {
    const { api, reconcile, status } = setUp();
    await reconcile();
    const at = api.peek(AgentEvals, KEY) as AgentEval;
    api.seed(AgentRuns, {
      apiVersion: API_VERSION,
      kind: 'AgentRun',
      metadata: { name: nameOf(at, 0), namespace: NAMESPACE },
      spec: { agent: 'ada', message: 'mine' },
    });
    await reconcile();
    expect(status().results?.[0]?.run).toBe(nameOf(at, 0, 'case', 'ada', 1));
  });

  it('waits for room in the backlog', async () => {
    const { api, backlog, begin, reconcile, runs, condition, phases } = setUp();
    backlog.full = 'agent';
    await begin();
    api.clearRecords();
    await reconcile();
    expect([...api.reads, ...api.writes]).toEqual([]);
    expect(runs()).toEqual([]);
    expect(condition('Ready')).toMatchObject({ status: 'False', reason: 'BacklogFull' });
    delete backlog.full;
    await reconcile();
    expect(phases()).toEqual(['running']);
  });

  it('is left to whoever has a newer view of the eval', async () => {
    const { api, reconcile, runs, writes } = setUp();
    await reconcile();
    writes();
    const get = api.get.bind(api);
    api.get = async (type, ref, options) => {
      const live = await get(type, ref, options);
      return { ...live, metadata: { ...live.metadata, resourceVersion: 'newer' } };
    };
    expect(await reconcile()).toEqual({ requeueAfterMs: 1_000 });
    expect(runs()).toEqual([]);
    expect(writes()).toEqual([]);
  });
});

describe('a changed spec', () => {
  it('cancels what works for the old one, and runs every case anew under other names', async () => {
    const { begin, runs, run, end, change, status } = setUp({ cases: [hello, bye] });
    await begin();
    const [ended = '', working = ''] = runs();
    await end(ended, { output: 'Hello!' });
    await change({ round: 2 });
    await begin();
    expect(run(working).spec.cancelRequested).toBe(true);
    expect(run(ended).spec).not.toHaveProperty('cancelRequested');
    expect(runs()).toHaveLength(4);
    expect(status()).toMatchObject({ generation: 2, phase: 'running', passed: 0 });
    expect(status()).not.toHaveProperty('costUsd');
    expect(status().results?.map((result) => result.phase)).toEqual(['running', 'running']);
  });

  it('that cannot be run says why, starts nothing, and lets nobody wait for its end', async () => {
    const { reconcile, runs, status, condition, change, phases } = setUp({
      cases: [{ ...hello, assertions: [{ matches: '(?=a)' }] }],
    });
    expect(await reconcile()).toEqual({});
    expect(runs()).toEqual([]);
    expect(status()).toMatchObject({ phase: 'failed' });
    for (const [type, value] of [
      ['Ready', 'False'],
      ['Finished', 'True'],
      ['Passed', 'False'],
    ] as const) {
      expect(condition(type)).toMatchObject({ status: value, reason: 'InvalidEval' });
    }
    await change({ cases: [hello] });
    await reconcile();
    await reconcile();
    expect(phases()).toEqual(['running']);
    expect(condition('Ready')).toMatchObject({ status: 'True' });
  });

  it('that is too large for results beside it is refused', async () => {
    const cases = Array.from({ length: 17 }, (_, number) => ({
      ...hello,
      name: `c${number}`,
      message: 'x'.repeat(16_384),
    }));
    const { reconcile, condition } = setUp({ cases });
    await reconcile();
    expect(condition('Ready')).toMatchObject({ reason: 'InvalidEval' });
  });
});

test('an eval is looked at when a run of it is settled or goes, when an agent comes, and for no other run', async () => {
  const { api, part, begin, runs, end } = setUp();
  await begin();
  const woken: string[] = [];
  const stop = part.watch((key) => woken.push(key));
  const [name = ''] = runs();
  await end(name, { usageFinal: false });
  expect(woken).toEqual([]);
  await end(name, {});
  expect(woken).toEqual([KEY]);
  api.seed(Agents, makeAgent({}, 'other'));
  expect(woken).toEqual([KEY, KEY]);
  api.seed(AgentRuns, {
    apiVersion: API_VERSION,
    kind: 'AgentRun',
    metadata: { name: 'x', namespace: NAMESPACE },
    spec: { agent: 'ada', message: 'x' },
  });
  expect(woken).toHaveLength(2);
  stop();
});

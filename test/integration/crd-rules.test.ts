/** The rules that the CRDs carry, on a real API server: what is refused, with a message that names the field. */
import { recordingLog } from '../builders/log.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { ALL_KINDS } from '../../src/api/v1alpha1/index.js';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { KubeApiError } from '../../src/kube/errors.js';
import { RunStatusWriter } from '../../src/run/status-writer.js';
import { startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';

const apiVersion = 'boxwright.dev/v1alpha1';

describe('the rules of the CRDs', () => {
  let server: TestApiServer;
  let namespace: string;

  beforeAll(async () => {
    server = await startApiServer();
    await server.applyCrds();
    namespace = await server.createNamespace();
  });

  afterAll(async () => {
    await server.stop();
  });

  function kindOf(kind: string): ResourceType {
    const found = ALL_KINDS.find((definition) => definition.kind === kind);
    if (found === undefined) throw new Error(kind);
    return found;
  }

  async function refusal(action: Promise<unknown>): Promise<string> {
    const error = await action.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (!(error instanceof KubeApiError)) throw new Error(`was not refused by the API server: ${String(error)}`);
    return error.message;
  }

  function create(kind: string, name: string, spec: object): Promise<KubeObject> {
    const type = kindOf(kind);
    const metadata = type.namespaced ? { name, namespace } : { name };
    return server.api.create(type, { apiVersion, kind, metadata, spec } as KubeObject);
  }

  test('a key that was revoked stays revoked', async () => {
    const { metadata } = await create('APIKey', 'leaked', {});
    const ref = { name: metadata.name, namespace };
    const revoke = (revoked: unknown) =>
      server.api.patch(kindOf('APIKey'), ref, { spec: { revoked } }, { type: 'merge' });
    await revoke(true);
    for (const back of [false, null]) expect(await refusal(revoke(back))).toContain('cannot be taken back');
    await server.api.patch(kindOf('APIKey'), ref, { spec: { description: 'leaked in May' } }, { type: 'merge' });
  });

  test.each([
    ['a Box that looks like a workspace namespace', 'Box', 'ws-a', { workspace: 'w' }, 'must not begin with ws-'],
    ['a Box with a name above 60 characters', 'Box', 'b'.repeat(61), { workspace: 'w' }, 'at most 60'],
    [
      'a Box with a search engine that has no address',
      'Box',
      'b1',
      { workspace: 'w', webSearch: { engine: 'searxng' } },
      'spec.webSearch.baseUrl is required for engine searxng',
    ],
    [
      'a Box with a search engine that nobody knows',
      'Box',
      'b1',
      { workspace: 'w', webSearch: { engine: 'x' } },
      'spec.webSearch.engine',
    ],
    ['a Box without a workspace', 'Box', 'b1', {}, 'spec.workspace'],
    ['a Workspace with a name above 57 characters', 'Workspace', 'w'.repeat(58), {}, 'at most 57'],
    ['an Agent with a dot in its name', 'Agent', 'a.b', { name: 'A' }, 'DNS label'],
    ['an Agent with a name above 36 characters', 'Agent', 'a'.repeat(37), { name: 'A' }, 'at most 36'],
    ['an Agent with an unknown provider', 'Agent', 'a1', { name: 'A', provider: 'acme' }, 'spec.provider'],
    ['an Agent with an unknown effort', 'Agent', 'a1', { name: 'A', reasoning: 'much' }, 'spec.reasoning'],
    ['an Agent that compacts at no share', 'Agent', 'a1', { name: 'A', compactAt: 0.9 }, 'a share of the window'],
    ['an Agent that compacts at few tokens', 'Agent', 'a1', { name: 'A', compactAt: 12 }, 'a share of the window'],
    [
      'an Agent with six fallbacks',
      'Agent',
      'a1',
      { name: 'A', fallbackModels: ['a', 'b', 'c', 'd', 'e', 'f'] },
      'at most 4',
    ],
    [
      'an Agent whose required setup has no prompt',
      'Agent',
      'a2',
      { name: 'A', setup: { required: true } },
      'spec.setup.prompt is needed',
    ],
    [
      'a trigger with another agent in its name',
      'AgentTrigger',
      'a.t',
      { agent: 'b', name: 'T', body: '' },
      '<agent>.<slug>',
    ],
    [
      'a trigger without methods',
      'AgentTrigger',
      'a.t',
      { agent: 'a', name: 'T', body: '', methods: [] },
      'spec.methods',
    ],
    [
      'a schedule with cron and runAt',
      'AgentSchedule',
      'a.s',
      { agent: 'a', name: 'S', body: '', cron: '0 * * * *', runAt: '2030-01-01T00:00:00Z' },
      'exactly one of spec.cron and spec.runAt',
    ],
    ['a run without a message', 'AgentRun', 'r1', { agent: 'a' }, 'spec.message is required'],
    [
      'a run with a message and an input',
      'AgentRun',
      'r2',
      { agent: 'a', message: 'x', input: { encoding: 'gzip', bytes: 1, sha256: 'x' } },
      'spec.message is required',
    ],
    [
      'a run with a message above 128 Ki characters',
      'AgentRun',
      'r3',
      { agent: 'a', message: 'x'.repeat(131_073) },
      'spec.message',
    ],
  ])('%s is refused', async (_sentence, kind, name, spec, message) => {
    expect(await refusal(create(kind, name, spec))).toContain(message);
  });

  test.each([
    ['Box', 'fixed-box', { workspace: 'w' }, { workspace: 'other' }, 'spec.workspace cannot be changed'],
    ['AgentTrigger', 'a.fixed', { agent: 'a', name: 'T', body: '' }, { name: 'U' }, 'spec.name cannot be changed'],
    [
      'AgentRun',
      'fixed-run',
      { agent: 'a', message: 'x', sessionId: 's1' },
      { sessionId: null },
      'spec.sessionId cannot be changed',
    ],
    ['AgentRun', 'fixed-run-2', { agent: 'a', message: 'x' }, { sessionId: 's1' }, 'spec.sessionId cannot be changed'],
    ['AgentRun', 'fixed-run-6', { agent: 'a', message: 'x' }, { resume: 'r' }, 'spec.resume cannot be changed'],
    ['AgentRun', 'fixed-run-4', { agent: 'a', message: 'x' }, { steer: true }, 'spec.steer cannot be changed'],
    ['AgentRun', 'fixed-run-5', { agent: 'a', message: 'x' }, { model: { name: 'm' } }, 'spec.model cannot be changed'],
    ['AgentRun', 'fixed-run-3', { agent: 'a', message: 'x' }, { message: 'y' }, 'spec.message cannot be changed'],
  ])('a fixed field of %s %s cannot change, appear or disappear', async (kind, name, spec, change, message) => {
    await create(kind, name, spec);
    const type = kindOf(kind);
    const ref = type.namespaced ? { namespace, name } : { name };
    expect(await refusal(server.api.patch(type, ref, { spec: change }, { type: 'merge' }))).toContain(message);
  });

  describe('a run', () => {
    const patchStatus = (name: string, status: unknown) =>
      server.api.patch(AgentRuns, { namespace, name }, { status }, { type: 'merge', subresource: 'status' });
    const patchSpec = (name: string, spec: unknown) =>
      server.api.patch(AgentRuns, { namespace, name }, { spec }, { type: 'merge' });

    test('shows `running` before anything was written to its status', async () => {
      const run = (await create('AgentRun', 'fresh', { agent: 'a', message: 'x' })) as AgentRun;
      expect(run.status).toEqual({ phase: 'running' });
    });

    test('that has ended keeps its outcome: no other phase, no other reason, no dropped status', async () => {
      await create('AgentRun', 'ended', { agent: 'a', message: 'x' });
      await patchStatus('ended', { phase: 'error', reason: 'PodDeleted' });
      const message = 'the outcome of a finished run cannot be changed';
      expect(await refusal(patchStatus('ended', { phase: 'done' }))).toContain(message);
      expect(await refusal(patchStatus('ended', { phase: 'running' }))).toContain(message);
      expect(await refusal(patchStatus('ended', { reason: 'Completed' }))).toContain(message);
      expect(await refusal(patchStatus('ended', null))).toContain(message);
      const run = await server.api.get(AgentRuns, { namespace, name: 'ended' });
      expect(run.status).toEqual({ phase: 'error', reason: 'PodDeleted' });
    });

    test('ends without the counts that the API server refuses, and says so', async () => {
      const run = (await create('AgentRun', 'absurd', { agent: 'ada', message: 'go' })) as AgentRun;
      const gateway = { gatewayPod: 'g', gatewayUid: 'u', gatewayAddress: '10.0.0.1:8443' };
      const claim = { podUid: 'p', podName: 'p', at: '2026-01-01T00:00:00Z', ...gateway, epoch: 1 };
      const claimed = await patchStatus('absurd', { phase: 'running', claim });
      const counts = { inputTokens: 2 ** 53, outputTokens: 1e300, totalTokens: 2 ** 60 };
      const work = { fencingToken: 1, usage: { steps: 1, ...counts, costUsd: '9'.repeat(40) } };
      const outcome = { reason: 'Completed', message: '', output: 'Done.' } as const;
      const event = { type: 'finished', by: 'gateway', outcome, end: { work }, now: '2026-01-01T00:00:01Z' } as const;
      const ended = await new RunStatusWriter(server.api, 'gateway', recordingLog().log).apply(claimed, event);
      expect(ended?.metadata.uid).toBe(run.metadata.uid);
      expect(ended?.status).toMatchObject({ phase: 'done', reason: 'Completed', output: 'Done.', usageFinal: true });
      expect(ended?.status?.message).toContain('found it invalid: usage');
      expect(ended?.status?.usage).toBeUndefined();
    });

    test('may be cancelled, and that cannot be taken back', async () => {
      await create('AgentRun', 'cancelled', { agent: 'a', message: 'x' });
      await patchSpec('cancelled', { cancelRequested: true });
      const message = 'spec.cancelRequested cannot be taken back';
      expect(await refusal(patchSpec('cancelled', { cancelRequested: false }))).toContain(message);
      expect(await refusal(patchSpec('cancelled', { cancelRequested: null }))).toContain(message);
    });

    test('loses the data of its input only after its end, and never gets other data', async () => {
      const input = { encoding: 'gzip', bytes: 3, sha256: 'abc', data: 'AAAA' };
      await create('AgentRun', 'input', { agent: 'a', input });
      const message = 'spec.input cannot be changed';
      expect(await refusal(patchSpec('input', { input: { data: null } }))).toContain(message);
      expect(await refusal(patchSpec('input', { input: { data: 'BBBB' } }))).toContain(message);
      expect(await refusal(patchSpec('input', { input: null, message: 'x' }))).toContain('cannot be changed');
      await patchStatus('input', { phase: 'done', reason: 'Completed' });
      await patchSpec('input', { input: { data: null } });
      expect(await refusal(patchSpec('input', { input: { data: 'AAAA' } }))).toContain(message);
    });
  });

  test('a Box says what runs from outside may do: in part, with defaults for the rest, and in closed words', async () => {
    const untrusted = { memory: 'write', selfImprovement: 'propose', callAgents: 'box' };
    expect((await create('Box', 'outside-1', { workspace: 'w' })) as unknown).toMatchObject({ spec: { untrusted } });
    const partly = await create('Box', 'outside-2', { workspace: 'w', untrusted: { memory: 'refuse' } });
    expect(partly as unknown).toMatchObject({ spec: { untrusted: { ...untrusted, memory: 'refuse' } } });
    const wrong = { workspace: 'w', untrusted: { callAgents: 'all' } };
    expect(await refusal(create('Box', 'outside-3', wrong))).toContain('spec.untrusted.callAgents');
  });

  test('an Agent keeps what it says of its model, its schema as it was written', async () => {
    const outputSchema = {
      type: 'object',
      properties: { a: { enum: ['x', 1], 'x-note': { deep: true } } },
      required: ['a'],
    };
    const spec = {
      reasoning: 'low',
      maxOutputTokens: 4000,
      fallbackModels: ['openai/gpt-5.5'],
      compactAt: 0.4,
      outputSchema,
    };
    expect(await create('Agent', 'controlled', { name: 'A', ...spec })).toMatchObject({ spec });
    expect(await create('Agent', 'by-tokens', { name: 'A', compactAt: 80_000 })).toMatchObject({
      spec: { compactAt: 80_000 },
    });
  });

  test('a chunk of a transcript stays with its run, in its place; its content may make room', async () => {
    await create('AgentRunChunk', 'r.00', { run: 'r', runUid: 'u', seq: 0, bytes: 1, sha256: 'x', data: 'AAAA' });
    const patch = (spec: object) =>
      server.api.patch(kindOf('AgentRunChunk'), { namespace, name: 'r.00' }, { spec }, { type: 'merge' });
    for (const spec of [{ run: 'other' }, { runUid: 'other' }, { seq: 1 }]) {
      expect(await refusal(patch(spec))).toContain('a chunk stays with its run, in its place');
    }
    expect((await patch({ bytes: 2, sha256: 'y', data: 'BBBB' })) as unknown).toMatchObject({ spec: { data: 'BBBB' } });
  });
});

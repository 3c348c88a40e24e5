import { AgentRuns, type AgentRun } from '../api/v1alpha1/agent-run.js';
import { KubeApiError } from '../kube/errors.js';
import { RecordingApi } from '../../test/builders/recording-api.js';
import type { RunStatus } from './status.js';
import { NotOwnerError, RunStatusWriter, expectOwner, type StatusOwner } from './status-writer.js';

const LOG = { warn: () => undefined };
const NOW = '2026-01-01T00:00:00.000Z';
const QUEUED = { type: 'queued', reason: 'BoxLimit', message: 'full', now: NOW } as const;

function seeded() {
  const api = new RecordingApi();
  const run = api.seed(AgentRuns, {
    apiVersion: 'boxwright.dev/v1alpha1',
    kind: 'AgentRun',
    metadata: { name: 'ada-1', namespace: 'bw-lab' },
    spec: { agent: 'ada', message: 'go' },
    status: { phase: 'running', agentUid: 'uid-ada' },
  });
  return { api, run };
}

test('a write sends what changes, under the version that was seen', async () => {
  const { api, run } = seeded();
  const written = await new RunStatusWriter(api, 'run controller', LOG).apply(run, QUEUED);
  expect(api.writes).toMatchObject([
    {
      verb: 'patch',
      resource: 'agentruns/status',
      key: 'bw-lab/ada-1',
      body: { metadata: { resourceVersion: run.metadata.resourceVersion } },
    },
  ]);
  const { status } = (api.writes[0] as { body: AgentRun }).body;
  expect(Object.keys(status ?? {}).sort()).toEqual(['conditions', 'message', 'reason']);
  expect(written?.status).toMatchObject({ agentUid: 'uid-ada', reason: 'BoxLimit' });
});

test('an event that changes nothing makes no request', async () => {
  const { api, run } = seeded();
  const writer = new RunStatusWriter(api, 'run controller', LOG);
  expect(await writer.apply(run, { type: 'admitted', now: NOW })).toBeUndefined();
  expect(api.writes).toEqual([]);
});

test('a write on an older version is refused, and so is one of a run that is gone', async () => {
  const { api, run } = seeded();
  const writer = new RunStatusWriter(api, 'run controller', LOG);
  await writer.apply(run, QUEUED);
  await expect(writer.apply(run, { ...QUEUED, reason: 'AgentLimit' })).rejects.toMatchObject({ status: 409 });
  await api.delete(AgentRuns, { namespace: 'bw-lab', name: 'ada-1' });
  await expect(writer.apply(run, QUEUED)).rejects.toMatchObject({ status: 404 });
});

test('an event of somebody else is refused before it is sent', async () => {
  const { api, run } = seeded();
  await expect(new RunStatusWriter(api, 'budget controller', LOG).apply(run, QUEUED)).rejects.toThrow(NotOwnerError);
  expect(api.writes).toEqual([]);
});

const FINISHED = {
  type: 'finished',
  by: 'gateway',
  outcome: { reason: 'Completed', message: 'good', output: 'Done.' },
  now: NOW,
} as const;

const CLAIM = {
  podUid: 'p',
  podName: 'p',
  at: NOW,
  gatewayPod: 'g',
  gatewayUid: 'u',
  gatewayAddress: '10.0.0.1:8443',
  epoch: 1,
};

function refusing(fields: readonly string[]): KubeApiError {
  const causes = fields.map((field) => ({ field, reason: 'FieldValueInvalid' }));
  return new KubeApiError({ status: 422, reason: 'Invalid', message: 'invalid', details: { causes } });
}

const patchOf = { verb: 'patch', resource: 'agentruns/status' } as const;

test('a run ends without what the API server finds invalid, and says so', async () => {
  const { api, run } = seeded();
  api.failNext({ ...patchOf, error: refusing(['status.usage.totalTokens', 'status.usage.costUsd']) });
  const warned: unknown[] = [];
  const writer = new RunStatusWriter(api, 'gateway', { warn: (data: unknown) => void warned.push(data) });
  const written = await writer.apply(run, FINISHED);
  const message = 'good (Not stored, because Kubernetes found it invalid: usage.)';
  expect(written?.status).toMatchObject({
    phase: 'done',
    reason: 'Completed',
    output: 'Done.',
    usageFinal: true,
    message,
  });
  expect(written?.status?.conditions?.find(({ type }) => type === 'Finished')?.message).toBe(message);
  expect(written?.status).not.toHaveProperty('usage');
  expect(warned).toMatchObject([{ run: 'ada-1', fields: ['usage'] }]);
});

test('what is refused after that is left out as well, and the same is told once', async () => {
  const { api, run } = seeded();
  const warned: unknown[] = [];
  const writer = new RunStatusWriter(api, 'gateway', { warn: (data: unknown) => void warned.push(data) });
  const refuse = () => {
    api.failNext({ ...patchOf, error: refusing(['status.output']) });
    api.failNext({ ...patchOf, error: refusing(['status.claim.podName', 'status.message']) });
  };
  const claimed = { ...run, status: { phase: 'running' as const, claim: CLAIM } };
  refuse();
  const written = await writer.apply(claimed, FINISHED);
  expect(written?.status).toMatchObject({
    phase: 'done',
    reason: 'Completed',
    message: expect.stringContaining('claim'),
  });
  expect(written?.status?.message).toBe('(Not stored, because Kubernetes found it invalid: output, claim, message.)');
  expect((api.writes.at(-1) as { body: { status: object } }).body.status).toMatchObject({ claim: null });
  expect(warned).toMatchObject([{ fields: ['output'] }, { fields: ['output', 'claim', 'message'] }]);
  refuse();
  await writer.apply({ ...claimed, metadata: written?.metadata ?? run.metadata }, FINISHED);
  expect(warned).toHaveLength(2);
});

test('a run waits although the API server refuses why', async () => {
  const { api, run } = seeded();
  const writer = new RunStatusWriter(api, 'run controller', LOG);
  api.failNext({ ...patchOf, error: refusing(['status.message', 'status.conditions[0].message']) });
  const written = await writer.apply(run, QUEUED);
  const note = '(Not stored, because Kubernetes found it invalid: message, conditions.)';
  expect(written?.status).toMatchObject({ reason: 'BoxLimit', message: note });
  expect(written?.status?.conditions).toMatchObject([
    { type: 'Queued', status: 'True', reason: 'BoxLimit', message: note },
  ]);
  // What is there already is not written again.
  api.failNext({ ...patchOf, error: refusing(['status.message', 'status.conditions[0].message']) });
  const requests = api.writes.length;
  const stored = JSON.parse(JSON.stringify(written)) as AgentRun;
  expect(await writer.apply(stored, QUEUED)).toBeUndefined();
  expect(api.writes).toHaveLength(requests + 1);
});

test('a claim that is refused is no claim', async () => {
  const { api, run } = seeded();
  const error = refusing(['status.claim.podName']);
  api.failNext({ ...patchOf, error });
  const event = { type: 'claimed', claim: CLAIM, facts: {}, now: NOW } as const;
  await expect(new RunStatusWriter(api, 'gateway', LOG).apply(run, event)).rejects.toBe(error);
});

test.each([
  ['names what a run cannot do without', refusing(['status.phase'])],
  ['names no field, as those of a policy', refusing([''])],
  ['is about another version', new KubeApiError({ status: 409, reason: 'Conflict', message: 'changed' })],
])('a refusal that %s stays a refusal', async (_what, error) => {
  const { api, run } = seeded();
  api.failNext({ ...patchOf, error });
  await expect(new RunStatusWriter(api, 'gateway', LOG).apply(run, FINISHED)).rejects.toBe(error);
  expect(api.writes).toHaveLength(1);
});

const condition = (type: string, reason = 'Because') => ({
  type,
  status: 'True' as const,
  reason,
  message: '',
  lastTransitionTime: NOW,
});
const before: RunStatus = {
  phase: 'running',
  conditions: [condition('Queued'), condition('Started')],
  budget: { at: NOW, granted: { tokens: 1 }, wanted: { tokens: 2 } },
};

test.each<[StatusOwner, string, RunStatus, string | undefined]>([
  ['gateway', 'usage', { ...before, usageFinal: true }, undefined],
  ['retention', 'usage', { ...before, usageFinal: true }, 'retention does not own usageFinal of an AgentRun'],
  ['retention', 'the transcript', { ...before, transcript: { state: 'expired', chunks: 0, bytes: 0 } }, undefined],
  ['run controller', 'agentUid', { ...before, agentUid: 'a' }, undefined],
  ['gateway', 'agentUid', { ...before, agentUid: 'a' }, 'gateway does not own agentUid of an AgentRun'],
  [
    'run controller',
    'a wait',
    { ...before, conditions: [condition('Queued', 'Other'), condition('Started')] },
    undefined,
  ],
  [
    'run controller',
    'the start',
    { ...before, conditions: [condition('Queued')] },
    'run controller does not own condition Started of an AgentRun',
  ],
  [
    'gateway',
    'a condition that nobody declared',
    { ...before, conditions: [...(before.conditions ?? []), condition('New')] },
    'gateway does not own condition New of an AgentRun',
  ],
  [
    'budget controller',
    'a grant',
    { ...before, budget: { at: NOW, granted: { tokens: 2 }, wanted: { tokens: 2 } } },
    undefined,
  ],
  [
    'budget controller',
    'a wish',
    { ...before, budget: { at: NOW, granted: { tokens: 1 } } },
    'budget controller does not own budget.wanted of an AgentRun',
  ],
])('%s writes %s', (owner, _what, after, refused) => {
  const write = () => expectOwner(owner, before, after);
  if (refused === undefined) expect(write).not.toThrow();
  else expect(write).toThrow(refused);
});

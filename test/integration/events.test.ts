/**
 * The Kubernetes Events of the controller process on a real API server, read as people read them: with kubectl. The policy and
 * the rights of the chart are tested in admission-policies and in real pods.
 */
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { findCondition, isTrue } from '../../src/api/conditions.js';
import { Events, Namespaces } from '../../src/kube/core-types.js';
import { createEventWriter } from '../../src/kube/event-writer.js';
import { createLogger } from '../../src/observability/logger.js';
import type { ObjectEvent } from '../../src/runtime/event-recorder.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { createRelease, startReplica } from '../builders/controller-replica.js';
import type { Replica } from '../builders/controller-replica.js';
import { findTools } from '../builders/kubectl.js';
import { createObject, objectWhen } from '../builders/objects.js';

const RELEASE = 'boxwright-events-test';
const NAMESPACE = 'bw-told';
const signal = new AbortController().signal;

let server: TestApiServer;
let replicas: Replica[] = [];
let kubectl: (args: readonly string[]) => Promise<string>;
const errors: string[] = [];

beforeAll(async () => {
  server = await startApiServer({ own: true });
  const tools = await findTools();
  kubectl = async (args) => {
    const { ok, stdout, stderr } = await tools.kubectl(server.kubeconfig, args);
    if (!ok) throw new Error(stderr);
    return stdout;
  };
  await server.applyCrds();
  await createRelease(server, RELEASE);
  replicas = [await replica('controller-0')];
  await createObject(server.api, Workspaces, { name: 'told' }, { slots: 1 });
  const spec = { workspace: 'told', engine: 'scripted', egress: { requireEnforcement: false } };
  await createObject(server.api, Boxes, { name: 'told' }, spec);
  await objectWhen(server.api, Boxes, { name: 'told' }, ({ status }) => isTrue(status?.conditions, 'Ready'), errors);
  await createAgent('ada');
  await objectWhen(server.api, Agents, of('ada'), ({ status }) => status?.active === true, errors);
}, 1_200_000);

afterAll(async () => {
  for (const one of replicas) await one.stop();
  await server.stop();
});

const of = (name: string) => ({ namespace: NAMESPACE, name });
const createAgent = (name: string) => createObject(server.api, Agents, of(name), { name });
const createRun = (name: string, agent = 'ada') =>
  createObject(server.api, AgentRuns, of(name), { agent, message: 'the message of a user' });
const endRun = (name: string, status: object) =>
  server.api.patch(
    AgentRuns,
    of(name),
    { status: { finishedAt: new Date().toISOString(), usageFinal: true, ...status } },
    { type: 'merge', subresource: 'status' },
  );
const replica = (podName: string) =>
  startReplica({
    server,
    releaseNamespace: RELEASE,
    podName,
    log: createLogger('test', 'error', { write: (line) => errors.push(line) }),
    onLost: (error) => errors.push(String(error)),
  });

/** The lines below `Events:` in `kubectl describe`, with one space between columns. */
async function described(kind: string, name: string, namespace?: string): Promise<string[]> {
  const text = await kubectl(['describe', kind, name, ...(namespace === undefined ? [] : ['-n', namespace])]);
  const [, events = ''] = text.split(/^Events:/m);
  const lines = events.split('\n').map((line) => line.trim().replace(/\s+/g, ' '));
  return lines.filter((line) => /^(Normal|Warning) /.test(line));
}

const shows = (line: RegExp, kind: string, name: string, namespace?: string) =>
  eventually(
    async () => (await described(kind, name, namespace)).some((one) => line.test(one)),
    `kubectl describe ${kind} ${name} does not show ${line.source}`,
  );

test('kubectl describe shows why a run failed', async () => {
  await createRun('failed');
  await objectWhen(server.api, AgentRuns, of('failed'), ({ metadata }) => metadata.finalizers !== undefined, errors);
  const message = `The model said no to Bearer abcdefgh.`;
  await endRun('failed', { phase: 'error', reason: 'ModelError', message });
  await shows(
    /^Warning ModelError \S+ boxwright\.dev\/controller The model said no to Bearer \[redacted\]\.?$/,
    'agentrun',
    'failed',
    NAMESPACE,
  );
  const { items } = await server.api.list(Events, { namespace: NAMESPACE });
  expect(items.filter(({ involvedObject }) => involvedObject?.name === 'failed')).toEqual([
    expect.objectContaining({ involvedObject: expect.objectContaining({ kind: 'AgentRun', namespace: NAMESPACE }) }),
  ]);
  expect(JSON.stringify(items)).not.toContain('the message of a user');
});

test('kubectl describe shows for what a run waits for longer than 30 s', async () => {
  await server.api.patch(Agents, of('ada'), { spec: { paused: true } }, { type: 'merge' });
  await createRun('waits');
  const run = await objectWhen(
    server.api,
    AgentRuns,
    of('waits'),
    ({ status }) => status?.reason === 'AgentPaused',
    errors,
  );
  expect(await described('agentrun', 'waits', NAMESPACE)).toEqual([]);
  // It waits for longer than the test does.
  const lastTransitionTime = new Date(Date.now() - 31_000).toISOString();
  const conditions = [{ ...findCondition(run.status?.conditions, 'Queued'), lastTransitionTime }];
  await server.api.patch(AgentRuns, of('waits'), { status: { conditions } }, { type: 'merge', subresource: 'status' });
  await shows(/^Normal AgentPaused \S+ boxwright\.dev\/controller spec\.paused/, 'agentrun', 'waits', NAMESPACE);
  await server.api.patch(AgentRuns, of('waits'), { spec: { cancelRequested: true } }, { type: 'merge' });
  await shows(/^Normal Cancelled \S+ boxwright\.dev\/controller Cancelled/, 'agentrun', 'waits', NAMESPACE);
});

test('a condition that turns is shown with its object: in its namespace, and for a Box in default', async () => {
  await createAgent('bob');
  await shows(/^Warning NoFreeSlot /, 'agent', 'bob', NAMESPACE);
  await createObject(server.api, Boxes, { name: 'lost' }, { workspace: 'nowhere', engine: 'scripted' });
  await shows(/^Warning WorkspaceNotFound \S+ boxwright\.dev\/controller Workspace nowhere/, 'box', 'lost');
  await createObject(server.api, Workspaces, { name: 'nowhere' }, { slots: 1 });
  expect(await described('workspace', 'nowhere')).toEqual([]);
});

test('the next leader tells what is new, and not again what was told', async () => {
  await server.api.patch(Agents, of('ada'), { spec: { paused: true } }, { type: 'merge' });
  await createRun('early');
  await server.api.patch(AgentRuns, of('early'), { spec: { cancelRequested: true } }, { type: 'merge' });
  await shows(/^Normal Cancelled /, 'agentrun', 'early', NAMESPACE);
  const listed = async () => {
    const { items } = await server.api.list(Events, { namespace: NAMESPACE });
    return items.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`).sort();
  };
  const before = await listed();
  for (const one of replicas) await one.stop();
  replicas = [await replica('controller-1')];
  await createRun('late');
  await server.api.patch(AgentRuns, of('late'), { spec: { cancelRequested: true } }, { type: 'merge' });
  // Events are written one after the other: what was told again would stand before it.
  await shows(/^Normal Cancelled /, 'agentrun', 'late', NAMESPACE);
  expect((await listed()).filter((one) => !one.startsWith('late.'))).toEqual(before);
});

test('a run that ends well makes no event', async () => {
  await createRun('good');
  await endRun('good', { phase: 'done', reason: 'Completed' });
  // One that is told afterwards stands, so this one would as well.
  await createRun('bad');
  await endRun('bad', { phase: 'error', reason: 'ModelError', message: 'No.' });
  await shows(/^Warning ModelError /, 'agentrun', 'bad', NAMESPACE);
  expect(await described('agentrun', 'good', NAMESPACE)).toEqual([]);
});

test('kubectl describe counts repetitions, and nothing is said about a namespace that goes', async () => {
  const writer = createEventWriter(server.api, { controller: 'boxwright.dev/controller', instance: 'test' });
  const { metadata } = await server.api.get(AgentRuns, of('failed'));
  const event: ObjectEvent = {
    subject: { apiVersion: 'boxwright.dev/v1alpha1', kind: 'AgentRun', ...of('failed'), uid: metadata.uid ?? '' },
    type: 'Warning',
    reason: 'Repeated',
    // As long as the recorder makes it.
    note: 'é'.repeat(512),
    action: 'Tested',
    at: new Date().toISOString(),
  };
  await writer.create(event, undefined, signal);
  await writer.repeat(event, { count: 7, lastAt: new Date().toISOString() }, signal);
  await shows(/^Warning Repeated \S+ \(x7 over \S+\) /, 'agentrun', 'failed', NAMESPACE);
  await writer.create({ ...event, reason: 'Often' }, { count: 2, lastAt: event.at }, signal);
  await shows(/^Warning Often \S+ \(x2 over \S+\) /, 'agentrun', 'failed', NAMESPACE);

  const namespace = await server.createNamespace();
  await server.api.delete(Namespaces, { name: namespace });
  await writer.create({ ...event, subject: { ...event.subject, namespace } }, undefined, signal);
  expect((await server.api.list(Events, { namespace })).items).toEqual([]);
});

test('logged no error', () => {
  expect(errors).toEqual([]);
});

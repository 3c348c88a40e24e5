/** The gateway process on a real API server: genuine pod-bound tokens, real conflicts, real CRD rules. */
import { LABEL_RUN, RUNNER_SERVICE_ACCOUNT } from '../../src/api/labels.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { BoxSpec, Boxes } from '../../src/api/v1alpha1/box.js';
import { createCa, issueServerCertificate } from '../../src/controllers/installation/certificates.js';
import { Jobs, Pods, Secrets, ServiceAccounts } from '../../src/kube/core-types.js';
import type { Job } from '../../src/kube/core-types.js';
import { createInformer } from '../../src/kube/informer.js';
import { controllerReference } from '../../src/kube/owner-references.js';
import type { KubeApi } from '../../src/kube/types.js';
import { createLogger } from '../../src/observability/logger.js';
import { createRegistry } from '../../src/observability/metrics.js';
import { createGatewayProcess } from '../../src/processes/gateway.js';
import type { GatewayProcess } from '../../src/processes/gateway.js';
import { runPath } from '../../src/protocol/run.js';
import { systemClock } from '../../src/runtime/clock.js';
import { collect, ownerOf, readFrom, readTranscript } from '../../src/transcript/chunk-store.js';
import { TranscriptLog } from '../../src/transcript/log.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { httpsPost } from '../builders/https-post.js';
import { podToken } from '../builders/pod-token.js';
import { assistantMessage, toolEvent, userMessage } from '../builders/run-events.js';
import { writeStatus } from '../builders/write-status.js';

const NAME = 'boxwright-gateway.release.svc';
const apiVersion = 'boxwright.dev/v1alpha1';
const CHAT = { model: 'scripted', messages: [{ role: 'user', content: '/say hello' }] };

let server: TestApiServer;
let release: string;
let namespace: string;
let ca: string;
const running: RunningGateway[] = [];

interface RunningGateway {
  process: GatewayProcess;
  /** `<verb> <plural>` of every call but watches and lists. */
  calls: string[];
  podName: string;
}

interface RunPod {
  run: string;
  podName: string;
  podUid: string;
  token: string;
}

beforeAll(async () => {
  server = await startApiServer();
  await server.applyCrds();
  release = await server.createNamespace('release');
  namespace = await server.createNamespace('bw');
  const authority = await createCa(Date.now());
  ca = authority.cert;
  const leaf = await issueServerCertificate(authority, [NAME], Date.now());
  const encode = (text: string) => Buffer.from(text).toString('base64');
  await server.api.create(Secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'boxwright-gateway-tls', namespace: release },
    data: { 'tls.crt': encode(leaf.cert), 'tls.key': encode(leaf.key) },
  });
  await server.api.create(ServiceAccounts, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: RUNNER_SERVICE_ACCOUNT, namespace },
  });
  const box = { workspace: 'main', engine: 'scripted' as const };
  await server.api.create(Boxes, {
    apiVersion,
    kind: 'Box',
    metadata: { name: namespace.slice('bw-'.length) },
    spec: BoxSpec.parse(box),
  });
  await server.api.create(Agents, {
    apiVersion,
    kind: 'Agent',
    metadata: { name: 'helper', namespace },
    spec: AgentSpec.parse({ name: 'Helper' }),
  });
});

afterAll(async () => {
  for (const { process } of running) await stop(process);
  await server.stop();
});

async function stop({ groups }: GatewayProcess): Promise<void> {
  for (const { runnables } of groups.toReversed()) await Promise.all(runnables.map((one) => one.stop()));
}

function recordCalls(api: KubeApi, calls: string[]): KubeApi {
  return new Proxy(api, {
    get(target, property: keyof KubeApi) {
      const method = target[property] as (...args: unknown[]) => unknown;
      return (...args: [{ plural: string }, ...unknown[]]) => {
        calls.push(`${property} ${args[0].plural}`);
        return method.apply(target, args);
      };
    },
  });
}

async function startGateway(name: string): Promise<RunningGateway> {
  const pod = await server.api.create(Pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: release,
      labels: { 'app.kubernetes.io/name': 'boxwright', 'app.kubernetes.io/component': 'gateway' },
    },
    spec: { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'none' }] },
  });
  const status = { phase: 'Running' as const, conditions: [{ type: 'Ready', status: 'True' }] };
  await writeStatus(server.api, Pods, { ...pod, status });
  const calls: string[] = [];
  const log = createLogger('gateway', 'error', { write: (line) => void process.stderr.write(line) });
  const gateway = createGatewayProcess({
    config: {
      releaseNamespace: release,
      podName: name,
      podUid: pod.metadata.uid ?? '',
      podIp: '127.0.0.1',
      tlsSecretName: 'boxwright-gateway-tls',
      gatewaySelector: 'app.kubernetes.io/name=boxwright,app.kubernetes.io/component=gateway',
      modelBaseUrls: {},
      clusterCidrs: [],
      maxFinishedRuns: 50_000,
      modelPricesConfigMap: 'boxwright-model-prices',
      port: 0,
      internalPort: 0,
    },
    api: recordCalls(server.api, calls),
    informer: (options) => createInformer(server.transport, options, { clock: systemClock, log }),
    clock: systemClock,
    registry: createRegistry(name),
    log,
  });
  for (const { runnables } of gateway.groups) {
    await Promise.all(runnables.map(async (one) => one.start(new AbortController().signal)));
  }
  expect(gateway.problems()).toEqual([]);
  calls.length = 0;
  const started = { process: gateway, calls, podName: name };
  running.push(started);
  return started;
}

async function addRun(name: string, message = '/say hello'): Promise<RunPod> {
  const run = await server.api.create(AgentRuns, {
    apiVersion,
    kind: 'AgentRun',
    metadata: { name, namespace },
    spec: { agent: 'helper', message },
  });
  const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'none' }] } };
  const job = await server.api.create(Jobs, {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name,
      namespace,
      labels: { [LABEL_RUN]: name },
      ownerReferences: [controllerReference(AgentRuns, run)],
    },
    spec: { template },
  });
  return addPod(job, 'a');
}

/** A pod of the run's Job. */
async function addPod(job: Job, suffix: string): Promise<RunPod> {
  const run = job.metadata.name;
  const pod = await server.api.create(Pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${run}-${suffix}`,
      namespace,
      labels: { [LABEL_RUN]: run },
      ownerReferences: [controllerReference(Jobs, job)],
    },
    spec: {
      serviceAccountName: RUNNER_SERVICE_ACCOUNT,
      automountServiceAccountToken: false,
      containers: [{ name: 'c', image: 'none' }],
    },
  });
  const { name: podName, uid: podUid = '' } = pod.metadata;
  return { run, podName, podUid, token: await podToken(server.transport, pod) };
}

function call(on: RunningGateway, pod: RunPod, name: 'claim' | 'events' | 'finish', body: unknown) {
  return post(on, runPath(namespace, pod.run, name), pod.token, body);
}

function post(on: RunningGateway, path: string, token: string, body: unknown) {
  return httpsPost({ port: on.process.server.port, path, serverName: NAME, ca, token, body });
}

function claim(on: RunningGateway, pod: RunPod) {
  return call(on, pod, 'claim', { protocol: 1, podUid: pod.podUid });
}

/** The gateway may not have seen the new pod yet; then it asks the API server itself. */
function readRun(name: string): Promise<AgentRun> {
  return server.api.get(AgentRuns, { namespace, name });
}

test('a short run: claim, model call, heartbeat, finish cost two status writes and one chunk', async () => {
  const gateway = await startGateway('gateway-a');
  const pod = await addRun('helper-short');
  await eventuallyCached(gateway, pod);
  gateway.calls.length = 0;

  const claimed = await claim(gateway, pod);
  const answered = await post(gateway, '/gateway/boxwright/v1/chat/completions', pod.token, CHAT);
  const beat = await call(gateway, pod, 'events', { epoch: 1, events: [] });
  const events = [userMessage(1, '/say hello'), assistantMessage(2, 'hello')];
  const outcome = { reason: 'Completed', message: '', output: 'hello' };
  const finished = await call(gateway, pod, 'finish', { epoch: 1, events, outcome });

  expect([claimed, answered, beat, finished].map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(gateway.calls).toEqual(['patch agentruns', 'create agentrunchunks', 'patch agentruns']);
  const run = await readRun('helper-short');
  expect(run.spec.message).toBe('/say hello');
  expect(run.status).toMatchObject({
    phase: 'done',
    reason: 'Completed',
    output: 'hello',
    usage: { steps: 1, costUsd: '0.000000' },
    usageFinal: true,
    transcript: { state: 'full', chunks: 1, messages: 2 },
  });
  expect(await readTranscript(server.api, run)).toEqual({ events, state: 'full' });
  expect((await call(gateway, pod, 'finish', { epoch: 1, events, outcome })).json).toEqual({ phase: 'done' });
});

test('a transcript that makes room while two gateway pods write it keeps every event once', async () => {
  const run = await server.api.create(AgentRuns, {
    apiVersion,
    kind: 'AgentRun',
    metadata: { name: 'helper-long', namespace },
    spec: { agent: 'helper', message: '/say hello' },
  });
  const owner = ownerOf(run);
  const events = Array.from({ length: 60 }, (_, i) => toolEvent(i + 1));
  const write = async (size: number) => {
    const log = new TranscriptLog(server.api, owner);
    for (let i = 0; i < events.length; i += size) await log.append(events.slice(i, i + size));
  };
  await Promise.all([write(1), write(2)]);

  const loaded = await TranscriptLog.load(server.api, owner, false);
  expect(loaded.summary).toMatchObject({ state: 'full', chunks: 22 });
  const chunks = await readFrom(server.api, owner, 0);
  const transcript = await collect(
    chunks.map(({ spec }) => spec),
    'full',
  );
  expect(transcript).toEqual({ events, state: 'full' });
});

/** A first call that is refused for its content fills the token cache when the watches have brought the pod. */
async function eventuallyCached(gateway: RunningGateway, pod: RunPod): Promise<void> {
  await eventually(async () => {
    gateway.calls.length = 0;
    await call(gateway, pod, 'claim', { protocol: 1, podUid: 'not-this-one' });
    return !gateway.calls.some((one) => one.startsWith('get'));
  }, 'the watches never brought the pod, its Job and its run');
}

test('a token for another audience, of another pod, or of a deleted pod is refused', async () => {
  const gateway = await startGateway('gateway-b');
  const pod = await addRun('helper-token');
  const other = await addRun('helper-token-2');

  const wrongAudience = await claim(gateway, {
    ...pod,
    token: await podToken(server.transport, { metadata: { namespace, name: pod.podName, uid: pod.podUid } }, 'vault'),
  });
  const otherRun = await claim(gateway, { ...pod, token: other.token });
  const forged = await claim(gateway, { ...pod, token: `${pod.token.slice(0, -8)}AAAAAAAA` });
  await server.api.delete(Pods, { namespace, name: pod.podName }, { gracePeriodSeconds: 0 });
  const gone = await eventually401(gateway, pod);

  expect([wrongAudience.status, otherRun.status, forged.status, gone]).toEqual([401, 403, 401, 401]);
  expect((await readRun('helper-token')).status?.claim).toBeUndefined();
});

async function eventually401(gateway: RunningGateway, pod: RunPod): Promise<number> {
  let status = 0;
  await eventually(async () => {
    status = (await call(gateway, pod, 'claim', { protocol: 1, podUid: 'not-this-one' })).status;
    return status === 401;
  }, 'the token of a deleted pod is still accepted');
  return status;
}

test('a second pod of the same Job claims in vain, and cannot report; the first one goes on', async () => {
  const gateway = await startGateway('gateway-f');
  const first = await addRun('helper-twice');
  const job = await server.api.get(Jobs, { namespace, name: 'helper-twice' });
  const second = await addPod(job, 'b');
  const claimed = await claim(gateway, first);
  const report = { epoch: 1, events: [userMessage(1, 'hello')] };
  const outcome = { reason: 'Completed', message: '', output: 'second' };

  const refused = [
    await claim(gateway, second),
    await call(gateway, second, 'events', report),
    await call(gateway, second, 'finish', { ...report, outcome }),
    await post(gateway, '/gateway/boxwright/v1/chat/completions', second.token, CHAT),
  ];

  expect(refused.map(({ status }) => status)).toEqual([409, 409, 409, 409]);
  expect((await claim(gateway, first)).json).toEqual(claimed.json);
  expect((await call(gateway, first, 'events', report)).json).toMatchObject({ ack: 1 });
  expect((await call(gateway, first, 'events', report)).json).toMatchObject({ ack: 1 });
  const run = await readRun('helper-twice');
  expect(run.status).toMatchObject({ phase: 'running', claim: { podUid: first.podUid } });
});

test('two gateways: the second names the first, and takes over when its pod is gone', async () => {
  const [one, two] = [await startGateway('gateway-c'), await startGateway('gateway-d')];
  const pod = await addRun('helper-pin');
  expect((await claim(one, pod)).status).toBe(200);
  await call(one, pod, 'events', { epoch: 1, events: [userMessage(1, 'hello')] });
  await eventually(async () => (await call(two, pod, 'events', { epoch: 1, events: [] })).status === 421, 'never 421');

  await server.api.delete(Pods, { namespace: release, name: one.podName }, { gracePeriodSeconds: 0 });
  const events = [userMessage(1, 'hello'), toolEvent(2)];
  await eventually(
    async () => (await call(two, pod, 'events', { epoch: 1, events })).status === 200,
    'the second gateway did not take over',
  );

  const run = await readRun('helper-pin');
  expect(run.status?.claim).toMatchObject({ podUid: pod.podUid, gatewayPod: 'gateway-d', epoch: 2 });
  expect((await readTranscript(server.api, run)).events).toEqual(events);
});

test('a writer in between costs a conflict and nothing else', async () => {
  const gateway = await startGateway('gateway-e');
  const pod = await addRun('helper-conflict');
  await claim(gateway, pod);
  // Not waiting for the watch: the gateway does not know this version.
  await server.api.patch(
    AgentRuns,
    { namespace, name: 'helper-conflict' },
    { spec: { cancelRequested: true } },
    { type: 'merge' },
  );

  const outcome = { reason: 'Cancelled', message: '', output: null };
  expect((await call(gateway, pod, 'finish', { epoch: 1, events: [], outcome })).json).toEqual({ phase: 'cancelled' });
  expect((await readRun('helper-conflict')).status).toMatchObject({ phase: 'cancelled', reason: 'Cancelled' });
});

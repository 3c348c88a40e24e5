/** The network probe of a Box, reconcile by reconcile, on an API in memory that tells of every write. */
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { apiError, RecordingApi } from '../../../test/builders/recording-api.js';
import { makeBox, makeWorkspace } from '../../../test/builders/run-objects.js';
import { findCondition } from '../../api/conditions.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import { Workspaces } from '../../api/v1alpha1/workspace.js';
import { Events, Jobs, NetworkPolicies, Pods } from '../../kube/core-types.js';
import type { Job } from '../../kube/core-types.js';
import { createLogger } from '../../observability/logger.js';
import { createBoxController } from './controller.js';
import type { ProbeSettings } from './probe-job.js';
import { controllerEvalInformer } from '../../projections/agent-eval.js';
import { controllerMemoryInformer } from '../../projections/agent-memory.js';
import { controllerScheduleInformer } from '../../projections/agent-schedule.js';
import { controllerSkillInformer } from '../../projections/agent-skill.js';
import { controllerTriggerInformer } from '../../projections/agent-trigger.js';
import { controllerAgentInformer } from '../../projections/agent.js';
import { controllerBoxInformer } from '../../projections/box.js';
import { controllerJobInformer, probeJobInformer } from '../../projections/job.js';
import {
  limitRangeInformer,
  namespaceInformer,
  networkPolicyInformer,
  resourceQuotaInformer,
  roleBindingInformer,
  serviceAccountInformer,
} from '../../projections/managed-objects.js';
import { controllerPodInformer } from '../../projections/pod.js';
import { controllerWorkspaceInformer } from '../../projections/workspace.js';
import { controllerRunInformer } from '../../projections/agent-run.js';

const JOB = 'bw-dev/boxwright-network-probe';
const SIGNAL = new AbortController().signal;
const MINUTE = 60_000;
const DAY = 86_400_000;
const SETTINGS: ProbeSettings = {
  image: 'boxwright:1',
  imagePullPolicy: 'Never',
  targets: [
    { name: 'gateway', host: '10.96.0.7', port: 8443 },
    { name: 'api', host: '10.96.0.8', port: 80 },
  ],
};
const PROBING = 'a pod is trying what the network lets pass; this takes a minute at most';

/** A Box on a store of its own; `controller()` is a controller that has just started. */
function setUp(egress: object = {}) {
  const clock = new FakeClock();
  const api = new RecordingApi({ clock });
  api.seed(Workspaces, makeWorkspace());
  const { status: _status, ...box } = makeBox({ egress });
  api.seed(Boxes, box);
  const caches = {
    boxes: api.informer(controllerBoxInformer),
    workspaces: api.informer(controllerWorkspaceInformer),
    agents: api.informer(controllerAgentInformer),
    triggers: api.informer(controllerTriggerInformer),
    schedules: api.informer(controllerScheduleInformer),
    evals: api.informer(controllerEvalInformer),
    skills: api.informer(controllerSkillInformer),
    memories: api.informer(controllerMemoryInformer),
    runs: api.informer(controllerRunInformer),
    namespaces: api.informer(namespaceInformer),
    serviceAccounts: api.informer(serviceAccountInformer),
    networkPolicies: api.informer(networkPolicyInformer),
    resourceQuotas: api.informer(resourceQuotaInformer),
    limitRanges: api.informer(limitRangeInformer),
    roleBindings: api.informer(roleBindingInformer),
    probeJobs: api.informer(probeJobInformer),
  };
  let settings: ProbeSettings | Error = SETTINGS;
  const controller = () =>
    createBoxController({
      api,
      clock,
      log: createLogger('test', 'error'),
      caches,
      counts: { running: () => 0, queued: () => 0, onChange: () => () => undefined },
      network: { gateway: { namespace: 'rel', podLabels: { app: 'gateway' } }, clusterCidrs: [] },
      imagePullSecrets: [],
      probeSettings: () => (settings instanceof Error ? Promise.reject(settings) : Promise.resolve(settings)),
    });
  let part = controller();
  const condition = (type: string) => {
    const found = findCondition(api.peek(Boxes, 'dev')?.status?.conditions, type);
    return { status: found?.status, reason: found?.reason, message: found?.message };
  };
  return {
    api,
    clock,
    reconcile: () => part.reconcile('dev', SIGNAL),
    restart: () => {
      part = controller();
    },
    setSettings: (next: ProbeSettings | Error) => {
      settings = next;
    },
    changeBox: (spec: object) => api.patch(Boxes, { name: 'dev' }, { spec }, { type: 'merge' }),
    box: () => api.peek(Boxes, 'dev') as Box,
    job: () => api.peek(Jobs, JOB),
    ready: () => condition('Ready'),
    enforced: () => condition('NetworkEnforced'),
    /** Writes since the last call, as `verb resource`; the ones of the namespace's furniture are left out. */
    writes: () => {
      const lines = api.writes.map(({ verb, resource }) => `${verb} ${resource}`);
      api.clearRecords();
      return lines.filter((line) => /jobs|boxes\/status/.test(line));
    },
    /** Plays kubelet and Job controller: the probe's pod ends with these targets reached. */
    endProbe: async (...reachable: string[]) => {
      const job = api.peek(Jobs, JOB);
      const targets = ['gateway', 'api', 'kubernetes'].map((name) => ({ name, reachable: reachable.includes(name) }));
      const ended = { terminated: { exitCode: 0, message: JSON.stringify({ targets }) } };
      api.seed(Pods, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: `probe-${job?.metadata.uid}`,
          namespace: 'bw-dev',
          labels: { ...job?.spec.template.metadata?.labels },
          ownerReferences: [
            { apiVersion: 'batch/v1', kind: 'Job', name: 'x', uid: job?.metadata.uid ?? '', controller: true },
          ],
        },
        spec: {},
        status: { containerStatuses: [{ name: 'network-probe', state: ended }] },
      });
      await endJob(api, 'Complete');
    },
    endJob: (type: 'Complete' | 'Failed') => endJob(api, type),
  };
}

async function endJob(api: RecordingApi, type: 'Complete' | 'Failed'): Promise<void> {
  const [namespace = '', name = ''] = JOB.split('/');
  const body = { status: { conditions: [{ type, status: 'True' }] } };
  await api.patch(Jobs, { namespace, name }, body, { type: 'merge', subresource: 'status' });
  api.clearRecords();
}

describe('a new Box', () => {
  test('gets its policies first, then one probe, and is not Ready meanwhile', async () => {
    const { api, reconcile, writes, ready, enforced, job } = setUp();
    await reconcile();
    const created = api.writes.filter(({ verb }) => verb === 'create').map(({ resource }) => resource);
    expect(created.indexOf('jobs')).toBe(created.length - 1);
    expect(api.all(NetworkPolicies)).toHaveLength(2);
    expect(writes()).toEqual(['create jobs', 'patch boxes/status']);
    expect(ready()).toEqual({ status: 'False', reason: 'NetworkProbing', message: PROBING });
    expect(enforced()).toEqual({ status: 'Unknown', reason: 'NetworkProbing', message: PROBING });
    expect(job()?.metadata).toMatchObject({ name: 'boxwright-network-probe', namespace: 'bw-dev' });
    expect(await reconcile()).toEqual({ requeueAfterMs: 5 * MINUTE });
    expect(writes()).toEqual([]);
  });

  test('is Ready when the network enforces the policies; the Job goes, and nothing is written for a day', async () => {
    const { api, clock, reconcile, endProbe, writes, ready, enforced, box, job } = setUp();
    await reconcile();
    await endProbe('gateway');
    await reconcile();
    expect(writes()).toEqual(['patch boxes/status']);
    expect(ready()).toEqual({ status: 'True', reason: 'Ready', message: '' });
    expect(enforced()).toMatchObject({ status: 'True', reason: 'Enforced' });
    expect(box().status?.networkProbe).toMatchObject({ result: 'Enforced', probedAt: '2026-01-01T00:00:00.000Z' });
    await reconcile();
    expect(writes()).toEqual(['delete jobs']);
    expect(job()).toBeUndefined();
    await clock.advance(DAY - 1);
    expect(await reconcile()).toEqual({ requeueAfterMs: 1 });
    expect(api.writes).toEqual([]);
    expect(api.reads).toEqual([]);
  });

  test('is not Ready on a network that enforces nothing, and tries again every five minutes', async () => {
    const { api, clock, reconcile, endProbe, writes, ready, enforced } = setUp();
    await reconcile();
    await endProbe('gateway', 'api', 'kubernetes');
    await reconcile();
    expect(ready()).toMatchObject({ status: 'False', reason: 'NetworkNotEnforced' });
    expect(enforced()).toMatchObject({ status: 'False', reason: 'NetworkNotEnforced' });
    expect(ready().message).toContain('set spec.egress.requireEnforcement: false');
    await reconcile();
    expect(await reconcile()).toEqual({ requeueAfterMs: 5 * MINUTE });
    writes();
    await clock.advance(5 * MINUTE);
    await reconcile();
    expect(writes()).toEqual(['create jobs']);
    // The verdict stands until the next one.
    expect(ready()).toMatchObject({ status: 'False', reason: 'NetworkNotEnforced' });
    for (const { metadata } of api.all(Pods)) api.vanish(Pods, `bw-dev/${metadata.name}`);
    await endProbe('gateway');
    await reconcile();
    expect(ready()).toMatchObject({ status: 'True' });
  });

  test('that does not require it is Ready at once, and its condition tells the truth', async () => {
    const { reconcile, endProbe, ready, enforced } = setUp({ requireEnforcement: false });
    await reconcile();
    expect(ready()).toEqual({ status: 'True', reason: 'Ready', message: '' });
    expect(enforced()).toMatchObject({ status: 'Unknown', reason: 'NetworkProbing' });
    await endProbe('gateway', 'api', 'kubernetes');
    await reconcile();
    expect(ready()).toEqual({ status: 'True', reason: 'Ready', message: '' });
    expect(enforced()).toMatchObject({ status: 'False', reason: 'NetworkNotEnforced' });
    await reconcile();
    expect(await reconcile()).toEqual({ requeueAfterMs: DAY });
  });

  test('waits for an installation whose Services are not there, and says so', async () => {
    const { reconcile, setSettings, writes, ready } = setUp();
    setSettings(new Error('Service rel/boxwright-api has no cluster IP'));
    expect(await reconcile()).toEqual({ requeueAfterMs: 15_000 });
    const message = 'the probe of the network cannot start: Service rel/boxwright-api has no cluster IP';
    expect(ready()).toEqual({ status: 'False', reason: 'NetworkProbing', message });
    expect(writes()).toEqual(['patch boxes/status']);
    setSettings(SETTINGS);
    await reconcile();
    expect(writes()).toEqual(['create jobs', 'patch boxes/status']);
  });
});

describe('a Box whose network was found to enforce', () => {
  async function good() {
    const world = setUp();
    await world.reconcile();
    await world.endProbe('gateway');
    const probed = world.job()?.metadata.annotations;
    await world.reconcile();
    await world.reconcile();
    world.writes();
    return { ...world, probed };
  }

  test('keeps its verdict over a restart of the controller', async () => {
    const world = await good();
    world.restart();
    expect(await world.reconcile()).toEqual({ requeueAfterMs: DAY });
    expect(world.writes()).toEqual([]);
  });

  test('is probed again after a day without losing its verdict, also when that probe fails', async () => {
    const { clock, reconcile, writes, endJob: end, ready, box, enforced } = await good();
    await clock.advance(DAY);
    await reconcile();
    expect(writes()).toEqual(['create jobs']);
    expect(ready()).toMatchObject({ status: 'True' });
    await end('Failed');
    await reconcile();
    expect(box().status?.networkProbe?.result).toBe('ProbeFailed');
    expect(enforced()).toMatchObject({ status: 'True', reason: 'Enforced' });
    expect(ready()).toMatchObject({ status: 'True' });
    // The Job stays for whoever asks why, until it is tried again.
    writes();
    expect(await reconcile()).toEqual({ requeueAfterMs: 5 * MINUTE });
    expect(writes()).toEqual([]);
    await clock.advance(5 * MINUTE);
    await reconcile();
    await reconcile();
    expect(writes()).toEqual(['delete jobs', 'create jobs']);
  });

  test('has to prove it again when its policies change, and when they change back', async () => {
    const { changeBox, reconcile, writes, ready, job, endProbe, probed } = await good();
    await changeBox({ egress: { mode: 'internet' } });
    writes();
    await reconcile();
    expect(writes()).toEqual(['create jobs', 'patch boxes/status']);
    expect(ready()).toMatchObject({ status: 'False', reason: 'NetworkProbing' });
    expect(job()?.metadata.annotations).not.toEqual(probed);
    await changeBox({ egress: { mode: 'none' } });
    await reconcile();
    await reconcile();
    expect(job()?.metadata.annotations).toEqual(probed);
    expect(ready()).toMatchObject({ status: 'False', reason: 'NetworkProbing' });
    await endProbe('gateway');
    await reconcile();
    expect(ready()).toMatchObject({ status: 'True' });
  });

  test('has to prove it again when the installation got other addresses', async () => {
    const { setSettings, reconcile, writes, ready } = await good();
    setSettings({ ...SETTINGS, targets: [{ name: 'gateway', host: '10.96.9.9', port: 8443 }] });
    await reconcile();
    expect(writes()).toEqual(['create jobs', 'patch boxes/status']);
    expect(ready()).toMatchObject({ status: 'False', reason: 'NetworkProbing' });
  });

  test('keeps its verdict with another image, or while the Services cannot be read', async () => {
    const { setSettings, reconcile, writes } = await good();
    setSettings({ ...SETTINGS, image: 'boxwright:2' });
    await reconcile();
    setSettings(new Error('away'));
    await reconcile();
    expect(writes()).toEqual([]);
  });

  test('lets runs wait when the gateway is found unreachable later: they would only time out', async () => {
    const { api, clock, reconcile, endProbe, ready } = await good();
    await clock.advance(DAY);
    await reconcile();
    for (const { metadata } of api.all(Pods)) api.vanish(Pods, `bw-dev/${metadata.name}`);
    await endProbe();
    await reconcile();
    expect(ready()).toMatchObject({ status: 'False', reason: 'GatewayUnreachable' });
  });
});

test('the report of the pod of another Job is not taken for this one', async () => {
  const { api, clock, reconcile, endProbe, endJob: end, enforced } = setUp();
  await reconcile();
  await endProbe('gateway', 'api', 'kubernetes');
  await reconcile();
  await reconcile();
  await clock.advance(5 * MINUTE);
  await reconcile();
  // The pod of the first Job is still there; the second one never got a pod.
  expect(api.all(Pods)).toHaveLength(1);
  await end('Failed');
  await reconcile();
  // Nothing was learned: the first verdict stands.
  expect(enforced()).toMatchObject({ status: 'False', reason: 'NetworkNotEnforced' });
});

test('a Job that the cache does not show yet is not made twice', async () => {
  const { api, reconcile, writes } = setUp();
  api.failNext({ verb: 'create', resource: 'jobs', error: apiError(409, 'AlreadyExists') });
  expect(await reconcile()).toEqual({ requeueAfterMs: 30_000 });
  expect(writes()).toEqual(['create jobs', 'patch boxes/status']);
});

describe.each([
  ['with its label, of a run', { 'boxwright.dev/network-probe': 'true' }],
  ['without its label', {}],
])("a Job of the probe's name %s", (_what, labels) => {
  const foreign: Job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: 'boxwright-network-probe',
      namespace: 'bw-dev',
      labels,
      annotations: { 'boxwright.dev/probed': 'x' },
      ownerReferences: [
        { apiVersion: 'boxwright.dev/v1alpha1', kind: 'AgentRun', name: 'x', uid: 'r', controller: true },
      ],
    },
    spec: { template: { spec: {} } },
    status: { conditions: [{ type: 'Complete', status: 'True' }] },
  };

  test('is reported, stays, and counts for nothing; the probe starts when it is gone', async () => {
    const { api, reconcile, writes, enforced, ready, endProbe } = setUp();
    api.seed(Jobs, foreign);
    for (let i = 0; i < 2; i++) expect(await reconcile()).toEqual({ requeueAfterMs: MINUTE / 2 });
    expect(writes().filter((line) => line !== 'create jobs')).toEqual(['patch boxes/status']);
    expect(enforced()).toMatchObject({ status: 'Unknown', reason: 'ProbeNameTaken' });
    expect(enforced().message).toContain('kubectl delete job -n bw-dev boxwright-network-probe');
    expect(ready()).toMatchObject({ status: 'False', reason: 'ProbeNameTaken' });
    await api.delete(Jobs, { namespace: 'bw-dev', name: 'boxwright-network-probe' });
    await reconcile();
    expect(enforced()).toMatchObject({ reason: 'NetworkProbing' });
    await endProbe('gateway');
    await reconcile();
    expect(enforced()).toMatchObject({ status: 'True', reason: 'Enforced' });
  });
});

test.each([
  [{}, true],
  [{ lastTimestamp: '2025-12-31T23:59:00Z' }, false],
  [{ involvedObject: { kind: 'Pod', name: 'ada-1-x' } }, false],
])('a probe without a report says which pull secret was missing: event %j, %s', async (changes, isSaid) => {
  const { api, reconcile, endJob, enforced } = setUp();
  await reconcile();
  api.seed(Events, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'e', namespace: 'bw-dev' },
    involvedObject: { kind: 'Pod', name: 'boxwright-network-probe-x7k2p' },
    type: 'Warning',
    reason: 'FailedToRetrieveImagePullSecret',
    message: 'Unable to retrieve some image pull secrets (registry)',
    lastTimestamp: '2026-01-01T00:01:00Z',
    ...changes,
  });
  await endJob('Failed');
  await reconcile();
  expect(enforced()).toMatchObject({ status: 'Unknown', reason: 'ProbeFailed' });
  expect(enforced().message?.includes('image pull secrets (registry)')).toBe(isSaid);
});

test('the run controller sees neither the Job nor the pod of a probe', async () => {
  const { api, reconcile, endProbe } = setUp();
  await reconcile();
  await endProbe('gateway');
  expect([...api.informer(controllerJobInformer).values()]).toEqual([]);
  expect([...api.informer(controllerPodInformer).values()]).toEqual([]);
});

test('the Job is small, bounded, without rights, and stands under the policies of runs', async () => {
  const { reconcile, job } = setUp();
  await reconcile();
  const labels = {
    'app.kubernetes.io/managed-by': 'boxwright',
    'boxwright.dev/box': 'dev',
    'boxwright.dev/network-probe': 'true',
  };
  const limits = { cpu: '100m', memory: '128Mi', 'ephemeral-storage': '32Mi' };
  expect(job()?.metadata.labels).toEqual(labels);
  expect(job()?.metadata.ownerReferences).toMatchObject([{ kind: 'Box', uid: 'uid-box-dev', controller: true }]);
  expect(job()?.spec).toEqual({
    backoffLimit: 0,
    activeDeadlineSeconds: 180,
    ttlSecondsAfterFinished: 600,
    template: {
      metadata: { labels, annotations: { 'sidecar.istio.io/inject': 'false', 'linkerd.io/inject': 'disabled' } },
      spec: {
        restartPolicy: 'Never',
        serviceAccountName: 'boxwright-runner',
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        terminationGracePeriodSeconds: 1,
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 65532,
          runAsGroup: 65532,
          seccompProfile: { type: 'RuntimeDefault' },
        },
        containers: [
          {
            name: 'network-probe',
            image: 'boxwright:1',
            imagePullPolicy: 'Never',
            args: ['network-probe'],
            env: [
              {
                name: 'BOXWRIGHT_PROBE_TARGETS',
                value:
                  '[{"name":"gateway","host":"10.96.0.7","port":8443},{"name":"api","host":"10.96.0.8","port":80}]',
              },
            ],
            terminationMessagePolicy: 'FallbackToLogsOnError',
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            },
            resources: { requests: limits, limits },
          },
        ],
      },
    },
  });
});

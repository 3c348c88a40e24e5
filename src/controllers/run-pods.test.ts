import { makeBox, makeRun } from '../../test/builders/run-objects.js';
import { buildJob, type JobSettings } from './agent-run/admission/job.js';
import { PROBE_JOB, buildProbeJob } from './box/probe-job.js';
import { RunPods, runPodsSetting } from './run-pods.js';

const pods = RunPods.parse({
  annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false', 'linkerd.io/inject': 'enabled' },
  labels: { team: 'agents', 'app.kubernetes.io/managed-by': 'other' },
  nodeSelector: { pool: 'agents' },
  tolerations: [{ key: 'agents', operator: 'Exists' }],
  nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] },
  priorityClassName: 'low',
});
const settings: JobSettings = {
  runnerImage: 'r',
  toolsImage: 't',
  imagePullPolicy: 'Never',
  gatewayIp: '10.0.0.1',
  gatewayServerName: 'g',
  gatewayCa: 'c',
  pods,
};
const job = (claimName?: string) => buildJob({ run: makeRun('ada-1'), box: makeBox({}, 'dev'), settings, claimName });
const probe = () =>
  buildProbeJob(makeBox({}, 'dev'), { image: 'r', imagePullPolicy: 'Never', targets: [], pods }, PROBE_JOB);

test.each([
  ['a run', job],
  ['a network probe', probe],
])('the pod of %s is placed and marked as the operator says, and our marks stay', (_what, build) => {
  const { metadata, spec } = build().spec.template;
  expect(spec).toMatchObject({
    nodeSelector: { pool: 'agents' },
    tolerations: [{ key: 'agents', operator: 'Exists' }],
    affinity: { nodeAffinity: pods.nodeAffinity },
    priorityClassName: 'low',
  });
  expect(metadata?.labels).toMatchObject({ team: 'agents', 'app.kubernetes.io/managed-by': 'boxwright' });
  expect(metadata?.annotations).toEqual({
    'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
    'sidecar.istio.io/inject': 'false',
    'linkerd.io/inject': 'disabled',
  });
});

test('runs of an agent with a volume still meet on one node', () => {
  const { affinity } = job('ada-workspace').spec.template.spec as { affinity: Record<string, unknown> };
  expect(Object.keys(affinity)).toEqual(['nodeAffinity', 'podAffinity']);
});

test.each(['{', '[]', '{"nodes":1}', '{"labels":{"a":1}}', '{"labels":{"boxwright.dev/run":"x"}}'])(
  'the setting %s is refused',
  (text) => {
    expect(runPodsSetting.safeParse(text).success).toBe(false);
  },
);

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { makeBox, makeRun } from '../../../../test/builders/run-objects.js';
import { buildJob } from './job.js';
import type { JobSettings } from './job.js';

const SETTINGS: JobSettings = {
  runnerImage: 'boxwright-runner:1.2.3',
  toolsImage: 'boxwright-tools:1.2.3',
  imagePullPolicy: 'IfNotPresent',
  gatewayIp: '10.96.0.7',
  gatewayServerName: 'boxwright-gateway.boxwright.svc',
  gatewayCa: '-----BEGIN CERTIFICATE-----\nZm9v\n-----END CERTIFICATE-----\n',
};
const GOLDEN = 'test/golden/run-job.yaml';

interface Container {
  image: string;
  name: string;
  securityContext: Record<string, unknown>;
  resources: { limits: Record<string, string>; requests: Record<string, string> };
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
  env?: { name: string }[];
  restartPolicy?: string;
}

function podOf(box = makeBox(), run = makeRun()) {
  const { spec } = buildJob({ run, box, settings: SETTINGS }).spec.template;
  return spec as unknown as {
    initContainers: Container[];
    containers: Container[];
    volumes: Record<string, unknown>[];
    securityContext: Record<string, unknown>;
  } & Record<string, unknown>;
}

describe('the Job of a run', () => {
  it(`is the object in ${GOLDEN}`, () => {
    const box = makeBox({ runtimeClassName: 'gvisor' });
    const job = buildJob({ run: makeRun(), box, settings: SETTINGS, previousRun: 'ada-0' });
    expect(job).toEqual(parse(readFileSync(GOLDEN, 'utf8')));
  });

  it('contains nothing of the message', () => {
    const run = makeRun('ada-1', { spec: { message: 'the secret plan' } });
    expect(JSON.stringify(buildJob({ run, box: makeBox(), settings: SETTINGS }))).not.toContain('secret plan');
  });

  it('has no TTL: it must be there until the outcome is stored', () => {
    expect(buildJob({ run: makeRun(), box: makeBox(), settings: SETTINGS }).spec).not.toHaveProperty(
      'ttlSecondsAfterFinished',
    );
  });

  it("takes the run's lower execution limit into the outer deadline, and never a higher one", () => {
    const deadline = (executionSeconds: number) =>
      buildJob({
        run: makeRun('ada-1', { spec: { limits: { executionSeconds } } }),
        box: makeBox(),
        settings: SETTINGS,
      }).spec['activeDeadlineSeconds'];
    expect(deadline(60)).toBe(120 + 900 + 300 + 120 + 120 + 60 + 60);
    expect(deadline(80_000)).toBe(120 + 900 + 300 + 120 + 120 + 1800 + 60);
  });

  it('takes the image of the Box for the tools, when it names one, and never for the runner', () => {
    const { initContainers, containers } = podOf(makeBox({ image: 'tools:9' }));
    expect(initContainers.map(({ name, image }) => ({ name, image }))).toEqual([{ name: 'tools', image: 'tools:9' }]);
    expect(containers.map(({ name, image }) => ({ name, image }))).toEqual([
      { name: 'runner', image: SETTINGS.runnerImage },
    ]);
  });

  it('gives each container the memory of its own field', () => {
    const pod = podOf(makeBox({ resources: { memory: '1Gi', runnerMemory: '384Mi' } }));
    expect(pod.initContainers[0]?.resources).toMatchObject({ requests: { memory: '1Gi' }, limits: { memory: '1Gi' } });
    expect(pod.containers[0]?.resources).toMatchObject({ requests: { memory: '384Mi' }, limits: { memory: '384Mi' } });
  });

  it('asks for no more CPU than a small Box allows', () => {
    const [tools] = podOf(makeBox({ resources: { cpu: '50m' } })).initContainers;
    expect(tools?.resources).toMatchObject({ requests: { cpu: '50m' }, limits: { cpu: '50m' } });
  });

  it('writes an IPv6 address of the gateway in brackets', () => {
    const job = buildJob({ run: makeRun(), box: makeBox(), settings: { ...SETTINGS, gatewayIp: 'fd00::7' } });
    expect(JSON.stringify(job)).toContain('https://[fd00::7]:8443');
  });
});

describe('the files of an agent', () => {
  const withClaim = buildJob({ run: makeRun(), box: makeBox(), settings: SETTINGS, claimName: 'ada-workspace' });
  const pod = withClaim.spec.template.spec as unknown as ReturnType<typeof podOf>;

  it('are on its volume claim, which tools alone mounts', () => {
    expect(pod.volumes).toContainEqual({
      name: 'workspace',
      persistentVolumeClaim: { claimName: 'ada-workspace' },
    });
    const mounting = [...pod.initContainers, ...pod.containers].filter(({ volumeMounts }) =>
      volumeMounts.some(({ name }) => name === 'workspace'),
    );
    expect(mounting.map(({ name }) => name)).toEqual(['tools']);
  });

  it('are given to the group of both containers without a walk through all of them', () => {
    expect(pod.securityContext).toMatchObject({ fsGroup: 65532, fsGroupChangePolicy: 'OnRootMismatch' });
    for (const { securityContext } of [...pod.initContainers, ...pod.containers]) {
      expect(securityContext['runAsGroup']).toBe(65532);
    }
  });

  it('bring runs that work at once to the same node; runs without a claim go anywhere', () => {
    expect(pod['affinity']).toEqual({
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { labelSelector: { matchLabels: { 'boxwright.dev/agent': 'ada' } }, topologyKey: 'kubernetes.io/hostname' },
        ],
      },
    });
    expect(withClaim.spec.template.metadata?.labels).toMatchObject({ 'boxwright.dev/agent': 'ada' });
    expect(podOf()).not.toHaveProperty('affinity');
  });
});

describe('the pod of a run', () => {
  const pod = podOf();
  const all = [...pod.initContainers, ...pod.containers];

  it('is admitted by the Pod Security level restricted', () => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    for (const { securityContext } of all) {
      expect(securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        runAsNonRoot: true,
        capabilities: { drop: ['ALL'] },
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(securityContext).not.toHaveProperty('privileged');
    }
    expect(pod.volumes.flatMap((volume) => Object.keys(volume).filter((key) => key !== 'name'))).toEqual(
      expect.not.arrayContaining(['hostPath', 'configMap', 'secret']),
    );
    for (const host of ['hostNetwork', 'hostPID', 'hostIPC']) expect(pod).not.toHaveProperty(host);
  });

  it('gives each container its own user, a read-only root and limits of memory, CPU and disk', () => {
    expect(all.map(({ name, securityContext }) => [name, securityContext['runAsUser']])).toEqual([
      ['tools', 65533],
      ['runner', 65532],
    ]);
    for (const { securityContext, resources } of all) {
      expect(securityContext['readOnlyRootFilesystem']).toBe(true);
      expect(Object.keys(resources.limits).sort()).toEqual(['cpu', 'ephemeral-storage', 'memory']);
    }
  });

  it('shows the run token, the journal and the gateway to runner only', () => {
    const [tools] = pod.initContainers;
    expect(tools?.restartPolicy).toBe('Always');
    expect(tools?.env).toBeUndefined();
    expect(tools?.volumeMounts.map(({ name }) => name)).toEqual(['workspace', 'socket', 'home', 'tools-tmp']);
  });

  it('lets runner write to nothing that tools can write to', () => {
    const [tools] = pod.initContainers;
    const [runner] = pod.containers;
    const writableByTools = tools?.volumeMounts.filter(({ readOnly }) => readOnly !== true).map(({ name }) => name);
    const shared = runner?.volumeMounts.filter(({ name }) => writableByTools?.includes(name));
    expect(shared).toEqual([{ name: 'socket', mountPath: '/var/run/boxwright/tools', readOnly: true }]);
  });

  it('reserves its memory in full, half of its disk and little CPU', () => {
    const [tools] = podOf(makeBox({ resources: { ephemeralStorage: '3Gi' } })).initContainers;
    expect(tools?.resources).toEqual({
      requests: { memory: '512Mi', cpu: '100m', 'ephemeral-storage': '1.5Gi' },
      limits: { memory: '512Mi', cpu: '1', 'ephemeral-storage': '3Gi' },
    });
  });

  it('bounds every scratch directory', () => {
    const sizes = pod.volumes.flatMap((volume) =>
      'emptyDir' in volume ? [[volume['name'], (volume['emptyDir'] as { sizeLimit?: string }).sizeLimit]] : [],
    );
    expect(Object.fromEntries(sizes)).toEqual({
      journal: '64Mi',
      socket: '1Mi',
      workspace: '2Gi',
      home: '2Gi',
      'tools-tmp': '2Gi',
      'runner-tmp': '64Mi',
    });
  });

  it('runs once: no retry, no second pod beside the first, and any bad exit of runner fails the Job', () => {
    const { spec } = buildJob({ run: makeRun(), box: makeBox(), settings: SETTINGS });
    expect(spec).toMatchObject({
      backoffLimit: 0,
      podReplacementPolicy: 'Failed',
      podFailurePolicy: {
        rules: [{ action: 'FailJob', onExitCodes: { containerName: 'runner', operator: 'NotIn', values: [0] } }],
      },
    });
    expect(pod).toMatchObject({ restartPolicy: 'Never', terminationGracePeriodSeconds: 30 });
  });

  it('has users of its own where that was decided', () => {
    const job = buildJob({ run: makeRun(), box: makeBox(), settings: SETTINGS, hostUsers: false });
    expect(job.spec.template.spec['hostUsers']).toBe(false);
    expect(pod).not.toHaveProperty('hostUsers');
  });

  it('mounts no token of the Kubernetes API', () => {
    expect(pod).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
  });
});

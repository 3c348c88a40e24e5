/**
 * AgentRun + Box + settings of the installation -> the Job of the same name. Pure. The run's input is
 * not in it: the runner fetches it when it claims the run, so no prompt shows up in `kubectl describe`.
 */
import { renderGrant, type AdmittedGrant } from '../../../run/usage/budget.js';
import {
  ANNOTATION_BUDGET,
  ANNOTATION_PREVIOUS_RUN,
  LABEL_AGENT,
  LABEL_BOX,
  LABEL_MANAGED_BY,
  LABEL_RUN,
  MANAGED_BY,
  RUNNER_SERVICE_ACCOUNT,
  RUN_TOKEN_AUDIENCE,
} from '../../../api/labels.js';
import { AgentRuns } from '../../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../../api/v1alpha1/agent-run.js';
import type { Box } from '../../../api/v1alpha1/box.js';
import { Jobs } from '../../../kube/core-types.js';
import type { Job } from '../../../kube/core-types.js';
import { apiVersionOf, controllerReference } from '../../../kube/owner-references.js';
import {
  GATEWAY_PORT,
  HOME_DIR,
  JOURNAL_DIR,
  POD_GID,
  RUNNER_CONTAINER,
  RUNNER_ENV,
  RUNNER_UID,
  SOCKET_DIR,
  TOKEN_DIR,
  TOOLS_CONTAINER,
  TOOLS_UID,
  WORKSPACE_DIR,
} from '../../../protocol/pod.js';
import { renderSurroundings, type Surroundings } from '../../../protocol/surroundings.js';
import { formatMicroUsd } from '../../../run/usage/money.js';
import { parseQuantity } from '../../common/quantity.js';
import { podMetadata, podPlacement, type RunPods } from '../../run-pods.js';
import { executionSecondsOf } from '../execution/execution-limit.js';

/** A finished Job stays readable (kubectl logs) for this long after the outcome is stored. */
export const TTL_SECONDS_AFTER_FINISHED = 600;
/** Kueue manages Jobs that carry it. */
const LABEL_KUEUE_QUEUE = 'kueue.x-k8s.io/queue-name';
const GRACE_SECONDS = 30;
/** The kubelet refuses less. */
const TOKEN_SECONDS = 600;

/** What is the same for all Jobs of an installation. */
export interface JobSettings {
  runnerImage: string;
  /** Unless the Box names another. */
  toolsImage: string;
  imagePullPolicy: string;
  /** What the operator gives all pods besides. */
  pods?: RunPods | undefined;
  /** ClusterIP of the gateway's Service: a run pod needs no DNS to reach it. */
  gatewayIp: string;
  /** Name in the gateway's certificate: `<service>.<namespace>.svc`. */
  gatewayServerName: string;
  /** PEM bundle of our CA. */
  gatewayCa: string;
}

export interface JobInput {
  run: AgentRun;
  box: Box;
  settings: JobSettings;
  /** The latest run of the same session. */
  previousRun?: string | undefined;
  /** What the budgets leave to the run. */
  grant?: AdmittedGrant | undefined;
  /** The volume claim of the agent; without one its files go with the pod. */
  claimName?: string | undefined;
  /** Of the pod. */
  hostUsers?: false | undefined;
}

export function buildJob(input: JobInput): Job {
  const { run, box, previousRun, grant } = input;
  const labels = {
    [LABEL_MANAGED_BY]: MANAGED_BY,
    [LABEL_RUN]: run.metadata.name,
    [LABEL_AGENT]: run.spec.agent,
    [LABEL_BOX]: box.metadata.name,
  };
  const queue = box.spec.kueueQueueName;
  return {
    apiVersion: apiVersionOf(Jobs),
    kind: Jobs.kind,
    metadata: {
      name: run.metadata.name,
      namespace: run.metadata.namespace ?? '',
      labels: queue === undefined ? labels : { ...labels, [LABEL_KUEUE_QUEUE]: queue },
      ...annotations(previousRun, grant),
      ownerReferences: [{ ...controllerReference(AgentRuns, run), blockOwnerDeletion: true }],
    },
    spec: {
      // Kueue starts the Job when its queue has room.
      ...(queue === undefined ? {} : { suspend: true }),
      // The Job never repeats a run, whatever happens to its pod: what is retried, and when, is decided by src/run/retry.ts.
      backoffLimit: 0,
      podReplacementPolicy: 'Failed',
      podFailurePolicy: {
        // A stopped sidecar exits non-zero as well, so the rule names the container.
        rules: [
          { action: 'FailJob', onExitCodes: { containerName: RUNNER_CONTAINER, operator: 'NotIn', values: [0] } },
        ],
      },
      activeDeadlineSeconds: outerDeadlineSeconds(run, box),
      template: {
        metadata: podMetadata(labels, input.settings.pods),
        spec: podSpec(input),
      },
    },
  };
}

function annotations(
  previousRun: string | undefined,
  grant: AdmittedGrant | undefined,
): { annotations?: Record<string, string> } {
  if (previousRun === undefined && grant === undefined) return {};
  return {
    annotations: {
      ...(previousRun === undefined ? {} : { [ANNOTATION_PREVIOUS_RUN]: previousRun }),
      ...(grant === undefined ? {} : { [ANNOTATION_BUDGET]: renderGrant(grant) }),
    },
  };
}

/** The Job's own deadline is the sum of all others and only a backstop: the controller ends a run before it. */
function outerDeadlineSeconds(run: AgentRun, box: Box): number {
  const bounds = box.spec.bounds;
  return (
    bounds.podCreatedSeconds +
    bounds.unschedulableSeconds +
    bounds.imagePullSeconds +
    bounds.containerCreateSeconds +
    bounds.claimSeconds +
    executionSecondsOf(run, box) +
    bounds.terminationSeconds
  );
}

/** The same for all runs of an agent without a budget. */
function surroundingsOf({ box, claimName, grant }: JobInput): Surroundings {
  const { tokens, microUsd } = grant?.left ?? {};
  const budgetLeft = {
    ...(tokens === undefined ? {} : { tokens }),
    ...(microUsd === undefined ? {} : { usd: formatMicroUsd(microUsd) }),
  };
  return {
    egress: box.spec.egress.mode,
    filesStay: claimName !== undefined,
    ...(grant === undefined ? {} : { budgetLeft }),
  };
}

function podSpec(input: JobInput): Record<string, unknown> {
  const { run, box, settings, claimName, hostUsers } = input;
  return {
    restartPolicy: 'Never',
    serviceAccountName: RUNNER_SERVICE_ACCOUNT,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    shareProcessNamespace: false,
    terminationGracePeriodSeconds: GRACE_SECONDS,
    ...(box.spec.runtimeClassName === undefined ? {} : { runtimeClassName: box.spec.runtimeClassName }),
    ...(hostUsers === undefined ? {} : { hostUsers }),
    securityContext: {
      runAsNonRoot: true,
      // Without a group the processes are in group 0; containerd refuses a group for the sandbox without a user.
      runAsUser: RUNNER_UID,
      runAsGroup: POD_GID,
      fsGroup: POD_GID,
      // A volume with many files is not walked through at every start.
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    },
    ...podPlacement(settings.pods, claimName === undefined ? undefined : besideRunsOf(run.spec.agent)),
    initContainers: [toolsContainer(box, settings)],
    containers: [runnerContainer(input)],
    volumes: volumes(box, claimName),
  };
}

/** One node at a time mounts the volume: runs of the agent that work at once must meet there. The first one is free to choose. */
function besideRunsOf(agent: string): Record<string, unknown> {
  const term = { labelSelector: { matchLabels: { [LABEL_AGENT]: agent } }, topologyKey: 'kubernetes.io/hostname' };
  return { requiredDuringSchedulingIgnoredDuringExecution: [term] };
}

/** The agent's hands: hostile code runs here. No token, no gateway address. A native sidecar ends with `runner`. */
function toolsContainer(box: Box, settings: JobSettings): Record<string, unknown> {
  const { memory, cpu, ephemeralStorage } = box.spec.resources;
  return {
    name: TOOLS_CONTAINER,
    image: box.spec.image ?? settings.toolsImage,
    imagePullPolicy: settings.imagePullPolicy,
    args: ['tools'],
    restartPolicy: 'Always',
    securityContext: containerSecurity(TOOLS_UID),
    resources: resources({ memory, cpu, 'ephemeral-storage': ephemeralStorage }),
    volumeMounts: [
      { name: 'workspace', mountPath: WORKSPACE_DIR },
      { name: 'socket', mountPath: SOCKET_DIR },
      { name: 'home', mountPath: HOME_DIR },
      { name: 'tools-tmp', mountPath: '/tmp' },
    ],
  };
}

/** The agent loop: holds the run token and opens no path that `tools` can write. */
function runnerContainer(input: JobInput): Record<string, unknown> {
  const { run, box, settings } = input;
  const memory = box.spec.resources.runnerMemory;
  return {
    name: RUNNER_CONTAINER,
    // Always that of the installation: it holds the run token, and a Box cannot put another program there.
    image: settings.runnerImage,
    imagePullPolicy: settings.imagePullPolicy,
    args: ['runner'],
    env: [
      { name: RUNNER_ENV.namespace, value: run.metadata.namespace ?? '' },
      { name: RUNNER_ENV.run, value: run.metadata.name },
      { name: RUNNER_ENV.podUid, valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
      { name: RUNNER_ENV.gatewayUrl, value: gatewayUrl(settings.gatewayIp) },
      { name: RUNNER_ENV.gatewayServerName, value: settings.gatewayServerName },
      { name: RUNNER_ENV.gatewayCa, value: settings.gatewayCa },
      { name: RUNNER_ENV.surroundings, value: renderSurroundings(surroundingsOf(input)) },
    ],
    securityContext: containerSecurity(RUNNER_UID),
    resources: resources({ memory, cpu: '1', 'ephemeral-storage': '256Mi' }),
    volumeMounts: [
      { name: 'token', mountPath: TOKEN_DIR, readOnly: true },
      { name: 'journal', mountPath: JOURNAL_DIR },
      { name: 'socket', mountPath: SOCKET_DIR, readOnly: true },
      { name: 'runner-tmp', mountPath: '/tmp' },
    ],
  };
}

function gatewayUrl(ip: string): string {
  return `https://${ip.includes(':') ? `[${ip}]` : ip}:${GATEWAY_PORT}`;
}

function containerSecurity(uid: number): Record<string, unknown> {
  return {
    runAsUser: uid,
    runAsGroup: POD_GID,
    runAsNonRoot: true,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
    seccompProfile: { type: 'RuntimeDefault' },
  };
}

/** Memory is reserved in full, so that a neighbour cannot take it away, and half of the disk; the CPU is shared. */
function resources(limits: Record<'memory' | 'cpu' | 'ephemeral-storage', string>): Record<string, unknown> {
  const small = (parseQuantity(limits.cpu) ?? 1) < 0.1;
  const disk = halfOf(limits['ephemeral-storage']);
  return { requests: { memory: limits.memory, cpu: small ? limits.cpu : '100m', 'ephemeral-storage': disk }, limits };
}

/** Half of a quantity, in its own unit. */
function halfOf(quantity: string): string {
  return quantity.replace(/^\+?[\d.]+/, (number) => String(Number(number) / 2));
}

function volumes(box: Box, claimName: string | undefined): Record<string, unknown>[] {
  const workspace =
    claimName === undefined
      ? { emptyDir: { sizeLimit: box.spec.resources.ephemeralStorage } }
      : { persistentVolumeClaim: { claimName } };
  const token = {
    serviceAccountToken: { audience: RUN_TOKEN_AUDIENCE, expirationSeconds: TOKEN_SECONDS, path: 'token' },
  };
  return [
    { name: 'token', projected: { defaultMode: 0o440, sources: [token] } },
    { name: 'journal', emptyDir: { sizeLimit: '64Mi' } },
    { name: 'socket', emptyDir: { sizeLimit: '1Mi' } },
    { name: 'workspace', ...workspace },
    { name: 'home', emptyDir: { sizeLimit: box.spec.resources.ephemeralStorage } },
    { name: 'tools-tmp', emptyDir: { sizeLimit: box.spec.resources.ephemeralStorage } },
    { name: 'runner-tmp', emptyDir: { sizeLimit: '64Mi' } },
  ];
}

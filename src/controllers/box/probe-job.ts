/** The Job that probes the network of a Box, as a pure function, and its projection. */
import { createHash } from 'node:crypto';
import {
  ANNOTATION_PROBED,
  LABEL_BOX,
  LABEL_MANAGED_BY,
  LABEL_NETWORK_PROBE,
  MANAGED_BY,
  RUNNER_SERVICE_ACCOUNT,
} from '../../api/labels.js';
import { boxNamespace } from '../../api/names.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { Jobs } from '../../kube/core-types.js';
import type { Job } from '../../kube/core-types.js';
import { apiVersionOf, controllerReference } from '../../kube/owner-references.js';
import { PROBE_CONTAINER, PROBE_TARGETS_ENV } from '../../protocol/network-probe.js';
import type { ProbeTarget } from '../../protocol/network-probe.js';
import { POD_GID, RUNNER_UID } from '../../protocol/pod.js';
import { podMetadata, podPlacement, type RunPods } from '../run-pods.js';
import { networkPolicySpecs } from './network-policies.js';
import type { NetworkSettings } from './network-policies.js';

export const PROBE_JOB = 'boxwright-network-probe';
/** Scheduling, pulling the image and the probe itself; then the Job fails. */
export const PROBE_DEADLINE_SECONDS = 180;
/** A Job that gave no report stays readable (kubectl describe, kubectl logs) for this long. */
const TTL_SECONDS = 600;

/** Settings shared by all probes of an installation. */
export interface ProbeSettings {
  image: string;
  imagePullPolicy: string;
  /** As those of runs: a probe says something about the nodes on which they run. */
  pods?: RunPods | undefined;
  targets: readonly ProbeTarget[];
}

/** Identifies what a probe proves; under another digest its verdict means nothing. */
export function probeDigest(box: Box, network: NetworkSettings, { targets }: Pick<ProbeSettings, 'targets'>): string {
  const probed = [networkPolicySpecs(box.spec.egress, network), targets, box.spec.runtimeClassName ?? null];
  return createHash('sha256').update(JSON.stringify(probed)).digest('hex').slice(0, 16);
}

export function buildProbeJob(box: Box, settings: ProbeSettings, digest: string): Job {
  const labels = {
    [LABEL_MANAGED_BY]: MANAGED_BY,
    [LABEL_BOX]: box.metadata.name,
    [LABEL_NETWORK_PROBE]: 'true',
  };
  return {
    apiVersion: apiVersionOf(Jobs),
    kind: Jobs.kind,
    metadata: {
      name: PROBE_JOB,
      namespace: boxNamespace(box.metadata.name),
      labels,
      annotations: { [ANNOTATION_PROBED]: digest },
      ownerReferences: [controllerReference(Boxes, box)],
    },
    spec: {
      backoffLimit: 0,
      activeDeadlineSeconds: PROBE_DEADLINE_SECONDS,
      ttlSecondsAfterFinished: TTL_SECONDS,
      template: {
        metadata: podMetadata(labels, settings.pods),
        spec: podSpec(box, settings),
      },
    },
  };
}

/** Like the pod of a run except for its containers, with the image of their runner. */
function podSpec(box: Box, settings: ProbeSettings): Record<string, unknown> {
  const { runtimeClassName } = box.spec;
  const limits = { cpu: '100m', memory: '128Mi', 'ephemeral-storage': '32Mi' };
  return {
    restartPolicy: 'Never',
    serviceAccountName: RUNNER_SERVICE_ACCOUNT,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 1,
    ...(runtimeClassName === undefined ? {} : { runtimeClassName }),
    ...podPlacement(settings.pods),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: RUNNER_UID,
      runAsGroup: POD_GID,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: PROBE_CONTAINER,
        image: settings.image,
        imagePullPolicy: settings.imagePullPolicy,
        args: ['network-probe'],
        env: [{ name: PROBE_TARGETS_ENV, value: JSON.stringify(settings.targets) }],
        // Without a report the last lines of the log are the message.
        terminationMessagePolicy: 'FallbackToLogsOnError',
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        resources: { requests: limits, limits },
      },
    ],
  };
}

/** Settings of the controller process (environment `BOXWRIGHT_…`). */
import { z } from 'zod';
import { archiveUrl } from '../archive/config.js';
import { resyncSeconds } from '../config/resync.js';
import { textList } from '../config/text-list.js';
import { cidrList } from '../config/cidrs.js';
import { INTERNAL_PORT } from '../protocol/pod.js';
import { runPodsSetting } from './run-pods.js';
import type { RetentionLimits } from './retention/plan.js';

const count = (fallback: number, text: string) => z.coerce.number().int().min(1).default(fallback).describe(text);

export const ControllerConfig = z.object({
  releaseNamespace: z.string().min(1).describe('Namespace of the installation: its Secrets and the Lease are there.'),
  podName: z.string().min(1).describe('Name of this pod: the identity in the Lease.'),
  podUid: z.string().optional().describe('UID of this pod.'),
  podIp: z.string().optional().describe('Address of this pod.'),
  serviceAccount: z
    .string()
    .min(1)
    .default('boxwright-controller')
    .describe(
      'Service account of this process: it gets its rights to Secrets of workspace namespaces by RoleBindings.',
    ),
  runnerImage: z.string().min(1).describe('Image of the container `runner` of run pods, and of network probes.'),
  toolsImage: z.string().min(1).describe('Image of the container `tools` of run pods, in Boxes without `spec.image`.'),
  runImagePullPolicy: z
    .enum(['Always', 'IfNotPresent', 'Never'])
    .default('IfNotPresent')
    .describe('imagePullPolicy of run pods.'),
  runImagePullSecrets: textList.describe(
    'Pull secrets of run pods in Boxes that name none, separated by commas: Secrets of each Box namespace.',
  ),
  runPods: runPodsSetting.describe(
    'JSON object with annotations, labels, nodeSelector, tolerations, nodeAffinity and priorityClassName of run pods and network probes.',
  ),
  gatewayService: z.string().min(1).default('boxwright-gateway').describe("Name of the gateway's Service."),
  apiService: z.string().min(1).default('boxwright-api').describe("Name of the API's Service; runs must not reach it."),
  maxRunning: z.coerce
    .number()
    .int()
    .min(1)
    .max(100_000)
    .default(100)
    .describe('Runs of the whole installation that may work at once; further ones queue.'),
  leaseSeconds: z.coerce
    .number()
    .int()
    .min(10)
    .max(600)
    .default(15)
    .describe('After this time without a renewal another replica leads; longer where the API server answers slowly.'),
  retentionRunsPerAgent: count(200, 'Finished runs of an agent that are kept for the whole of retentionMaxAgeHours.'),
  retentionMinAgeHours: count(24, 'No run is removed for the number of its agent before this age.'),
  retentionMaxAgeHours: count(720, 'Finished runs are removed after this age.'),
  retentionMaxFinished: count(50_000, 'Finished runs of the installation; beyond it the oldest go.'),
  retentionBoxMebibytes: count(16, 'Stored inputs and transcripts of the finished runs of a Box.'),
  retentionInstallationMebibytes: count(128, 'Stored inputs and transcripts of the finished runs of the installation.'),
  clusterCidrs: cidrList.describe(
    'Ranges of nodes, pods and services that runs must never reach, separated by commas.',
  ),
  archiveUrl,
  internalPort: z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .default(INTERNAL_PORT)
    .describe('Port of probes and metrics.'),
  kubeconfig: z.string().optional().describe('Path of a kubeconfig; the service account of the pod when absent.'),
  resyncSeconds,
  logLevel: z.enum(['error', 'warn', 'info', 'debug']).default('info').describe('Lowest level of the logs.'),
});
export type ControllerConfig = z.output<typeof ControllerConfig>;

const HOUR_MS = 3_600_000;
const MEBIBYTE = 1024 * 1024;

/** The limits of retention in the units of its plan. */
export function retentionLimits(config: ControllerConfig): RetentionLimits {
  return {
    runsPerAgent: config.retentionRunsPerAgent,
    minAgeMs: config.retentionMinAgeHours * HOUR_MS,
    maxAgeMs: config.retentionMaxAgeHours * HOUR_MS,
    maxFinished: config.retentionMaxFinished,
    boxBytes: config.retentionBoxMebibytes * MEBIBYTE,
    installationBytes: config.retentionInstallationMebibytes * MEBIBYTE,
  };
}

/** Runs, agents, Boxes, Jobs and pods for tests of the run controller: valid, complete, changed by small functions. */
import { FINALIZER_ROLL_UP, LABEL_RUN } from '../../src/api/labels.js';
import { API_VERSION } from '../../src/api/define-resource.js';
import type { ObjectMeta } from '../../src/api/meta.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSpec } from '../../src/api/v1alpha1/agent.js';
import type { AgentTrigger } from '../../src/api/v1alpha1/agent-trigger.js';
import type { Agent } from '../../src/api/v1alpha1/agent.js';
import { BoxSpec } from '../../src/api/v1alpha1/box.js';
import type { Box } from '../../src/api/v1alpha1/box.js';
import type { Workspace } from '../../src/api/v1alpha1/workspace.js';
import type { Job, Pod } from '../../src/kube/core-types.js';

export const NAMESPACE = 'bw-dev';

export function makeWorkspace(name = 'acme'): Workspace {
  return { apiVersion: API_VERSION, kind: 'Workspace', metadata: { name }, spec: { slots: 10, expertSandbox: false } };
}

const READY = {
  type: 'Ready',
  status: 'True',
  reason: 'Ready',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
} as const;

export function makeBox(spec: Record<string, unknown> = {}, name = 'dev'): Box {
  return {
    apiVersion: API_VERSION,
    kind: 'Box',
    metadata: { name, uid: `uid-box-${name}` },
    spec: BoxSpec.parse({ workspace: 'acme', ...spec }),
    status: { conditions: [READY] },
  };
}

export function makeAgent(spec: Record<string, unknown> = {}, name = 'ada'): Agent {
  return {
    apiVersion: API_VERSION,
    kind: 'Agent',
    metadata: { name, namespace: NAMESPACE, uid: `uid-agent-${name}` },
    spec: AgentSpec.parse({ name: 'Ada', ...spec }),
    status: { active: true },
  };
}

export interface RunParts {
  metadata?: Partial<ObjectMeta>;
  spec?: Partial<AgentRun['spec']>;
  status?: Partial<NonNullable<AgentRun['status']>>;
}

/** The trigger `push` of the agent `ada`. */
export function makeTrigger(): AgentTrigger {
  return {
    apiVersion: API_VERSION,
    kind: 'AgentTrigger',
    metadata: { name: 'ada.push', namespace: NAMESPACE, uid: 'uid-trigger' },
    spec: { agent: 'ada', name: 'push', description: '', body: 'go', methods: ['POST'], enabled: true },
  };
}

/** A run as the API makes it: finalizer, agent UID and acceptance are there. */
export function makeRun(name = 'ada-1', parts: RunParts = {}): AgentRun {
  return {
    apiVersion: API_VERSION,
    kind: 'AgentRun',
    metadata: { name, namespace: NAMESPACE, uid: `uid-${name}`, finalizers: [FINALIZER_ROLL_UP], ...parts.metadata },
    spec: {
      agent: 'ada',
      agentUid: 'uid-agent-ada',
      message: 'hello',
      createdAt: '2026-01-01T00:00:00.000Z',
      ...parts.spec,
    },
    status: { phase: 'running', ...parts.status },
  };
}

/** A run as a five-line manifest makes it. */
export function makeManifestRun(name = 'by-hand'): AgentRun {
  return {
    apiVersion: API_VERSION,
    kind: 'AgentRun',
    metadata: { name, namespace: NAMESPACE },
    spec: { agent: 'ada', message: 'hello' },
  };
}

export function claimOf(podUid = 'uid-pod', at = '2026-01-01T00:00:05.000Z') {
  return {
    podUid,
    podName: 'ada-1-abcde',
    at,
    gatewayPod: 'gateway-1',
    gatewayUid: 'uid-gateway-1',
    gatewayAddress: '10.0.0.1:8443',
    epoch: 1,
  };
}

export function makePod(status: Pod['status'] = {}, metadata: Partial<ObjectMeta> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'ada-1-abcde',
      namespace: NAMESPACE,
      uid: 'uid-pod',
      creationTimestamp: '2026-01-01T00:00:01Z',
      labels: { [LABEL_RUN]: 'ada-1' },
      ...metadata,
    },
    spec: {},
    status: { phase: 'Pending', ...status },
  };
}

export function makeJob(run: AgentRun, status: Job['status'] = {}, spec: Partial<Job['spec']> = {}): Job {
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: run.metadata.name,
      namespace: NAMESPACE,
      uid: `uid-job-${run.metadata.name}`,
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { [LABEL_RUN]: run.metadata.name },
      ownerReferences: [
        {
          apiVersion: API_VERSION,
          kind: 'AgentRun',
          name: run.metadata.name,
          uid: run.metadata.uid ?? '',
          controller: true,
        },
      ],
    },
    spec: { template: { spec: {} }, ...spec },
    status,
  };
}

/** `PodScheduled` since that time. */
export function scheduled(at = '2026-01-01T00:00:02Z') {
  return { conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: at }] };
}

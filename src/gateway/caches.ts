/** What the gateway watches, as projections; Secrets and chunks are never watched. */
import { LABEL_RUN } from '../api/labels.js';
import type { KubeObject } from '../api/meta.js';
import { AgentMemories } from '../api/v1alpha1/agent-memory.js';
import { AgentRuns } from '../api/v1alpha1/agent-run.js';
import { AgentSkills } from '../api/v1alpha1/agent-skill.js';
import { Agents } from '../api/v1alpha1/agent.js';
import { Boxes } from '../api/v1alpha1/box.js';
import { Connectors } from '../api/v1alpha1/connector.js';
import { Jobs, Pods } from '../kube/core-types.js';
import type { Informer, InformerOptions } from '../kube/types.js';
import type { Problem } from '../observability/probes.js';
import type { Runnable } from '../runtime/manager.js';
import { credentialInformer, type CredentialView } from './credentials/secret-names.js';
import {
  AGENTS_BY_NAMESPACE,
  BY_AGENT,
  RUNS_BY_PARENT,
  RUNS_BY_SESSION,
  agentKey,
  projectAgent,
  projectBox,
  projectConnector,
  projectGatewayPod,
  projectNote,
  projectRun,
  projectRunJob,
  projectRunPod,
  projectSkill,
  type AgentView,
  type BoxView,
  type ConnectorView,
  type GatewayPodView,
  type NoteView,
  type RunJobView,
  type RunPodView,
  type RunView,
  type SkillView,
} from './views.js';
import { sessionKeyOf } from '../run/session/key.js';

export interface GatewayCaches {
  runs: Informer<RunView>;
  pods: Informer<RunPodView>;
  jobs: Informer<RunJobView>;
  agents: Informer<AgentView>;
  credentials: Informer<CredentialView>;
  boxes: Informer<BoxView>;
  connectors: Informer<ConnectorView>;
  notes: Informer<NoteView>;
  skills: Informer<SkillView>;
  gateways: Informer<GatewayPodView>;
}

/** Makes an informer that is not started yet. */
export type InformerFactory = <T extends KubeObject, P>(options: InformerOptions<T, P>) => Informer<P>;

export interface GatewayPodSelection {
  releaseNamespace: string;
  gatewaySelector: string;
}

export function createGatewayCaches(informer: InformerFactory, own: GatewayPodSelection): GatewayCaches {
  return {
    runs: informer({
      type: AgentRuns,
      project: projectRun,
      indexes: {
        [RUNS_BY_SESSION]: (run) => [sessionKeyOf(run)],
        [RUNS_BY_PARENT]: (run) => (run.spec.parent === undefined ? [] : [run.spec.parent.uid]),
      },
    }),
    pods: informer({ type: Pods, labelSelector: LABEL_RUN, project: projectRunPod }),
    jobs: informer({ type: Jobs, labelSelector: LABEL_RUN, project: projectRunJob }),
    credentials: informer(credentialInformer),
    agents: informer({
      type: Agents,
      project: projectAgent,
      indexes: { [AGENTS_BY_NAMESPACE]: (agent) => [agent.namespace] },
    }),
    boxes: informer({ type: Boxes, project: projectBox }),
    connectors: informer({ type: Connectors, project: projectConnector }),
    notes: informer({
      type: AgentMemories,
      project: projectNote,
      indexes: { [BY_AGENT]: (note) => [agentKey(note)] },
    }),
    skills: informer({
      type: AgentSkills,
      project: projectSkill,
      indexes: { [BY_AGENT]: (skill) => [agentKey(skill)] },
    }),
    gateways: informer({
      type: Pods,
      namespace: own.releaseNamespace,
      labelSelector: own.gatewaySelector,
      project: projectGatewayPod,
    }),
  };
}

/** Starts all watches; the start resolves when each has its first full list. */
export function cachesRunnable(caches: GatewayCaches): Runnable {
  const all = Object.values(caches) as Informer<unknown>[];
  return {
    name: 'caches',
    start: async () => {
      for (const informer of all) informer.start();
      await Promise.all(all.map((informer) => informer.synced));
    },
    stop: async () => {
      await Promise.all(all.map((informer) => informer.stop()));
    },
  };
}

/** Watches that are behind, for the readiness of the pod. */
export function cacheProblems(caches: GatewayCaches): Problem[] {
  return Object.entries(caches).flatMap(([name, informer]) =>
    (informer as Informer<unknown>).isHealthy()
      ? []
      : [{ check: `informer ${name}`, message: 'the watch is behind or was never filled' }],
  );
}
